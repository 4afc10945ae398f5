"""
Classes of pydantic: read, described and written as pydantic does it.

This is loaded for an annotation that is one of them, so that its author has loaded pydantic.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from inspect import signature
from itertools import islice
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ErrorDetails, to_json

from promptkit.errors.exceptions import shortened
from promptkit.errors.suggestions import nearest
from promptkit.types.errors import ABSENT, MAX_FAULTS, ConversionError
from promptkit.types.proxies import Surrogate

#: By the type of a schema: the type that is read in place of a class, what it takes, and an example.
_MODELS: Final[Mapping[Any, tuple[Any, str, Any]]] = {
    "object": (dict[str, Any], "a JSON object", {}),
    "array": (list[Any], "a list", []),
    "string": (str, "text", "text"),
    "integer": (int, "a whole number", 1),
    "number": (float, "a number", 1.5),
    "boolean": (bool, "yes or no", True),
}

#: How deep an example goes: a class that contains itself ends there.
_MAX_DEPTH: Final = 4

#: Older versions of pydantic cannot be asked to refuse what they would drop.
_MAY_REFUSE: Final = "extra" in signature(TypeAdapter.validate_json).parameters


class _Schemas(GenerateJsonSchema):
    """Without titles that repeat the names of members: a model pays for each word."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


@lru_cache(maxsize=256)
def pydantic_surrogate(kind: Any) -> Surrogate | None:
    """Return how a class of pydantic's is read; None if JSON cannot write all of it."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(schema_generator=_Schemas)
    except Exception:  # noqa: BLE001 (its author may define schemas, in any way)
        return None
    own = _resolved(schema, schema)
    model, words, _ = _MODELS.get(own.get("type"), (Any, "a value", None))
    properties = own.get("properties", {})
    choices = tuple(map(str, own.get("enum", ())))
    if choices or properties:
        words = f"one of {', '.join(choices)}" if choices else f"a JSON object with {', '.join(properties)}"
    return Surrogate(
        model,
        partial(_built, adapter, _options(adapter.core_schema), frozenset(_names(schema))),
        partial(adapter.dump_python, mode="json", by_alias=True),
        schema,
        words,
        _example(adapter, schema),
        choices,
    )


def forget_types() -> None:
    """Drop what is known of all classes until now. It is found out again when needed."""
    pydantic_surrogate.cache_clear()


def _resolved(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a schema refers to, or itself."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def _options(core_schema: Any) -> dict[str, Any]:
    """Return what has pydantic refuse members that it would drop; nothing if a class says what to do."""
    is_said = any("extra_fields_behavior" in node for node in _nodes(core_schema))
    return {"extra": "forbid"} if _MAY_REFUSE and not is_said else {}


def _nodes(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects within a schema."""
    if isinstance(schema, dict):
        yield schema
        schema = [*schema.values()]
    for part in schema if isinstance(schema, list | tuple) else ():
        yield from _nodes(part)


def _names(schema: Any) -> Iterator[str]:
    for node in _nodes(schema):
        if isinstance(properties := node.get("properties"), dict):
            yield from properties


def _built(adapter: TypeAdapter[Any], options: dict[str, Any], names: frozenset[str], value: Any) -> Any:
    try:
        return adapter.validate_json(to_json(value), **options)
    except ValidationError as error:
        found = islice(error.errors(include_url=False), MAX_FAULTS)
        raise ConversionError(inner=tuple(_fault(one, names) for one in found)) from None
    except Exception as error:  # noqa: BLE001 (an author's validator may refuse in any way)
        raise ConversionError(reason=f"is refused: {error}") from None


_EXPECTED: Final = "Input should be "


def _fault(error: ErrorDetails, names: frozenset[str]) -> ConversionError:
    """Return what pydantic says of one part in our words, as far as it says what would fit."""
    *_, last = ("", *error["loc"])
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{shortened(step)}" for step in error["loc"])
    got, said, told = error["input"], error["msg"], error.get("ctx", {})
    match error["type"]:
        case "missing":
            return ConversionError("a value", got=ABSENT, path=path)
        case "extra_forbidden" | "unexpected_keyword_argument":
            near = partial(nearest, str(last), sorted(names))
            return ConversionError(path=path, reason="is not a member of this object", nearest=near)
        case "literal_error" | "enum" if isinstance(got, str):
            near = partial(nearest, got, re.findall("'([^']*)'", str(told.get("expected"))))
            return ConversionError(said.removeprefix(_EXPECTED), got=got, path=path, nearest=near)
    if said.startswith(_EXPECTED):
        return ConversionError(said.removeprefix(_EXPECTED), got=got, path=path)
    return ConversionError(got=got, path=path, reason=f"is refused: {told.get('error') or said}")


def _example(adapter: TypeAdapter[Any], schema: Mapping[str, Any]) -> Any:
    """Return an example that fits; None if none is found."""
    example = _made_up(schema, schema, 0)
    try:
        adapter.validate_json(to_json(example))
    except Exception:  # noqa: BLE001 (an author's validator may refuse in any way)
        return None
    return example


def _made_up(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    known = [schema[word] for word in ("const", "default") if word in schema]
    known += [*schema.get("examples", ()), *schema.get("enum", ())]
    if known or depth > _MAX_DEPTH:
        return known[0] if known else None
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return _made_up(members[0], root, depth + 1)
    kind, members = schema.get("type"), schema.get("properties", {})
    if kind == "object":
        return {name: _made_up(members[name], root, depth + 1) for name in schema.get("required", ())}
    if kind == "array" and "items" in schema:
        return [_made_up(schema["items"], root, depth + 1)]
    return schema.get("minimum", _MODELS[kind][2] if kind in _MODELS else None)
