"""
The JSON Schema of a prompt's arguments, in the dialect 2020-12.

It is what forms and tools are built from. Clients send arguments as text all the same.

See https://json-schema.org/draft/2020-12/schema.
"""

from collections.abc import Iterable, Iterator
from functools import lru_cache
from types import NoneType
from typing import Any, Final, get_args

import msgspec
from msgspec import inspect as mi

from promptkit.catalog.arguments import Argument
from promptkit.conversion.descriptions import DECIMAL, INTEGER_KEY, bare, type_tree
from promptkit.conversion.readers import is_enum, is_list, is_literal, is_union, plain
from promptkit.conversion.registry import CUSTOMS
from promptkit.conversion.unstructuring import json_of
from promptkit.language.arg import NO_DEFAULT

__all__ = ["schema_of"]

#: Types of values without parts.
_FLAT: Final = (str, int, float, bool)

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

#: What msgspec says only in words, said so that a validator can check it.
_CLOCK: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9]"
_OFFSET: Final = rf"(?:[Zz]|[+-]{_CLOCK})"
_TIME: Final = rf"{_CLOCK}:[0-5][0-9](?:\.[0-9]+)?"
_DATE: Final = r"(?!0000)[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])"
_KEYS: Final[dict[type[mi.Type], dict[str, str]]] = {
    mi.IntType: {"pattern": INTEGER_KEY},
    mi.FloatType: {"pattern": DECIMAL},
    mi.DecimalType: {"pattern": DECIMAL},
    mi.DateType: {"format": "date"},
    mi.UUIDType: {"format": "uuid"},
}
_AMOUNT: Final = r"[0-9]+(?:\.[0-9]+)?"
#: Weeks, months and years have no fixed length, or are no unit to msgspec.
_DURATION: Final = (
    rf"^[+-]?[Pp](?!$)(?:{_AMOUNT}[Dd])?(?:[Tt](?!$)(?:{_AMOUNT}[Hh])?(?:{_AMOUNT}[Mm])?(?:{_AMOUNT}[Ss])?)?$"
)
_BASE64: Final = "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$"


def schema_of(arguments: Iterable[Argument]) -> dict[str, Any]:
    """
    Return the JSON Schema of an object with *arguments* as its members.
    """
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


def _property(argument: Argument, definitions: dict[str, Any]) -> dict[str, Any]:
    """
    Return the schema of one argument, with what its author says of it.
    """
    said = {
        "title": argument.title,
        "description": _described(argument),
        "examples": [json_of(example) for example in argument.arg.examples] or None,
    }
    schema = {key: value for key, value in said.items() if value} | _schema(argument.annotation, definitions)
    has_default = argument.default is not NO_DEFAULT and argument.default is not None
    # A form would send this default, and what stands in the environment would never count.
    if has_default and not (argument.arg.secret or argument.arg.env):
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
    """
    Return the schema of a type; what it refers to goes into *definitions*.
    """
    if annotation in _FLAT or is_literal(annotation):
        found: dict[str, Any] = msgspec.json.decode(_flat(annotation))
        return found
    return _made(annotation, definitions)


@lru_cache(maxsize=1024)
def _flat(annotation: Any) -> bytes:
    """
    Return the schema of a type that refers to no other, as JSON: most parameters share a few such types.
    """
    return msgspec.json.encode(_made(annotation, {}))


def _made(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """
    Return what `_schema` does, made anew.
    """
    try:
        (schema,), components = msgspec.json.schema_components(
            [annotation],
            schema_hook=_custom,
            ref_template="#/$defs/{name}",
        )
    except TypeError:
        return _other(plain(annotation), definitions)
    definitions |= {name: _mended(component) for name, component in components.items()}
    mended: dict[str, Any] = _mended(schema)
    _refine(type_tree(annotation), mended, definitions, set())
    return mended


def _refine(tree: mi.Type, schema: Any, definitions: dict[str, Any], seen: set[str]) -> None:
    """
    Say in *schema* what msgspec does not: how the keys of dicts, and times, are written.
    """
    tree = bare(tree)
    if not isinstance(schema, dict):
        return
    if name := schema.get("$ref", "").removeprefix("#/$defs/"):
        if name not in seen:
            _refine(tree, definitions[name], definitions, seen | {name})
        return
    if isinstance(tree, mi.DictType) and (keys := _keys(tree.key_type)):
        schema["propertyNames"] = keys
    if isinstance(tree, mi.DateTimeType | mi.TimeType):
        schema["pattern"] = _written(tree)
    for part, inner in _parts(tree, schema):
        _refine(part, inner, definitions, seen)


def _parts(tree: mi.Type, schema: dict[str, Any]) -> Iterator[tuple[mi.Type, Any]]:
    """
    Return the parts of a type, each with its schema.
    """
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


def _keys(tree: mi.Type) -> dict[str, Any]:
    """
    Return the schema of the keys of a dict, which JSON writes as text; ``{}`` if that is all.
    """
    if isinstance(tree, mi.EnumType):
        return {"enum": [str(member.value) for member in tree.cls]}
    if isinstance(tree, mi.LiteralType):
        return {"enum": [str(value) for value in tree.values]}
    if isinstance(tree, mi.CustomType):
        return _custom(tree.cls)
    if isinstance(tree, mi.DateTimeType | mi.TimeType):
        return {"pattern": _written(tree)}
    return dict(_KEYS.get(type(tree), {}))


def _written(tree: mi.DateTimeType | mi.TimeType) -> str:
    """Return the pattern of a time as msgspec takes it, with an offset where it has to have one."""
    date = f"{_DATE}[Tt ]" if isinstance(tree, mi.DateTimeType) else ""
    offset = {True: _OFFSET, False: "", None: f"(?:{_OFFSET})?"}[tree.tz]
    return f"^{date}{_TIME}{offset}$"


def _other(annotation: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    """
    Return the schema of a type that msgspec does not know, and a reader does.
    """
    if is_union(annotation):
        members = [_schema(m, definitions) for m in get_args(annotation) if m is not NoneType]
        return {"anyOf": members} if len(members) > 1 else members[0]
    if is_list(annotation):
        return {"type": "array", "items": _schema(get_args(annotation)[0], definitions)}
    values = annotation if is_enum(annotation) else get_args(annotation) if is_literal(annotation) else ()
    names = [json_of(value) for value in values if value is not None]
    return {"enum": names} if names else {}


def _custom(kind: type) -> dict[str, Any]:
    """
    Return the schema of a registered type. Raises KeyError for any other.
    """
    return dict(CUSTOMS[kind].schema)


def _mended(schema: Any) -> Any:
    """
    Return *schema* as exact as what promptkit takes.
    """
    if isinstance(schema, list):
        return [_mended(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: _mended(value) for key, value in schema.items() if key != "uniqueItems"}
    if found.get("contentEncoding") == "base64":
        found["pattern"] = _BASE64
    if found.get("format") == "decimal":
        found["type"] = ["string", "number"]
        found["pattern"] = DECIMAL
    if found.get("format") == "duration":
        found["pattern"] = _DURATION
    return found
