"""
Forms: how the person at the client is asked for arguments that are missing.

A form is a flat object of fields, each of which is text, a number, yes or no, or a choice.
"""

from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from datetime import datetime
from math import inf, nextafter
from types import NoneType
from typing import Any, Final, Literal, TypeAlias, get_args

import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.json_schema import schema_of
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.kinds import is_constrained, is_enum, is_list, is_literal, is_union, plain
from promptkit.conversion.readers import reader_of
from promptkit.conversion.scalars import Reader
from promptkit.errors.exceptions import ArgumentErrors
from promptkit.protocol.jsonrpc import InvalidParams

__all__ = ["answers", "askable", "elicitation", "question", "requested_schema"]

Schema: TypeAlias = dict[str, Any]

#: What the text of a field may be said to be.
_FORMATS: Final = frozenset({"email", "uri", "date", "date-time"})

#: The fields for numbers, and the next number above a bound (1) or below it (-1). Forms have
#: no bounds that a number must not reach.
_NUMBERS: Final[dict[type, tuple[str, Callable[[Any, int], float]]]] = {
    int: ("integer", lambda bound, direction: bound + direction),
    float: ("number", lambda bound, direction: nextafter(bound, direction * inf)),
}


class _Answer(msgspec.Struct):
    """
    What came of a form.
    """

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, Any] | None = None


def askable(prompt: CompiledPrompt, errors: ArgumentErrors) -> tuple[Argument, ...]:
    """
    Return the arguments to ask for, in the order of the signature.

    There are none if the prompt does not ask, if more is wrong than that arguments are
    missing, or if one of them is a secret, which no form may ask for.

    Args:
        prompt:
            The prompt that was asked for.

        errors:
            What is wrong with its arguments.
    """
    # What was given is in the fault, unless it is a secret; a path leads into what was given.
    missing = {fault.argument for fault in errors.faults if fault.got is None and not fault.path}
    if not prompt.elicit or len(missing) < len(errors.faults):
        return ()
    wanted = tuple(argument for argument in prompt.arguments.ordered if argument.name in missing)
    if len(wanted) < len(missing) or any(argument.arg.secret for argument in wanted):
        return ()
    return wanted


def elicitation(
    prompt: CompiledPrompt,
    arguments: Iterable[Argument],
    *,
    modes: bool,
    multi_select: bool,
    again: bool = False,
) -> Schema:
    """
    Return the params of the ``elicitation/create`` request that asks for *arguments*.

    Args:
        prompt:
            The prompt that needs them.

        arguments:
            What `askable` returned.

        modes:
            Whether the revision has questions say that they are asked with a form.

        multi_select:
            Whether its forms may offer several choices at once.

        again:
            Whether they were asked for before, and left out.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#form-mode-elicitation-requests
    """
    arguments = tuple(arguments)
    mode = {"mode": "form"} if modes else {}
    return {
        **mode,
        "message": question(prompt, arguments, again=again),
        "requestedSchema": requested_schema(arguments, multi_select=multi_select),
    }


def question(prompt: CompiledPrompt, arguments: Iterable[Argument], *, again: bool = False) -> str:
    """
    Return one sentence that tells people why they are asked for *arguments*, or why *again*.
    """
    *others, last = (argument.title or argument.name for argument in arguments)
    needed = f"{', '.join(others)} and {last}" if others else last
    if again:
        return f"Not everything was entered: the prompt {prompt.title or prompt.name!r} still needs {needed}."
    return f"The prompt {prompt.title or prompt.name!r} needs {needed}."


def requested_schema(arguments: Iterable[Argument], *, multi_select: bool) -> Schema:
    """
    Return the schema of a form with a field for each of *arguments*, all of them required.

    Whatever a field may hold its argument reads, as far as a form can say so; text whose form
    it cannot say is described for people.

    Args:
        arguments:
            What to ask for.

        multi_select:
            Whether a field may offer several choices at once; if not, they are text.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#requested-schema
    """
    properties = {argument.name: _property(argument, multi_select=multi_select) for argument in arguments}
    return {"type": "object", "properties": properties, "required": list(properties)}


def answers(response: Any, names: Collection[str]) -> dict[str, Any] | None:
    """
    Return what a person entered into a form, by argument name; None if they would not.

    Args:
        response:
            The result of an ``elicitation/create`` request, decoded.

        names:
            What was asked for. Nothing else is returned, and not all of it may be there.

    Raises:
        InvalidParams: If it is no such result.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/client/elicitation#response-actions
    """
    try:
        answer = msgspec.convert(response, _Answer)
    except msgspec.ValidationError as error:
        msg = f"the answer to a form does not fit: {error}"
        raise InvalidParams(msg) from None
    if answer.action != "accept":
        return None
    return {name: value for name, value in (answer.content or {}).items() if name in names}


def _property(argument: Argument, *, multi_select: bool) -> Schema:
    """
    Return the schema of the field for one argument.
    """
    annotation = _bare(argument.annotation)
    schema = _schema(argument)
    chosen = _choice(argument.reader, annotation) or (
        _choices(annotation, schema) if multi_select and is_list(annotation) else None
    )
    field = chosen or _number(annotation, schema) or _text(argument, annotation, schema)
    # Where people choose they need not be told what they may write.
    said = {
        "title": argument.title,
        "description": argument.arg.description if chosen else argument.description,
    }
    return field | {key: text for key, text in said.items() if text}


def _bare(annotation: Any) -> Any:
    """
    Return a type without its names, its constraints, and None.
    """
    annotation = plain(annotation)
    if is_constrained(annotation):
        return _bare(annotation.__origin__)
    members = _members(annotation)
    return _bare(members[0]) if len(members) == 1 else annotation


def _members(annotation: Any) -> list[Any]:
    """
    Return the members of a union without None; a type that is none has no members.
    """
    members = get_args(annotation) if is_union(annotation) else ()
    return [member for member in members if member is not NoneType]


def _schema(argument: Argument) -> Schema:
    """
    Return the JSON Schema of an argument without null; ``{}`` if several alternatives are left.
    """
    schema = schema_of((argument,))["properties"][argument.name]
    members = [member for member in schema.get("anyOf", [schema]) if member.get("type") != "null"]
    return members[0] if len(members) == 1 else {}


def _choice(reader: Reader, annotation: Any) -> Schema | None:
    """
    Return the schema of a field to choose one value in; None if the values are not few.
    """
    if annotation is bool:
        return {"type": "boolean"}
    if not _has_few_values(annotation):
        return None
    # Values of two types may have one name; "" is what was not entered.
    return {"type": "string", "enum": list(dict.fromkeys(filter(None, reader.values)))}


def _has_few_values(annotation: Any) -> bool:
    """
    Return whether the reader of a type knows all of its values.
    """
    annotation = _bare(annotation)
    if members := _members(annotation):
        return all(map(_has_few_values, members))
    return annotation is bool or is_enum(annotation) or is_literal(annotation)


def _choices(annotation: Any, schema: Schema) -> Schema | None:
    """
    Return the schema of a field to choose several values in; None if the values are not few.
    """
    item = get_args(annotation)[0]
    reader = reader_of(item)
    items = _choice(reader, _bare(item)) if reader else None
    if items is None or "enum" not in items:
        return None
    return {"type": "array", "items": items} | _only(schema, "minItems", "maxItems")


def _number(annotation: Any, schema: Schema) -> Schema | None:
    """
    Return the schema of a field for a number; None if it is none, or more than its bounds counts.
    """
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
    """
    Return the schema of a field for text.
    """
    field: Schema = {"type": "string"}
    # The length of base64 is not that of its bytes, and other texts than the schema's are read, too.
    field |= _only(schema, "minLength", "maxLength") if annotation is str else {}
    if written := _format(argument.reader, annotation, schema):
        field["format"] = written
    elif not argument.blank_is_value:
        field["minLength"] = max(1, field.get("minLength", 0))
    return field


def _format(reader: Reader, annotation: Any, schema: Schema) -> str | None:
    """
    Return what the text of a type is said to be, if forms have a word for it.
    """
    if annotation is datetime:
        with suppress(ConversionError):  # of a type that has no time zone
            reader.read("2026-01-31T12:00:00Z")
            return "date-time"
        return None
    written = schema.get("format")
    return written if written in _FORMATS else None


def _only(schema: Schema, *keys: str) -> Schema:
    """
    Return the members of *schema* that are named.
    """
    return {key: schema[key] for key in keys if key in schema}
