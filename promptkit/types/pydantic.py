"""
Surrogates for Pydantic models, which Pydantic itself validates, describes and serializes.

This module is imported only if an annotation contains a Pydantic model, so Pydantic is already imported.
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
from promptkit.types.content import Surrogate
from promptkit.types.errors import ABSENT, MAX_ERRORS, ConversionError

#: The type to parse in place of a model, its description, and an example, keyed by the type of the model's
#: schema.
_MODELS: Final[Mapping[Any, tuple[Any, str, Any]]] = {
    "object": (dict[str, Any], "a JSON object", {}),
    "array": (list[Any], "a list", []),
    "string": (str, "text", "text"),
    "integer": (int, "a whole number", 1),
    "number": (float, "a number", 1.5),
    "boolean": (bool, "yes or no", True),
}

#: The maximum depth of an example, so that examples of recursive models are finite.
_MAX_DEPTH: Final = 4

#: Whether this version of Pydantic has the option to reject unknown members.
_SUPPORTS_EXTRA: Final = "extra" in signature(TypeAdapter.validate_json).parameters


class _Schemas(GenerateJsonSchema):
    """
    A schema generator that omits titles that only repeat member names, because every word costs tokens.
    """

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002
        return False


@lru_cache(maxsize=256)
def pydantic_surrogate(kind: Any) -> Surrogate | None:
    """Return the surrogate for a Pydantic model; None if the model cannot be represented in JSON."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(kind)
        schema = adapter.json_schema(schema_generator=_Schemas)
    except Exception:  # noqa: BLE001 (custom schemas of authors can raise anything)
        return None
    root = _resolve_reference(schema, schema)
    model, words, _ = _MODELS.get(root.get("type"), (Any, "a value", None))
    properties = root.get("properties", {})
    choices = tuple(map(str, root.get("enum", ())))
    if choices or properties:
        words = f"one of {', '.join(choices)}" if choices else f"a JSON object with {', '.join(properties)}"
    return Surrogate(
        model,
        partial(
            _build, adapter, _validation_options(adapter.core_schema), frozenset(_property_names(schema))
        ),
        partial(adapter.dump_python, mode="json", by_alias=True),
        schema,
        words,
        _example(adapter, schema),
        choices,
    )


def clear_type_cache() -> None:
    """Clear the cache of surrogates."""
    pydantic_surrogate.cache_clear()


def _resolve_reference(schema: Mapping[str, Any], root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return *schema*, or the schema to which it refers."""
    while "$ref" in schema:
        schema = root["$defs"][schema["$ref"].removeprefix("#/$defs/")]
    return schema


def _validation_options(core_schema: Any) -> dict[str, Any]:
    """Return Pydantic's option to reject unknown members, unless a model configures how to treat them."""
    is_explicit = any("extra_fields_behavior" in node for node in _walk_objects(core_schema))
    return {"extra": "forbid"} if _SUPPORTS_EXTRA and not is_explicit else {}


def _walk_objects(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield all objects in a schema, including the schema itself."""
    if isinstance(schema, dict):
        yield schema
        schema = [*schema.values()]
    for part in schema if isinstance(schema, list | tuple) else ():
        yield from _walk_objects(part)


def _property_names(schema: Any) -> Iterator[str]:
    for node in _walk_objects(schema):
        if isinstance(properties := node.get("properties"), dict):
            yield from properties


def _build(adapter: TypeAdapter[Any], options: dict[str, Any], names: frozenset[str], value: Any) -> Any:
    try:
        return adapter.validate_json(to_json(value), **options)
    except ValidationError as error:
        errors = islice(error.errors(include_url=False), MAX_ERRORS)
        raise ConversionError(inner=tuple(_convert_error(details, names) for details in errors)) from None
    except Exception as error:  # noqa: BLE001 (validators of authors can raise anything)
        raise ConversionError(reason=f"is invalid: {error}") from None


_EXPECTED: Final = "Input should be "


def _convert_error(error: ErrorDetails, names: frozenset[str]) -> ConversionError:
    """Convert a Pydantic error, using promptkit's wording where possible."""
    *_, last = ("", *error["loc"])
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{shortened(step)}" for step in error["loc"])
    got, message, context = error["input"], error["msg"], error.get("ctx", {})
    match error["type"]:
        case "missing":
            return ConversionError("a value", got=ABSENT, path=path)
        case "extra_forbidden" | "unexpected_keyword_argument":
            suggestion = partial(nearest, str(last), sorted(names))
            return ConversionError(path=path, reason="is not a member of this object", nearest=suggestion)
        case "literal_error" | "enum" if isinstance(got, str):
            suggestion = partial(nearest, got, re.findall("'([^']*)'", str(context.get("expected"))))
            return ConversionError(message.removeprefix(_EXPECTED), got=got, path=path, nearest=suggestion)
    if message.startswith(_EXPECTED):
        return ConversionError(message.removeprefix(_EXPECTED), got=got, path=path)
    return ConversionError(got=got, path=path, reason=f"is invalid: {context.get('error') or message}")


def _example(adapter: TypeAdapter[Any], schema: Mapping[str, Any]) -> Any:
    """Return an example of the model as JSON-compatible data; None if no valid one can be generated."""
    example = _generate(schema, schema, 0)
    try:
        adapter.validate_json(to_json(example))
    except Exception:  # noqa: BLE001 (validators of authors can raise anything)
        return None
    return example


def _generate(schema: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> Any:
    schema = _resolve_reference(schema, root)
    candidates = [schema[word] for word in ("const", "default") if word in schema]
    candidates += [*schema.get("examples", ()), *schema.get("enum", ())]
    if candidates or depth > _MAX_DEPTH:
        return candidates[0] if candidates else None
    if members := schema.get("anyOf") or schema.get("oneOf"):
        return _generate(members[0], root, depth + 1)
    kind, members = schema.get("type"), schema.get("properties", {})
    if kind == "object":
        return {name: _generate(members[name], root, depth + 1) for name in schema.get("required", ())}
    if kind == "array" and "items" in schema:
        return [_generate(schema["items"], root, depth + 1)]
    return schema.get("minimum", _MODELS[kind][2] if kind in _MODELS else None)
