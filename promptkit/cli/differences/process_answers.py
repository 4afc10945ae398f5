"""
Validation of the answers of processes that load recipes.

Each process runs the recipes of another revision, so its output cannot be trusted.
"""

import json
from typing import Any, TypeAlias

import msgspec
from msgspec import Struct, field

#: The input of a case or an example, as a client sends it: arguments, or a URI.
Sent: TypeAlias = dict[str, Any] | str


class AnswerError(Exception):
    """The output of a process is not an answer; the message gives the reason."""


class _Schema(Struct):
    """The keywords of a JSON Schema that the comparison evaluates."""

    type: str = ""
    reference: str = field(name="$ref", default="")
    any_of: "list[_Schema]" = field(name="anyOf", default_factory=list)
    enum: list[Any] = []


class _Argument(Struct):
    name: str
    required: bool
    schema: _Schema
    type: str
    words: str | None


class _Prompt(Struct):
    name: str
    definitions: dict[str, _Schema] = field(name="$defs")
    arguments: list[_Argument] = []
    scopes: list[str] = []
    meta: dict[str, Any] = field(name="_meta", default_factory=dict)


class _Resource(Struct):
    uri: str
    scopes: list[str] = []
    meta: dict[str, Any] = field(name="_meta", default_factory=dict)


class _Template(Struct):
    uri: str = field(name="uriTemplate")
    scopes: list[str] = []
    meta: dict[str, Any] = field(name="_meta", default_factory=dict)


class _SkillFile(Struct):
    uri: str
    text: str | None


class _Skill(Struct):
    uri: str
    resources: list[_SkillFile]
    scopes: list[str] = []


class _Items(Struct):
    prompts: list[_Prompt] = []
    resources: list[_Resource] = []
    templates: list[_Template] = field(name="resourceTemplates", default_factory=list)
    skills: list[_Skill] = []


class _Outcome(Struct):
    label: str = field(name="for")
    text: str | None
    failure: str | None


class Lists(Struct):
    """The answer of `promptkit.cli.differences.sides`."""

    lists: _Items
    places: dict[str, tuple[str, int]]
    examples: dict[str, list[Sent]]
    shown: dict[str, list[_Outcome]]
    faults: list[tuple[str, int, str]]


class Renderings(Struct):
    """The answer of `promptkit.cli.differences.renderings`."""

    cases: dict[str, dict[str, Sent]]
    said: dict[str, dict[str, str]]
    faults: list[tuple[str, int, str]]


class _Unloadable(Struct):
    """The answer of a process whose targets cannot be loaded."""

    target: str
    unloadable: str


class _Failed(Struct):
    """The answer of a process that fails in another way."""

    failed: str


def decode_answer(printed: str, shape: Any) -> dict[str, Any]:
    """
    Return the answer that a process has printed, as plain data.

    Args:
        printed:
            Its whole output.

        shape:
            The type of the answer. An answer with ``unloadable`` or ``failed`` has another type.

    Raises:
        AnswerError: If the output is not JSON, or is not of that type.
    """
    try:
        data = json.loads(printed)
        shapes = {"unloadable": _Unloadable, "failed": _Failed}
        matching = [shapes[key] for key in shapes if isinstance(data, dict) and key in data]
        msgspec.convert(data, matching[0] if matching else shape)
    except msgspec.ValidationError as error:
        msg = f"its output is not an answer: {error}"
        raise AnswerError(msg) from None
    except (ValueError, RecursionError):
        msg = "its output is not JSON"
        raise AnswerError(msg) from None
    answer: dict[str, Any] = data
    return answer
