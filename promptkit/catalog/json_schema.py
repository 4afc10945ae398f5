"""
The JSON Schema of a prompt's arguments, in the dialect 2020-12.

Forms and tools are built from it. Clients send the arguments of prompts as text all the same, and those of
tools as JSON.

See https://json-schema.org/draft/2020-12/schema.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import NoneType
from typing import Any, Final, get_args

import msgspec
from msgspec import inspect as mi

from promptkit.catalog.arguments import Argument
from promptkit.conversion.kinds import bare, is_enum, is_list, is_literal, is_union, plain, type_tree
from promptkit.conversion.scalars import BUILT_IN, SCALARS, Schema, scalar_of
from promptkit.conversion.unstructuring import can_be_sent, json_of
from promptkit.language.arg import NO_DEFAULT

__all__ = ["alternative_of", "schema_of"]

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"


def _mark(schema: Schema) -> Any:
    """Return how msgspec marks text that has a form."""
    return schema.get("format") or schema.get("contentEncoding")


#: More exact schemas than those of msgspec, by its mark.
_EXACT: Final = {mark: SCALARS[kind].schema for kind in BUILT_IN if (mark := _mark(SCALARS[kind].schema))}


def schema_of(arguments: Iterable[Argument]) -> dict[str, Any]:
    """Return the JSON Schema of an object with *arguments* as its members."""
    arguments = list(arguments)
    definitions: dict[str, Any] = {}
    properties = {argument.name: _property(argument, definitions) for argument in arguments}
    schema: dict[str, Any] = {"$schema": DIALECT, "type": "object", "properties": properties}
    if required := [argument.name for argument in arguments if argument.required]:
        schema["required"] = required
    schema["additionalProperties"] = False
    if definitions:
        schema["$defs"] = definitions
    return schema


def alternative_of(argument: Argument) -> dict[str, Any]:
    """Return the JSON Schema of an argument without null; ``{}`` if several alternatives are left."""
    schema = schema_of((argument,))["properties"][argument.name]
    members = [member for member in schema.get("anyOf", [schema]) if member.get("type") != "null"]
    return members[0] if len(members) == 1 else {}


def _property(argument: Argument, definitions: dict[str, Any]) -> dict[str, Any]:
    by_author = {
        "title": argument.title,
        "description": _described(argument),
        "examples": [json_of(example) for example in argument.arg.examples if can_be_sent(example)] or None,
    }
    schema = {key: value for key, value in by_author.items() if value}
    schema |= _schema(argument.annotation, definitions)
    has_default = argument.default is not NO_DEFAULT and argument.default is not None
    # A form would send this default, and what stands in the environment would never count.
    if has_default and not (argument.arg.secret or argument.arg.env) and can_be_sent(argument.default):
        schema["default"] = json_of(argument.default)
    return schema


def _described(argument: Argument) -> str | None:
    """What the author says of an argument, and where its default and its time zone come from."""
    arg = argument.arg
    clauses = [f"default from ${arg.env}"] if arg.env else []
    if arg.timezone is not None:
        clauses.append(f"in {arg.timezone} unless it has an offset")
    implied = "; ".join(clauses)
    if not (arg.description and implied):
        return arg.description or implied
    return f"{arg.description} ({implied})"


def _schema(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type. The schemas that it refers to are added to *definitions*."""
    if is_literal(annotation):
        found: dict[str, Any] = msgspec.json.decode(_literal_schema(annotation))
        return found
    scalar = SCALARS.get(annotation) if isinstance(annotation, type) else None
    if scalar is not None and scalar.tree is not None and not scalar.facets:
        return dict(scalar.schema)
    return _made(annotation, definitions)


@lru_cache(maxsize=1024)
def _literal_schema(annotation: Any) -> bytes:
    """Return the schema as JSON. Most parameters share a few such types."""
    return msgspec.json.encode(_made(annotation, {}))


def _made(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    try:
        (schema,), components = msgspec.json.schema_components(
            [annotation],
            schema_hook=_registered,
            ref_template="#/$defs/{name}",
        )
    except TypeError:
        return _other(plain(annotation), definitions)
    definitions |= {name: _exact(component) for name, component in components.items()}
    exact: dict[str, Any] = _exact(schema)
    _refine(type_tree(annotation), exact, definitions, frozenset())
    return exact


def _registered(kind: type) -> dict[str, Any]:
    return dict(SCALARS[kind].schema)


def _exact(schema: Any) -> Any:
    """Return a schema of msgspec's that is as exact as what promptkit takes."""
    if isinstance(schema, list):
        return [_exact(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _exact(value) for key, value in schema.items() if key != "uniqueItems"}
    mark = _mark(found)
    return {**found, **_EXACT[mark]} if isinstance(mark, str) and mark in _EXACT else found


def _refine(tree: mi.Type, schema: Any, definitions: dict[str, Any], seen: frozenset[str]) -> None:
    """Add to *schema* what msgspec leaves out: the text of keys, and of dates and times."""
    tree = bare(tree)
    if not isinstance(schema, dict):
        return
    if name := schema.get("$ref", "").removeprefix("#/$defs/"):
        if name not in seen:
            _refine(tree, definitions[name], definitions, seen | {name})
        return
    if isinstance(tree, mi.DictType) and (keys := _key_schema(tree.key_type)):
        schema["propertyNames"] = keys
    if (scalar := scalar_of(tree)) is not None:
        schema.update(scalar.facets_of(tree))
    for part, inner in _parts(tree, schema):
        _refine(part, inner, definitions, seen)


def _parts(tree: mi.Type, schema: dict[str, Any]) -> Iterator[tuple[mi.Type, Any]]:
    """Yield the parts of a type, each with its schema."""
    properties = schema.get("properties", {})
    prefix = schema.get("prefixItems", [])
    if isinstance(tree, mi.DictType):
        yield tree.value_type, schema.get("additionalProperties")
    elif isinstance(tree, mi.ListType | mi.SetType | mi.FrozenSetType | mi.VarTupleType):
        yield tree.item_type, schema.get("items")
    elif isinstance(tree, mi.TupleType):
        yield from zip(tree.item_types, prefix, strict=False)
    elif isinstance(tree, mi.UnionType):
        yield from zip(tree.types, schema.get("anyOf", []), strict=False)
    elif isinstance(tree, mi.NamedTupleType):
        yield from zip((field.type for field in tree.fields), prefix, strict=False)
    elif isinstance(tree, mi.TypedDictType | mi.DataclassType | mi.StructType):
        yield from ((field.type, properties.get(field.encode_name)) for field in tree.fields)


def _key_schema(tree: mi.Type) -> dict[str, Any]:
    """Return the schema of the keys of a dict, which JSON writes as text; ``{}`` if any text is a key."""
    if isinstance(tree, mi.EnumType):
        return {"enum": [str(member.value) for member in tree.cls]}
    if isinstance(tree, mi.LiteralType):
        return {"enum": [str(value) for value in tree.values]}
    scalar = scalar_of(tree)
    return {} if scalar is None else dict(scalar.key_schema_of(tree))


def _other(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type that msgspec does not support, and a reader does."""
    if is_union(annotation):
        members = [_schema(m, definitions) for m in get_args(annotation) if m is not NoneType]
        return {"anyOf": members} if len(members) > 1 else members[0]
    if is_list(annotation):
        return {"type": "array", "items": _schema(get_args(annotation)[0], definitions)}
    values = annotation if is_enum(annotation) else get_args(annotation) if is_literal(annotation) else ()
    names = [json_of(value) for value in values if value is not None]
    return {"enum": names} if names else {}
