"""Sample arguments: values generated from the JSON Schema of each parameter, the same in every process."""

import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, Final

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.types.errors import ConversionError
from promptkit.types.schemas import Definitions, Schema, type_schema
from promptkit.types.unstructuring import text_of

#: The smallest files, in base64: an image of one pixel, and empty audio.
PNG: Final = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC"
WAV: Final = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQIAAACAgA=="

#: A sample string for each format that a schema can name.
_FORMATS: Final = {
    "date": "2026-01-15",
    "date-time": "2026-01-15T12:00:00+00:00",
    "time": "12:00:00+00:00",
    "duration": "PT30M",
    "uuid": "7a1c5f0e-2b3d-4e6f-8a9b-0c1d2e3f4a5b",
    "uri": "https://example.com/sample",
    "email": "user@example.com",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
}

#: Samples for other strings. The first one that the schema's pattern and the parameter allow is used.
_TEXTS: Final = (
    *("sample", *_FORMATS.values(), "2026-01-15T12:00:00", "12:00:00", PNG, WAV),
    *("1", "1.5", "1.2.3", "a", "A", "A1", "ABC-123", "en-US", "#aabbcc", "sample.txt"),
)

#: Maximum number of values to try for one argument, and maximum depth of nested schemas.
_MAX_TRIED: Final = 64
_MAX_DEPTH: Final = 8

#: Maximum number of an argument's choices. If it has more, no calls are added for its choices.
_MAX_CHOICES: Final = 20


def sample_calls(arguments: Arguments) -> list[dict[str, str]]:
    """
    Return the arguments of up to two calls, as a client sends them: only the required arguments, and all.

    Args:
        arguments:
            The arguments of a prompt or a resource.

    Returns:
        The calls, which use the author's examples where there are any. There are no calls if no value is
        known for a required argument.
    """
    texts = {argument.name: sample_text(argument) for argument in arguments.ordered}
    complete = {name: text for name, text in texts.items() if text is not None}
    required = [argument.name for argument in arguments.ordered if not argument.has_default]
    if not complete.keys() >= {*required}:
        return []
    minimal = {name: complete[name] for name in required}
    return [minimal] if minimal == complete else [minimal, complete]


def sample_calls_with_choices(arguments: Arguments) -> list[dict[str, str]]:
    """Return the calls from `sample_calls`, and one more call for each choice that these do not use."""
    calls = sample_calls(arguments)
    for argument in arguments.ordered if calls else ():
        for choice in _choices(argument):
            if all(call.get(argument.name) != choice for call in calls):
                calls.append({**calls[1 % len(calls)], argument.name: choice})
    return calls


def _choices(argument: Argument) -> list[str]:
    """Return all values of a `Literal`, an `Enum` or a `bool` as text; empty if there are too many."""
    definitions = Definitions({}, by_position=True)
    schema, _ = type_schema(argument.annotation, definitions)
    choices: list[Any] = []
    for alternative in schema.get("anyOf", [schema]):
        name = alternative.get("$ref", "").rpartition("/")[2]
        chosen = definitions.schemas.get(name, alternative)
        choices += [True, False] if chosen.get("type") == "boolean" else chosen.get("enum", [])
    return list(map(text_of, choices)) if len(choices) <= _MAX_CHOICES else []


def sample_text(argument: Argument) -> str | None:
    """
    Return a value for an argument, as text; None if no value is known.

    The value is the author's first example or, if there is none, a valid value that is not the default.
    """
    if argument.examples:
        return text_of(argument.examples[0])
    definitions = Definitions({}, by_position=True)
    schema, _ = type_schema(argument.annotation, definitions)
    values = islice(_values(schema, definitions.schemas), _MAX_TRIED)
    return next((text for text in map(text_of, values) if _differs_from_default(argument, text)), None)


def _differs_from_default(argument: Argument, text: str) -> bool:
    try:
        return bool(text or argument.blank_is_value) and argument.reader.read(text) != argument.default
    except ConversionError:
        return False


def _values(schema: Schema, definitions: Mapping[str, Schema], depth: int = 0) -> Iterator[Any]:
    """Yield JSON values that a schema is likely to allow, or nothing if it is nested too deeply."""
    if depth > _MAX_DEPTH:
        return
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    yield from schema.get("examples", ())
    if "const" in schema or "enum" in schema:
        yield from schema.get("enum", [schema.get("const")])
    elif alternatives := schema.get("anyOf", schema.get("oneOf")):
        for alternative in alternatives:
            yield from _values(alternative, definitions, depth + 1)
    else:
        yield from _typed_values(schema, definitions, depth + 1)


def _typed_values(schema: Schema, definitions: Mapping[str, Schema], depth: int) -> Iterator[Any]:
    match schema.get("type", "string"):
        case "integer" | "number":
            yield from _numbers(schema)
        case "boolean":
            yield from (True, False)
        case "array":
            yield from _arrays(schema, definitions, depth)
        case "object":
            yield from _objects(schema, definitions, depth)
        case "string":
            yield from _strings(schema)


def _strings(schema: Schema) -> Iterator[str]:
    if (text := _FORMATS.get(schema.get("format", ""))) is not None:
        yield text
    if (pattern := schema.get("pattern")) is not None:
        yield from (text for text in _TEXTS if re.search(pattern, text))
    else:
        yield from (text.ljust(schema.get("minLength", 0), "x")[: schema.get("maxLength")] for text in _TEXTS)


def _numbers(schema: Schema) -> Iterator[float]:
    """Yield small multiples, multiples close to the bounds, and the number midway between the bounds."""
    step = schema.get("multipleOf", 1 if schema["type"] == "integer" else 0.5)
    keys = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum")
    bounds = [schema[key] for key in keys if key in schema]
    for number in (3 * step, 2 * step, step, *(bound // step * step for bound in bounds)):
        yield from (number, number + step, number - step)
    if bounds and schema["type"] == "number":
        yield sum(bounds) / len(bounds)


def _arrays(schema: Schema, definitions: Mapping[str, Schema], depth: int) -> Iterator[list[Any]]:
    places = [next(_values(item, definitions, depth), None) for item in schema.get("prefixItems", ())]
    count = max(schema.get("minItems", 1) - len(places), 0 if places else 1)
    items = list(islice(_values(schema.get("items", {}), definitions, depth), count))
    yield places + items
    yield places + (items * count)[:count]
    yield []


def _objects(schema: Schema, definitions: Mapping[str, Schema], depth: int) -> Iterator[dict[str, Any]]:
    key = next(_strings(schema.get("propertyNames", {})), "")
    properties = schema.get("properties", {key: schema.get("additionalProperties") or {}})
    for names in (properties, schema.get("required", ())):
        values = ((name, _values(properties[name], definitions, depth)) for name in names)
        yield {name: value for name, sent in values for value in islice(sent, 1)}
