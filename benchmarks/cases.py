"""The requests that are sent to every server, and the expected results."""

from base64 import b64encode
from collections.abc import Callable
from typing import Any

import attrs
import msgspec

from benchmarks.pictures import SIDE, draw

CODE = "fn main() {}"


@attrs.frozen
class Case:
    """
    A request to measure.

    Args:
        name:
            The name in tables.

        method:
            The MCP method.

        params:
            The parameters, which are the same in both eras.

        content:
            Extracts the part of a result to compare.

        expected:
            The expected value of that part.
    """

    name: str
    method: str
    params: dict[str, Any]
    content: Callable[[Any], Any]
    expected: Any

    def has_expected_content(self, result: msgspec.Raw) -> bool:
        """
        Return whether *result* has the expected content.
        """
        try:
            return bool(self.content(msgspec.json.decode(result)) == self.expected)
        except (LookupError, TypeError):
            return False


def _messages(result: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(message["role"], message["content"]) for message in result["messages"]]


def _describe_prompts(result: Any) -> dict[str, tuple[str, list[tuple[str, bool]]]]:
    """
    Return, by name, each listed prompt's description, and its arguments with whether they are required.
    """
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


def listing(count: int) -> Case:
    """
    Return the case for ``prompts/list`` on a server with *count* prompts.
    """
    typed = ("Review code in a language.", [("code", True), ("language", False), ("depth", False)])
    named = {
        "plain": ("Review a piece of code.", [("code", True)]),
        "typed": typed,
        "structured": ("Review a change.", [("change", True)]),
        "turns": ("Walk through an error.", [("error", True)]),
        "picture": ("Look at a picture.", [("caption", True)]),
    }
    generated = {f"generated_{number:05}": typed for number in range(count - len(named))}
    return Case(f"prompts/list of {count:,}", "prompts/list", {}, _describe_prompts, named | generated)


def echo_of(case: Case, size: int) -> Case:
    """
    Return the case of an echo with *size* bytes, the size of the result of *case*.
    """
    return Case(f"echo of {case.name}", "echo", {"bytes": size}, len, size)


def saved(prompt: str, edit: int) -> Case:
    """
    Return the case for a saved prompt, whose text contains the number of the last edit.
    """
    expected = _text(f"Review {edit}, this rust code, 3 deep.\n\n{CODE}")
    return _get(f"edit {edit}", prompt, {"code": CODE, "language": "rust", "depth": "3"}, expected)


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
PICTURE = _get(
    "1 MiB image",
    "picture",
    {"caption": "A picture."},
    _text("A picture."),
    ("user", {"type": "image", "data": b64encode(draw(SIDE)).decode(), "mimeType": "image/png"}),
)
COMPLETION = Case(
    "completion/complete",
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "typed"}, "argument": {"name": "language", "value": "ru"}},
    lambda result: result["completion"]["values"],
    ["rust"],
)
#: The next two requests are sent to promptkit only, and in the handshake era. The loop never returns.
LOOP = _get("a loop", "loop", {})
PING = Case("ping", "ping", {}, dict, {})
#: The requests that are measured both one at a time and pipelined.
CASES = (PLAIN, TYPED, STRUCTURED, TURNS, PICTURE, COMPLETION)
