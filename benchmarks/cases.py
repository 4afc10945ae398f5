"""What is asked of every server, and what it has to answer."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from benchmarks.pictures import SIDES, draw

CODE = "fn main() {}"


@attrs.frozen
class Case:
    """
    A request that is measured.

    Args:
        name:
            What the tables call it.

        method:
            The method.

        params:
            The parameters, in both eras.

        content:
            Takes from a result what has to be equal.

        expected:
            What that has to be.
    """

    name: str
    method: str
    params: dict[str, Any]
    content: Callable[[Any], Any]
    expected: Any

    def says_all(self, result: msgspec.Raw) -> bool:
        """
        Return whether *result* holds what it has to.
        """
        try:
            return bool(self.content(msgspec.json.decode(result)) == self.expected)
        except (LookupError, TypeError):
            return False


def _messages(result: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(message["role"], message["content"]) for message in result["messages"]]


def _listed(result: Any) -> dict[str, tuple[str, list[tuple[str, bool]]]]:
    """Descriptions and arguments of listed prompts, by name."""
    return {
        prompt["name"]: (
            prompt["description"],
            [(each["name"], each.get("required", False)) for each in prompt["arguments"]],
        )
        for prompt in result["prompts"]
    }


def _text(words: str, role: str = "user") -> tuple[str, dict[str, Any]]:
    return role, {"type": "text", "text": words}


def _get(name: str, prompt: str, arguments: dict[str, str], *expected: Any) -> Case:
    params = {"name": prompt, "arguments": arguments}
    return Case(f"prompts/get, {name}", "prompts/get", params, _messages, list(expected))


def _picture(name: str, prompt: str, file: str) -> Case:
    """A case of ``prompts/get`` that answers with an image."""
    data = b64encode(draw(SIDES[file])).decode()
    image = ("user", {"type": "image", "data": data, "mimeType": "image/png"})
    return _get(name, prompt, {"caption": "A picture."}, _text("A picture."), image)


def listing(count: int) -> Case:
    """
    Return the case of ``prompts/list`` where a server has *count* prompts.
    """
    three = ("Review code in a language.", [("code", True), ("language", False), ("depth", False)])
    named = {
        "plain": ("Review a piece of code.", [("code", True)]),
        "typed": three,
        "structured": ("Review a change.", [("change", True)]),
        "turns": ("Walk through an error.", [("error", True)]),
        "small_picture": ("Look at a small picture.", [("caption", True)]),
        "large_picture": ("Look at a large picture.", [("caption", True)]),
    }
    generated = {f"generated_{number:05}": three for number in range(count - len(named))}
    return Case(f"prompts/list of {count:,}", "prompts/list", {}, _listed, named | generated)


def echo_of(case: Case, size: int) -> Case:
    """
    Return the case of an echo that answers with as many bytes as *case* has in its result.
    """
    return Case(f"echo of {case.name}", "echo", {"bytes": size}, len, size)


def saved(prompt: str, edit: int) -> Case:
    """
    Return the case of a prompt that says which edit of its file it is of.
    """
    said = _text(f"Review {edit}, this rust code, 3 deep.\n\n{CODE}")
    return _get(f"edit {edit}", prompt, {"code": CODE, "language": "rust", "depth": "3"}, said)


PLAIN = _get(
    "plain argument",
    "plain",
    {"code": CODE},
    _text(f"Review this code.\n\n{CODE}"),
)
TYPED = _get(
    "typed arguments",
    "typed",
    {"code": CODE, "language": "rust", "depth": "3"},
    _text(f"Review this rust code, 3 deep.\n\n{CODE}"),
)
#: The same prompt as a tool, with values as JSON. It is measured of promptkit alone.
CALLED = Case(
    "tools/call, typed arguments",
    "tools/call",
    {"name": "typed", "arguments": {"code": CODE, "language": "rust", "depth": 3}},
    lambda result: result["content"],
    [{"type": "text", "text": f"Review this rust code, 3 deep.\n\n{CODE}"}],
)
STRUCTURED = _get(
    "structured argument",
    "structured",
    {"change": '{"title": "Faster", "files": ["a.py", "b.py"], "urgent": true}'},
    _text("Review 'Faster' now: a.py, b.py"),
)
TURNS = _get(
    "three turns",
    "turns",
    {"error": "E0382"},
    _text("I see an error: E0382"),
    _text("What have you tried so far?", "assistant"),
    _text("I have restarted the service."),
)
SMALL_PICTURE = _picture("256 KiB image", "small_picture", "small.png")
LARGE_PICTURE = _picture("1 MiB image", "large_picture", "large.png")
COMPLETION = Case(
    "completion/complete",
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "typed"}, "argument": {"name": "language", "value": "ru"}},
    lambda result: result["completion"]["values"],
    ["rust"],
)
#: What is measured one at a time and pipelined.
CASES = (PLAIN, TYPED, STRUCTURED, TURNS, SMALL_PICTURE, LARGE_PICTURE, COMPLETION)
