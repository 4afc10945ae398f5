"""
The forms that ask the client's user for missing arguments.

A form is a flat object. Each field is a text, a number, a boolean, or a choice.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from math import inf, nextafter
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.json_schema import alternative_of
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_closed, is_list, plain
from promptkit.types.readers import reader_of
from promptkit.types.scalars import Reader

Schema: TypeAlias = dict[str, Any]

#: The formats that a text field can declare.
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})

#: For each numeric type, the type of its field, and a function that returns the next number above (1) or
#: below (-1) a bound, because forms have no exclusive bounds.
_NUMBERS: Final[dict[type, tuple[str, Callable[[Any, int], float]]]] = {
    int: ("integer", lambda bound, direction: bound + direction),
    float: ("number", lambda bound, direction: nextafter(bound, direction * inf)),
}


class _Answer(msgspec.Struct):
    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def elicitation(
    prompt: CompiledPrompt, arguments: Iterable[Argument], *, modes: bool, again: bool = False
) -> Schema:
    """
    Return the params of the ``elicitation/create`` request that asks for *arguments*.

    Args:
        prompt:
            The prompt that needs them.

        arguments:
            The arguments to ask for.

        modes:
            Whether the revision has elicitation modes. Such a revision also has multiple-choice fields.

        again:
            Whether the user has omitted them before.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#form-mode-elicitation-requests
    """
    arguments = tuple(arguments)
    return {
        **({"mode": "form"} if modes else {}),
        "message": message(prompt, arguments, again=again),
        "requestedSchema": requested_schema(arguments, multi_select=modes),
    }


def message(prompt: CompiledPrompt, arguments: Iterable[Argument], *, again: bool = False) -> str:
    """Return the message of a form: why *arguments* are needed, or, if asked *again*, still missing."""
    *first, last = (argument.title or argument.name for argument in arguments)
    needed = f"{', '.join(first)} and {last}" if first else last
    if again:
        return f"Not everything was entered: the prompt {prompt.title or prompt.name!r} still needs {needed}."
    return f"The prompt {prompt.title or prompt.name!r} needs {needed}."


def requested_schema(arguments: Iterable[Argument], *, multi_select: bool) -> Schema:
    """
    Return the schema of a form with a required field for each of *arguments*.

    A field allows the values that its argument accepts, as far as a form can express that. Descriptions cover
    the rest.

    Args:
        arguments:
            The arguments to ask for.

        multi_select:
            Whether forms have multiple-choice fields. If not, lists are text fields.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema
    """
    properties = {argument.name: _property(argument, multi_select=multi_select) for argument in arguments}
    return {"type": "object", "properties": properties, "required": list(properties)}


def answers(response: Any, names: Collection[str]) -> dict[str, Any] | None:
    """
    Return the values that the user entered, by argument name, or None if the user declined.

    Args:
        response:
            The decoded result of an ``elicitation/create`` request.

        names:
            The arguments that were asked for. Other values are ignored; some may be missing.

    Raises:
        InvalidParams: If *response* is malformed.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#response-actions
    """
    try:
        answer = msgspec.convert(response, _Answer)
    except msgspec.ValidationError as error:
        msg = f"the answer to a form is invalid: {error}"
        raise InvalidParams(msg) from None
    if answer.action != "accept":
        return None
    return {name: value for name, value in (answer.content or {}).items() if name in names}


def _property(argument: Argument, *, multi_select: bool) -> Schema:
    annotation = plain(argument.annotation, core=True)
    schema = alternative_of(argument)
    choice = _choice_field(argument.reader, annotation) or (
        _multiple_choice_field(annotation, schema) if multi_select and is_list(annotation) else None
    )
    field = choice or _number_field(annotation, schema) or _text_field(argument, annotation, schema)
    # A choice does not need the description of the accepted text.
    labels = {
        "title": argument.title,
        "description": argument.arg.description if choice else argument.description,
    }
    return field | {key: text for key, text in labels.items() if text}


def _choice_field(reader: Reader, annotation: Any) -> Schema | None:
    """Return a field to choose one value, or None if the values cannot be listed."""
    if annotation is bool:
        return {"type": "boolean"}
    if not is_closed(annotation):
        return None
    # Values of two types may have the same text. Empty text would mean that nothing was entered.
    return {"type": "string", "enum": list(dict.fromkeys(filter(None, reader.values)))}


def _multiple_choice_field(annotation: Any, schema: Schema) -> Schema | None:
    """Return a field to choose several values, or None if the values cannot be listed."""
    item = get_args(annotation)[0]
    reader = reader_of(item)
    items = _choice_field(reader, plain(item, core=True)) if reader else None
    if items is None or "enum" not in items:
        return None
    return {"type": "array", "items": items} | _pick(schema, "minItems", "maxItems")


def _number_field(annotation: Any, schema: Schema) -> Schema | None:
    """Return a number field, or None for other types, and for numbers with constraints other than bounds."""
    if not isinstance(annotation, type) or annotation not in _NUMBERS or "multipleOf" in schema:
        return None
    kind, next_number = _NUMBERS[annotation]
    bounds = _pick(schema, "minimum", "maximum")
    if (bound := schema.get("exclusiveMinimum")) is not None:
        bounds["minimum"] = next_number(bound, 1)
    if (bound := schema.get("exclusiveMaximum")) is not None:
        bounds["maximum"] = next_number(bound, -1)
    return {"type": kind} | bounds


def _text_field(argument: Argument, annotation: Any, schema: Schema) -> Schema:
    field: Schema = {"type": "string"}
    # Only for `str`: the length of base64 is not that of its bytes, and other types accept more text than
    # their schema allows.
    field |= _pick(schema, "minLength", "maxLength") if annotation is str else {}
    if format_ := _format(argument.reader, annotation, schema):
        field["format"] = format_
    elif not argument.blank_is_value:
        field["minLength"] = max(1, field.get("minLength", 0))
    return field


def _format(reader: Reader, annotation: Any, schema: Schema) -> str | None:
    """Return the format of a type's text, if forms have that format."""
    if annotation is datetime:
        with suppress(ConversionError):  # a type without a time zone
            reader.read("2026-01-31T12:00:00Z")
            return "date-time"
        return None
    format_ = schema.get("format")
    return format_ if format_ in _FORMATS else None


def _pick(schema: Schema, *keys: str) -> Schema:
    return {key: schema[key] for key in keys if key in schema}
