"""The form of an answer, in as few words as a person would need."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from promptkit.language.lines import hanging_indent
from promptkit.language.text import Text
from promptkit.types.schemas import answer_schema

#: What people call the types of JSON.
_NAMES: Final = {"string": "string", "integer": "int", "number": "float", "boolean": "bool", "null": "null"}


def answer_format(answer: Any, example: Any = None) -> Text:
    """
    Say in which form the answer has to be: an outline of a type, in the order of its fields.

    Descriptions (``msgspec.Meta(description=...)``) are comments, and choices stand there in full. Answers
    are not read: that is up to who calls the model.

    Args:
        answer:
            Any type that promptkit reads: a dataclass, a class of attrs or msgspec, a TypedDict, a list, a
            ``Literal``, an ``Enum``, text, a number.

        example:
            A value of the type, shown as JSON; None to show none.

    Returns:
        The text.

    Raises:
        TypeError: If promptkit does not read the type, or the example cannot be written as JSON.

    See Also:
        https://json-schema.org/draft/2020-12/schema
    """
    schema = answer_schema(answer, outlined=True)
    named = [f"{name} = {_outline(one)}" for name, one in schema.get("$defs", {}).items()]
    parts = ["Answer with JSON in this form, and nothing else:", *named, _outline(schema)]
    if example is not None:
        parts += ["For example:", _written(example)]
    return Text("\n".join(parts))


def _written(example: Any) -> str:
    try:
        encoded = msgspec.json.encode(example)
    except (TypeError, RecursionError) as error:
        msg = f"answer_format(example): {error}; give a value of the type"
        raise TypeError(msg) from error
    return msgspec.json.format(encoded, indent=2).decode()


def _outline(schema: Mapping[str, Any]) -> str:  # noqa: PLR0911 (a list of cases)
    """What a value looks like, on several lines if it is an object."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    if "enum" in schema:
        return " or ".join(msgspec.json.encode(choice).decode() for choice in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(map(_outline, schema["anyOf"]))
    match schema.get("type"):
        case "array":
            items = [_outline(item) for item in schema.get("prefixItems", ())]
            return f"[{', '.join(items or [_outline(schema['items']), '...'])}]"
        case "object":
            return _object(schema)
        case str(name):
            return _NAMES[name]
    return "any"


def _object(schema: Mapping[str, Any]) -> str:
    if "properties" not in schema:
        values = _outline(schema.get("additionalProperties") or {})
        return f"{{string: {values}, ...}}"
    members = [
        line for name, member in schema["properties"].items() for line in _member(name, member, schema)
    ]
    return hanging_indent("\n".join(["{", *members]), "", "  ") + "\n}"


def _member(name: str, member: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    said = " ".join(str(member.get("description", "")).split())
    if words := " ".join(filter(None, (said, _bounds(member)))):
        yield f"// {words}"
    mark = "" if name in schema.get("required", ()) else "?"
    yield f"{name}{mark}: {_outline(member)},"


def _bounds(member: Mapping[str, Any]) -> str:
    """How many items a list has, if that is bounded; a tuple shows it."""
    least, most = member.get("minItems", 0), member.get("maxItems")
    if "prefixItems" in member or not (least or most):
        return ""
    words = f"{least} to {most}" if most else f"at least {least}"
    return f"({most if least == most else words} {'item' if (most or least) == 1 else 'items'})"
