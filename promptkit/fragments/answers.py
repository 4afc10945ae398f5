"""Compact descriptions of answer formats."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from promptkit.fragments.markdown import indented_json
from promptkit.language.placeholders import hanging_indent
from promptkit.language.text import Text, plain_string
from promptkit.types.caching import cached_by_type
from promptkit.types.schemas import answer_schema

#: Common names for JSON Schema types.
_TYPE_NAMES: Final = {
    "string": "string",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "null",
}


def answer_format(
    answer: Any, example: Any = None, lead: str = "Answer with JSON in this form, and nothing else:"
) -> Text:
    """
    Describe the JSON format of an answer with an outline of its type. The outline keeps the order of fields.

    Descriptions (``msgspec.Meta(description=...)``, and string literals below the members of an ``Enum``)
    become comments, and all choices are listed. Docstrings are omitted. To parse the answer, use
    `promptkit.answers.parse_answer`.

    Args:
        answer:
            The type: any type that promptkit supports, such as a dataclass, an attrs or msgspec class, a
            TypedDict, a list, a ``Literal``, an ``Enum``, text or a number.

        example:
            A value of the type, to be shown as JSON; None for no example.

        lead:
            The sentence before the outline; ``""`` for none, for example if the model should explain its
            answer first.

    Returns:
        The description.

    Raises:
        TypeError: If promptkit does not support the type, the example cannot be encoded as JSON, or *lead* is
            not text.

    See Also:
        https://json-schema.org/draft/2020-12/schema
    """
    parts = [plain_string(lead, "answer_format(lead)"), _answer_outline(answer)]
    if example is not None:
        encoded = indented_json(example, "answer_format(example)", "pass a value of the type")
        parts += ["For example:", encoded]
    return Text("\n".join(filter(None, parts)))


@cached_by_type
def _answer_outline(answer: Any) -> str:
    """Return the outline of a type, preceded by the outlines of the recursive classes in it."""
    schema = answer_schema(answer, outlined=True)
    definitions = [f"{name} = {_outline(item)}" for name, item in schema.get("$defs", {}).items()]
    comments = [] if "properties" in schema else _comments(schema)
    return "\n".join([*definitions, *comments, _outline(schema)])


def _outline(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 (a list of cases)
    """Return the outline of the values that a schema allows. An object's outline has several lines."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if choices := schema.get("enum") or ([schema["const"]] if "const" in schema else []):
        return " or ".join(msgspec.json.encode(choice).decode() for choice in choices)
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return " or ".join(map(_outline, members))
    match schema.get("type"):
        case "array":
            items = [_outline(item) for item in schema.get("prefixItems", ())]
            return f"[{', '.join(items or [_outline(schema['items']), '...'])}]"
        case "object":
            return _object_outline(schema)
        case str(name):
            return _TYPE_NAMES[name]
    return "any"


def _object_outline(schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        additional = schema.get("additionalProperties")  # in Pydantic's schemas, it can be true
        values = _outline(additional if isinstance(additional, Mapping) else {})
        return f"{{string: {values}, ...}}"
    members = [
        line for name, member in schema["properties"].items() for line in _member_lines(name, member, schema)
    ]
    return hanging_indent("\n".join(["{", *members]), "", "  ") + "\n}"


def _member_lines(name: str, member: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    yield from _comments(member)
    optional_mark = "" if name in schema.get("required", ()) else "?"
    yield f"{name}{optional_mark}: {_outline(member)},"


def _comments(schema: Mapping[str, Any]) -> Iterator[str]:
    """Yield the comment above an outline, if any: the description of its values and the limits on a list."""
    description = " ".join(str(schema.get("description", "")).split())
    if words := " ".join(filter(None, (description, _length_comment(schema)))):
        yield f"// {words}"


def _length_comment(member: Mapping[str, Any]) -> str:
    """
    Return the limits on a list's length, or ``""`` if there are none.

    Also return ``""`` for a tuple, because its outline already shows them.
    """
    minimum, maximum = member.get("minItems", 0), member.get("maxItems")
    if "prefixItems" in member or not (minimum or maximum):
        return ""
    limits = f"{minimum} to {maximum}" if maximum else f"at least {minimum}"
    return f"({maximum if minimum == maximum else limits} {'item' if (maximum or minimum) == 1 else 'items'})"
