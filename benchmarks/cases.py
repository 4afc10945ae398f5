"""The requests that every server receives, and the expected results."""

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
            The name of the request in tables.

        method:
            The MCP method.

        params:
            The parameters, which are the same in both eras.

        extract_content:
            A function that extracts the part of a result to compare.

        expected:
            The expected value of that part.
    """

    name: str
    method: str
    params: dict[str, Any]
    extract_content: Callable[[Any], Any]
    expected: Any

    def has_expected_content(self, result: msgspec.Raw) -> bool:
        """
        Return whether *result* has the expected content.
        """
        try:
            return bool(self.extract_content(msgspec.json.decode(result)) == self.expected)
        except (LookupError, TypeError):
            return False


def _messages(result: Any) -> list[tuple[str, dict[str, Any]]]:
    return [(message["role"], message["content"]) for message in result["messages"]]


def _describe_prompts(result: Any) -> dict[str, tuple[str, list[tuple[str, bool]]]]:
    """
    Return the description and the arguments of each listed prompt, keyed by the prompt's name.

    For each argument, the result contains its name and whether it is required.
    """
    return {
        prompt["name"]: (
            prompt["description"],
            [(argument["name"], argument.get("required", False)) for argument in prompt["arguments"]],
        )
        for prompt in result["prompts"]
    }


def _text_message(text: str, role: str = "user") -> tuple[str, dict[str, Any]]:
    return role, {"type": "text", "text": text}


def _prompt_case(name: str, prompt: str, arguments: dict[str, str], *expected: Any) -> Case:
    params = {"name": prompt, "arguments": arguments}
    return Case(f"prompts/get, {name}", "prompts/get", params, _messages, list(expected))


def list_case(count: int) -> Case:
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


def echo_case(case: Case, size: int) -> Case:
    """
    Return the case for an echo of *size* bytes, the size of the result of *case*.
    """
    return Case(f"echo of {case.name}", "echo", {"bytes": size}, len, size)


def saved_prompt_case(prompt: str, edit: int) -> Case:
    """
    Return the case for a saved prompt, whose text contains the number of the last edit.
    """
    expected = _text_message(f"Review {edit}, this rust code, 3 deep.\n\n{CODE}")
    return _prompt_case(f"edit {edit}", prompt, {"code": CODE, "language": "rust", "depth": "3"}, expected)


PLAIN = _prompt_case(
    "plain argument",
    "plain",
    {"code": CODE},
    _text_message(f"Review this code.\n\n{CODE}"),
)
TYPED = _prompt_case(
    "typed arguments",
    "typed",
    {"code": CODE, "language": "rust", "depth": "3"},
    _text_message(f"Review this rust code, 3 deep.\n\n{CODE}"),
)
STRUCTURED = _prompt_case(
    "structured argument",
    "structured",
    {"change": '{"title": "Faster", "files": ["a.py", "b.py"], "urgent": true}'},
    _text_message("Review 'Faster' now: a.py, b.py"),
)
TURNS = _prompt_case(
    "three turns",
    "turns",
    {"error": "E0382"},
    _text_message("I see an error: E0382"),
    _text_message("What have you tried so far?", "assistant"),
    _text_message("I have restarted the service."),
)
PICTURE = _prompt_case(
    "1 MiB image",
    "picture",
    {"caption": "A picture."},
    _text_message("A picture."),
    ("user", {"type": "image", "data": b64encode(draw(SIDE)).decode(), "mimeType": "image/png"}),
)
COMPLETION = Case(
    "completion/complete",
    "completion/complete",
    {"ref": {"type": "ref/prompt", "name": "typed"}, "argument": {"name": "language", "value": "ru"}},
    lambda result: result["completion"]["values"],
    ["rust"],
)
#: Only promptkit receives the next two requests, in the handshake era. The loop never returns.
LOOP = _prompt_case("a loop", "loop", {})
PING = Case("ping", "ping", {}, dict, {})
#: The requests that are measured both one at a time and in a pipeline.
CASES = (PLAIN, TYPED, STRUCTURED, TURNS, PICTURE, COMPLETION)
