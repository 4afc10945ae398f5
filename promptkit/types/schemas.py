"""
The JSON Schema of a type, in the subset that clients convert for their models.

The rules are those of the most limited converters:

- Choices have a ``type``, are in the author's order, and form an ``anyOf`` if they have several types.
- Nested types are inlined. Only recursive classes are references.
- Arrays have one schema for all items, and the number of items, but no schema per position.
- ``type`` is a string, objects allow additional members, and patterns have no lookaround.
- Formats are also described in words, wherever a value has a name.
"""

import inspect
import re
from collections.abc import Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, TypeAlias, get_args

from msgspec import NODEFAULT, Struct
from msgspec import inspect as mi

from promptkit.types.choices import Orders, orders_of, values_of
from promptkit.types.descriptions import describe, describe_choices, described, expected_of
from promptkit.types.kinds import (
    fields_of,
    hints_of,
    is_enum,
    is_list,
    is_literal,
    is_union,
    plain,
    surrogate_of,
)
from promptkit.types.proxies import Surrogate
from promptkit.types.readers import reader_of
from promptkit.types.scalars import SCALARS, scalar_of
from promptkit.types.unstructuring import can_be_sent, json_of

Schema: TypeAlias = dict[str, Any]


class Definitions(Struct):
    """
    The ``$defs`` of a schema: recursive classes.

    With *places*, arrays have a schema per position. With *brief*, descriptions do not repeat an outline.
    """

    schemas: dict[str, Schema]
    places: bool = False
    brief: bool = False
    _names: dict[Any, str] = {}

    def has(self, kind: Any) -> bool:
        """Whether a class was referred to."""
        return kind in self._names

    def refer(self, kind: Any, label: str = "") -> Schema:
        """Return a reference to a class, or to a definition with a label."""
        return {"$ref": f"#/$defs/{self.name(kind, label)}"}

    def name(self, kind: Any, label: str = "") -> str:
        """Return the name of a definition."""
        if kind not in self._names:
            name = re.sub(r"\W+", "_", label or getattr(kind, "__name__", str(kind)))
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
        return self._names[kind]


def schema_of_surrogate(surrogate: Surrogate, definitions: Definitions) -> Schema:
    """Return the schema of a surrogate, with its own definitions inlined unless they are recursive."""
    defined = surrogate.schema.get("$defs", {})

    def inline_references(node: Any, ancestors: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [inline_references(part, ancestors) for part in node]
        if not isinstance(node, Mapping):
            return node
        inlined = {key: inline_references(part, ancestors) for key, part in node.items()}
        if inlined.get("additionalProperties") is False:
            del inlined["additionalProperties"]
        # A member of an object can have the name "$ref", too.
        return (
            inlined | resolve_reference(inlined.pop("$ref"), ancestors)
            if isinstance(inlined.get("$ref"), str)
            else inlined
        )

    def resolve_reference(reference: str, ancestors: frozenset[str]) -> Schema:
        name = reference.rpartition("/")[2]
        kind = (surrogate.build, name)
        if name not in ancestors and not definitions.has(kind):
            schema: Schema = inline_references(defined[name], ancestors | {name})
            if not definitions.has(kind):
                return schema
            definitions.schemas[definitions.name(kind, name)] = schema
        return definitions.refer(kind, name)

    root = {key: part for key, part in surrogate.schema.items() if key != "$defs"}
    inlined: Schema = inline_references(root, frozenset())
    return inlined


#: JSON types by Python type.
_JSON_TYPES: Final = {NoneType: "null", bool: "boolean", int: "integer", float: "number", str: "string"}

#: Keywords for the constraints of `msgspec.Meta`, except lengths.
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}

#: Syntax that some regular expression engines lack: lookaround, backreferences, named groups and anchors.
_UNPORTABLE: Final = re.compile(r"\(\?[^:]|\\[1-9AZ]")

_NULL: Final = {"type": "null"}

_LISTS: Final = (mi.ListType, mi.SetType, mi.FrozenSetType, mi.VarTupleType)


def type_schema(annotation: Any, definitions: Definitions) -> tuple[Schema, str]:
    """
    Return the schema of a type, and a description of its format; ``""`` if it needs none.

    Args:
        annotation:
            A type that promptkit supports.

        definitions:
            Receives the definitions that the schema refers to.
    """
    annotation = plain(annotation)
    if is_literal(annotation) or is_enum(annotation):
        values = get_args(annotation) if is_literal(annotation) else annotation
        return _choices(values), _form_of_choices(values)
    scalar = SCALARS.get(annotation) if isinstance(annotation, type) else None
    if scalar is not None and scalar.schema.keys() == {"type"} and not scalar.facets:
        return dict(scalar.schema), ""  # a fast path for most parameters: text, numbers and booleans
    if (surrogate := surrogate_of(annotation)) is not None:
        return schema_of_surrogate(surrogate, definitions), _form_of_surrogate(surrogate)
    try:
        tree = mi.type_info(annotation)
    except TypeError:
        return _composed(annotation, definitions)
    writer = _Writer(definitions, orders_of(annotation), frozenset())
    return writer.schema(tree), writer.form(tree)


def with_words(schema: Schema, words: str) -> Schema:
    """Add a description to *schema*, including inside an optional type, where some clients look for it."""
    if not words:
        return schema
    described = {**schema, "description": words}
    members = schema.get("anyOf", [])
    if len(members) == 2 and members[1] == _NULL:
        described["anyOf"] = [{**members[0], "description": words}, _NULL]
    return described


def _composed(annotation: Any, definitions: Definitions) -> tuple[Schema, str]:
    """Return the schema and description of a type that msgspec does not support, but whose parts it does."""
    parts = [type_schema(part, definitions) for part in get_args(annotation) if part is not NoneType]
    schemas, forms = [schema for schema, _ in parts], [form for _, form in parts]
    null = [_NULL] if NoneType in get_args(annotation) else []
    schema: Schema = {}
    if is_list(annotation):
        schema = {"type": "array", "items": schemas[0]}
    elif is_union(annotation):
        schema = _any_of([*schemas, *null])
    if not any(forms):
        return schema, ""
    return schema, expected_of(annotation)


def _form_of_surrogate(surrogate: Surrogate) -> str:
    """Describe the format of a surrogate; return ``""`` if it has parts, which the schema describes."""
    return surrogate.expected if surrogate.schema.get("type") == "string" else ""


class _Writer(Struct):
    """A writer of schemas for types as `msgspec.inspect` returns them, inside the classes *ancestors*."""

    definitions: Definitions
    orders: Orders
    ancestors: frozenset[Any]

    def schema(self, tree: mi.Type) -> Schema:  # noqa: C901 (one for each kind of type)
        """Return the schema of a type."""
        if isinstance(tree, mi.Metadata):
            return {**self.schema(tree.type), **(tree.extra_json_schema or {})}
        if (scalar := scalar_of(tree)) is not None:
            return _portable({**scalar.schema, **_bounds(tree), **scalar.facets_of(tree)})
        if (surrogate := surrogate_of(getattr(tree, "cls", None))) is not None:
            return schema_of_surrogate(surrogate, self.definitions)
        schema: Schema = {}
        match tree:
            case mi.NoneType():
                schema = _NULL
            case mi.UnionType():
                null_last = sorted(tree.types, key=lambda part: isinstance(part, mi.NoneType))
                schema = _any_of(map(self.schema, null_last))
            case mi.EnumType() | mi.LiteralType():
                schema = _choices(values_of(tree, self.orders))
            case mi.ListType() | mi.SetType() | mi.FrozenSetType() | mi.VarTupleType():
                schema = {"type": "array", "items": self.schema(tree.item_type), **_length(tree, "Items")}
            case mi.TupleType():
                schema = self._fixed_array([*map(self.schema, tree.item_types)], len(tree.item_types))
            case mi.DictType():
                schema = self._object(tree)
            case mi.TypedDictType() | mi.DataclassType() | mi.StructType() | mi.NamedTupleType():
                schema = self._record(tree)
        return schema

    def form(self, tree: mi.Type) -> str:
        """Describe the format of a type; return ``""`` if its JSON types are enough."""
        tree = plain(tree)
        if (surrogate := surrogate_of(getattr(tree, "cls", None))) is not None:
            return _form_of_surrogate(surrogate)
        if isinstance(tree, mi.LiteralType | mi.EnumType):
            return _form_of_choices(values_of(tree, self.orders))
        if isinstance(tree, mi.UnionType):
            has_details = any(map(self.form, tree.types))
        elif isinstance(tree, _LISTS):
            has_details = bool(_length(tree, "Items") or self.form(tree.item_type))
        elif scalar_of(tree) is not None:
            has_details = bool(_bounds(tree)) or self.schema(tree).keys() != {"type"}
        else:
            has_details = _is_array(tree) or isinstance(tree, mi.DictType)
        if not has_details:
            return ""
        return describe(tree, self.orders)

    def _object(self, tree: mi.DictType) -> Schema:
        keys = self._key(plain(tree.key_type))
        names = {"propertyNames": keys} if keys else {}
        values = self.schema(tree.value_type)
        return {"type": "object", **names, "additionalProperties": values, **_length(tree, "Properties")}

    def _record(self, tree: Any) -> Schema:
        """Return the schema of a class, or a reference to it if it is recursive."""
        kind, definitions = tree.cls, self.definitions
        if kind in self.ancestors or definitions.has(kind):
            return definitions.refer(kind)
        hints = hints_of(getattr(kind, "__origin__", kind)).values()
        writer = _Writer(definitions, {**self.orders, **orders_of(*hints)}, self.ancestors | {kind})
        docstring = _docstring(tree)
        schema = {"description": docstring} if docstring else {}
        schema |= writer._array(tree) if _is_array(tree) else writer._members(tree)
        if not definitions.has(kind):
            return schema
        definitions.schemas[definitions.name(kind)] = schema
        return definitions.refer(kind)

    def _array(self, tree: Any) -> Schema:
        fields = [self.schema(field.type) for field in tree.fields]
        tag = [] if getattr(tree, "tag", None) is None else [_choices([tree.tag])]
        optional = next((i for i, field in enumerate(reversed(tree.fields)) if field.required), len(fields))
        # msgspec accepts longer arrays for a struct.
        is_open = isinstance(tree, mi.StructType) and not tree.forbid_unknown_fields
        return self._fixed_array([*tag, *fields], len(tag) + len(fields) - optional, is_open=is_open)

    def _fixed_array(self, items: Sequence[Schema], minimum: int, *, is_open: bool = False) -> Schema:
        """Return the schema of an array with a schema per position; an open array can have more items."""
        prefix = {"prefixItems": items, "items": is_open}
        items_schema = prefix if self.definitions.places else {"items": _any_of(items)}
        return {"type": "array", **items_schema, "minItems": minimum} | (
            {} if is_open else {"maxItems": len(items)}
        )

    def _members(self, tree: Any) -> Schema:
        properties, required = {}, []
        if getattr(tree, "tag_field", None) is not None:
            properties[tree.tag_field] = _choices([tree.tag])
            required.append(tree.tag_field)
        for field in fields_of(tree):
            properties[field.encode_name] = self._named(field.type) | _default(field)
            required += [field.encode_name] if field.required else []
        return {"type": "object", "properties": properties, "required": required}

    def _named(self, tree: mi.Type) -> Schema:
        """Return the schema of a named member, with the description, because clients can show it alone."""
        schema = self.schema(tree)
        is_outlined = self.definitions.brief and scalar_of(plain(tree)) is None
        return with_words(
            schema, described(schema.get("description"), [] if is_outlined else [self.form(tree)])
        )

    def _key(self, tree: mi.Type) -> Schema:
        """Return the schema of the keys of an object, which are strings in JSON; ``{}`` for any string."""
        if isinstance(tree, mi.LiteralType | mi.EnumType):
            return _choices([str(json_of(value)) for value in values_of(tree, self.orders)])
        if isinstance(tree, mi.StrType):
            return _portable(_bounds(tree))
        scalar = scalar_of(tree)
        return {} if scalar is None else dict(scalar.key_schema_of(tree))


def _any_of(schemas: Iterable[Schema]) -> Schema:
    """Return a schema that accepts any of several schemas, without duplicates."""
    members: list[Schema] = []
    for schema in schemas:
        members += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    if not members or {} in members:
        return {}
    distinct = [member for i, member in enumerate(members) if member not in members[:i]]
    return {"anyOf": distinct} if len(distinct) > 1 else distinct[0]


def _choices(values: Iterable[Any]) -> Schema:
    """Return the schema of choices in their order, grouped by type, with null last."""
    by_type: dict[str, list[Any]] = {}
    for value in map(json_of, values):
        by_type.setdefault(_JSON_TYPES[type(value)], []).append(value)
    null = [_NULL] if by_type.pop("null", None) else []
    return _any_of([*({"type": kind, "enum": members} for kind, members in by_type.items()), *null])


def _form_of_choices(values: Iterable[Any]) -> str:
    """Describe choices; return ``""`` if all are text, because their schema is enough for models."""
    if all(isinstance(value, str | None) for value in map(json_of, values)):
        return ""
    return describe_choices(values)


def _bounds(tree: Any) -> Schema:
    """Return the constraints of a number, or of the length and pattern of text."""
    bounds = {
        keyword: bound
        for name, keyword in _BOUNDS.items()
        if (bound := getattr(tree, name, None)) is not None
    }
    if isinstance(tree, mi.StrType):
        bounds |= _length(tree, "Length")
        bounds |= {"pattern": tree.pattern} if tree.pattern is not None else {}
    return bounds


def _length(tree: Any, noun: str) -> Schema:
    bounds = {f"min{noun}": tree.min_length, f"max{noun}": tree.max_length}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _portable(schema: Schema) -> Schema:
    """Remove a pattern that some clients cannot parse: they would reject all tools."""
    if _UNPORTABLE.search(schema.get("pattern", "")):
        del schema["pattern"]
    return schema


def _default(field: Any) -> Schema:
    """Return the default of a member, if it can be sent."""
    has_factory = field.default_factory in (list, dict, set)
    default = field.default_factory() if has_factory else field.default
    if default is NODEFAULT or not can_be_sent(default):
        return {}
    return {"default": json_of(default)}


def _is_array(tree: Any) -> bool:
    """Whether values of a type are JSON arrays with a type per position."""
    return isinstance(tree, mi.TupleType | mi.NamedTupleType) or getattr(tree, "array_like", False)


def _docstring(tree: Any) -> str:
    """Return the author's docstring of a class, not the one that Python generates."""
    kind = getattr(tree.cls, "__origin__", tree.cls)
    docstring = inspect.cleandoc(kind.__doc__ or "")
    return "" if docstring.startswith(f"{kind.__name__}(") and docstring.endswith(")") else docstring


def answer_schema(answer: Any, *, outlined: bool = False) -> dict[str, Any]:
    """
    Return the JSON Schema of an answer type.

    Args:
        answer:
            The type.

        outlined:
            Whether the schema is for an outline: arrays have a schema per position, which some vendors do
            not support, and descriptions do not repeat the outline.

    Raises:
        TypeError: If promptkit does not support the type.
    """
    try:
        reader = reader_of(answer)
    except Exception:  # noqa: BLE001 (inspecting an arbitrary object can raise anything)
        reader = None
    if reader is None:
        type_text = str(answer) if get_args(answer) else answer_name(answer)
        msg = (
            f"{type_text} cannot be the type of an answer: use a dataclass, a class of attrs or "
            "msgspec, a TypedDict, a list, a Literal, an Enum, text or a number"
        )
        raise TypeError(msg)
    definitions = Definitions({}, places=outlined, brief=outlined)
    schema, form = type_schema(answer, definitions)
    schemas = definitions.schemas
    if "$ref" in schema:  # a recursive class
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    description = {} if outlined or not form else {"description": form}
    return {**description, **schema} | ({"$defs": schemas} if schemas else {})


def answer_name(answer: Any) -> str:
    """Return the name of a type."""
    return getattr(answer, "__name__", str(answer))
