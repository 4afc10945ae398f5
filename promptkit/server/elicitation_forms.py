"""
The forms that ask the person at the client for missing arguments.

A form is a flat object. Each field is text, a number, yes or no, or a choice.
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

#: The formats that a field of text may declare.
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})

#: By type of number: the type of its field, and a function that returns the next number above a bound (1)
#: or below it (-1). Forms have no exclusive bounds.
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
            What to ask for.

        modes:
            Whether the revision wants the question to say that it is asked with a form. Then it also has
            fields in which several values can be chosen.

        again:
            Whether the person has left them out before.

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
    """Return the sentence that tells people why they are asked for *arguments*, or why *again*."""
    *others, last = (argument.title or argument.name for argument in arguments)
    needed = f"{', '.join(others)} and {last}" if others else last
    if again:
        return f"Not everything was entered: the prompt {prompt.title or prompt.name!r} still needs {needed}."
    return f"The prompt {prompt.title or prompt.name!r} needs {needed}."


def requested_schema(arguments: Iterable[Argument], *, multi_select: bool) -> Schema:
    """
    Return the schema of a form with a field for each of *arguments*, all of them required.

    A field allows what its argument can read, as far as a form can say that. The rest is described
    in words.

    Args:
        arguments:
            What to ask for.

        multi_select:
            Whether several values can be chosen in one field; if not, it is text.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema
    """
    properties = {argument.name: _property(argument, multi_select=multi_select) for argument in arguments}
    return {"type": "object", "properties": properties, "required": list(properties)}


def answers(response: Any, names: Collection[str]) -> dict[str, Any] | None:
    """
    Return what a person entered into a form, by argument name; None if they declined.

    Args:
        response:
            The result of an ``elicitation/create`` request, decoded.

        names:
            What was asked for. Nothing else is returned, and some may be missing.

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
    chosen = _choice(argument.reader, annotation) or (
        _choices(annotation, schema) if multi_select and is_list(annotation) else None
    )
    field = chosen or _number(annotation, schema) or _text(argument, annotation, schema)
    # People who choose from a list need no description of what they may write.
    labels = {
        "title": argument.title,
        "description": argument.arg.description if chosen else argument.description,
    }
    return field | {key: text for key, text in labels.items() if text}


def _choice(reader: Reader, annotation: Any) -> Schema | None:
    """A field to choose one value; None if the values cannot be listed."""
    if annotation is bool:
        return {"type": "boolean"}
    if not is_closed(annotation):
        return None
    # Values of two types may have the same name. An empty one would mean that nothing was entered.
    return {"type": "string", "enum": list(dict.fromkeys(filter(None, reader.values)))}


def _choices(annotation: Any, schema: Schema) -> Schema | None:
    """A field to choose several values; None if the values cannot be listed."""
    item = get_args(annotation)[0]
    reader = reader_of(item)
    items = _choice(reader, plain(item, core=True)) if reader else None
    if items is None or "enum" not in items:
        return None
    return {"type": "array", "items": items} | _only(schema, "minItems", "maxItems")


def _number(annotation: Any, schema: Schema) -> Schema | None:
    """A field for a number; None for other types, and for numbers with more than bounds."""
    if not isinstance(annotation, type) or annotation not in _NUMBERS or "multipleOf" in schema:
        return None
    kind, beside = _NUMBERS[annotation]
    bounds = _only(schema, "minimum", "maximum")
    if (bound := schema.get("exclusiveMinimum")) is not None:
        bounds["minimum"] = beside(bound, 1)
    if (bound := schema.get("exclusiveMaximum")) is not None:
        bounds["maximum"] = beside(bound, -1)
    return {"type": kind} | bounds


def _text(argument: Argument, annotation: Any, schema: Schema) -> Schema:
    field: Schema = {"type": "string"}
    # Only for `str`: the length of base64 is not that of its bytes, and other types read more texts than
    # those that the schema allows.
    field |= _only(schema, "minLength", "maxLength") if annotation is str else {}
    if written := _format(argument.reader, annotation, schema):
        field["format"] = written
    elif not argument.blank_is_value:
        field["minLength"] = max(1, field.get("minLength", 0))
    return field


def _format(reader: Reader, annotation: Any, schema: Schema) -> str | None:
    """The format of a type's text, if forms have it."""
    if annotation is datetime:
        with suppress(ConversionError):  # a type without a time zone
            reader.read("2026-01-31T12:00:00Z")
            return "date-time"
        return None
    written = schema.get("format")
    return written if written in _FORMATS else None


def _only(schema: Schema, *keys: str) -> Schema:
    return {key: schema[key] for key in keys if key in schema}
