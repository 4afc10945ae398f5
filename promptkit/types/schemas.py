"""
The JSON Schema of a type, in the words that clients know which convert schemas for their models.

The rules are those of the narrowest converters:

- Choices say their ``type``, stand in the author's order, and are ``anyOf`` if they are of several types.
- What a type is made of stands in its place. Only a class that holds itself is referred to.
- An array says what its items are and how many there may be, never which stands where.
- ``type`` is one word, an object may have further members, and no pattern looks around.
- What a value looks like is also said in words, wherever it has a name.
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
    What ``$defs`` has: classes that hold themselves.

    With *places*, arrays say which item stands where. With *brief*, no words repeat what an outline shows.
    """

    schemas: dict[str, Schema]
    places: bool = False
    brief: bool = False
    _names: dict[Any, str] = {}

    def knows(self, kind: Any) -> bool:
        """Whether a class was referred to."""
        return kind in self._names

    def refer(self, kind: Any, called: str = "") -> Schema:
        """Return the reference to a class, or to what is *called* so."""
        return {"$ref": f"#/$defs/{self.name(kind, called)}"}

    def name(self, kind: Any, called: str = "") -> str:
        """Return the name of what is referred to."""
        if kind not in self._names:
            name = re.sub(r"\W+", "_", called or getattr(kind, "__name__", str(kind)))
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
        return self._names[kind]


def schema_of_surrogate(surrogate: Surrogate, definitions: Definitions) -> Schema:
    """The schema of a type that brings its own, with what that defines in the places that refer to it."""
    defined = surrogate.schema.get("$defs", {})

    def placed(node: Any, around: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [placed(part, around) for part in node]
        if not isinstance(node, Mapping):
            return node
        found = {key: placed(part, around) for key, part in node.items()}
        if found.get("additionalProperties") is False:
            del found["additionalProperties"]
        # A member may be called like this, too.
        return found | referred(found.pop("$ref"), around) if isinstance(found.get("$ref"), str) else found

    def referred(reference: str, around: frozenset[str]) -> Schema:
        name = reference.rpartition("/")[2]
        kind = (surrogate.build, name)
        if name not in around and not definitions.knows(kind):
            schema: Schema = placed(defined[name], around | {name})
            if not definitions.knows(kind):
                return schema
            definitions.schemas[definitions.name(kind, name)] = schema
        return definitions.refer(kind, name)

    own = {key: part for key, part in surrogate.schema.items() if key != "$defs"}
    found: Schema = placed(own, frozenset())
    return found


#: The types of JSON, by those of Python.
_JSON_TYPES: Final = {NoneType: "null", bool: "boolean", int: "integer", float: "number", str: "string"}

#: What JSON Schema calls the constraints of `msgspec.Meta`, but for those of lengths.
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
}

#: What only some languages have in patterns: looking around or back, named groups, the ends of the text.
_NOT_EVERYWHERE: Final = re.compile(r"\(\?[^:]|\\[1-9AZ]")

_NULL: Final = {"type": "null"}

_LISTS: Final = (mi.ListType, mi.SetType, mi.FrozenSetType, mi.VarTupleType)


def type_schema(annotation: Any, definitions: Definitions) -> tuple[Schema, str]:
    """
    Return the schema of a type, and what its values look like, in words; ``""`` if that is plain.

    Args:
        annotation:
            A type that promptkit reads.

        definitions:
            Receives the schemas that this one refers to.
    """
    annotation = plain(annotation)
    if is_literal(annotation) or is_enum(annotation):
        values = get_args(annotation) if is_literal(annotation) else annotation
        return _choices(values), _form_of_choices(values)
    scalar = SCALARS.get(annotation) if isinstance(annotation, type) else None
    if scalar is not None and scalar.schema.keys() == {"type"} and not scalar.facets:
        return dict(scalar.schema), ""  # most parameters are text, a number, or yes or no
    if (surrogate := surrogate_of(annotation)) is not None:
        return schema_of_surrogate(surrogate, definitions), _form_of_surrogate(surrogate)
    try:
        tree = mi.type_info(annotation)
    except TypeError:
        return _composed(annotation, definitions)
    writer = _Writer(definitions, orders_of(annotation), frozenset())
    return writer.schema(tree), writer.form(tree)


def with_words(schema: Schema, words: str) -> Schema:
    """Return *schema* with its description, also in the only alternative to null: some show that alone."""
    if not words:
        return schema
    found = {**schema, "description": words}
    members = schema.get("anyOf", [])
    if len(members) == 2 and members[1] == _NULL:
        found["anyOf"] = [{**members[0], "description": words}, _NULL]
    return found


def _composed(annotation: Any, definitions: Definitions) -> tuple[Schema, str]:
    """Return the same of a type that msgspec does not have, for whose parts there are readers."""
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
    """What its values look like, in words; ``""`` if they have parts, which its schema describes."""
    return surrogate.expected if surrogate.schema.get("type") == "string" else ""


class _Writer(Struct):
    """Writes the schemas of types as `msgspec.inspect` sees them, inside of the classes *around*."""

    definitions: Definitions
    orders: Orders
    around: frozenset[Any]

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
                schema = self._placed([*map(self.schema, tree.item_types)], len(tree.item_types))
            case mi.DictType():
                schema = self._object(tree)
            case mi.TypedDictType() | mi.DataclassType() | mi.StructType() | mi.NamedTupleType():
                schema = self._record(tree)
        return schema

    def form(self, tree: mi.Type) -> str:
        """Return what values of a type look like, in words; ``""`` if its JSON types say all."""
        tree = plain(tree)
        if (surrogate := surrogate_of(getattr(tree, "cls", None))) is not None:
            return _form_of_surrogate(surrogate)
        if isinstance(tree, mi.LiteralType | mi.EnumType):
            return _form_of_choices(values_of(tree, self.orders))
        if isinstance(tree, mi.UnionType):
            says_more = any(map(self.form, tree.types))
        elif isinstance(tree, _LISTS):
            says_more = bool(_length(tree, "Items") or self.form(tree.item_type))
        elif scalar_of(tree) is not None:
            says_more = bool(_bounds(tree)) or self.schema(tree).keys() != {"type"}
        else:
            says_more = _is_array(tree) or isinstance(tree, mi.DictType)
        if not says_more:
            return ""
        return describe(tree, self.orders)

    def _object(self, tree: mi.DictType) -> Schema:
        keys = self._key(plain(tree.key_type))
        names = {"propertyNames": keys} if keys else {}
        values = self.schema(tree.value_type)
        return {"type": "object", **names, "additionalProperties": values, **_length(tree, "Properties")}

    def _record(self, tree: Any) -> Schema:
        """The schema of a class, or the reference to it if it holds itself."""
        kind, definitions = tree.cls, self.definitions
        if kind in self.around or definitions.knows(kind):
            return definitions.refer(kind)
        hints = hints_of(getattr(kind, "__origin__", kind)).values()
        inside = _Writer(definitions, {**self.orders, **orders_of(*hints)}, self.around | {kind})
        said = _docstring(tree)
        schema = {"description": said} if said else {}
        schema |= inside._array(tree) if _is_array(tree) else inside._members(tree)
        if not definitions.knows(kind):
            return schema
        definitions.schemas[definitions.name(kind)] = schema
        return definitions.refer(kind)

    def _array(self, tree: Any) -> Schema:
        fields = [self.schema(field.type) for field in tree.fields]
        tag = [] if getattr(tree, "tag", None) is None else [_choices([tree.tag])]
        optional = next((i for i, field in enumerate(reversed(tree.fields)) if field.required), len(fields))
        # msgspec reads a struct out of longer arrays, too.
        is_open = isinstance(tree, mi.StructType) and not tree.forbid_unknown_fields
        return self._placed([*tag, *fields], len(tag) + len(fields) - optional, is_open=is_open)

    def _placed(self, items: Sequence[Schema], least: int, *, is_open: bool = False) -> Schema:
        """The schema of an array whose items have their places; one that is open may have more of them."""
        places = {"prefixItems": items, "items": is_open}
        said = places if self.definitions.places else {"items": _any_of(items)}
        return {"type": "array", **said, "minItems": least} | ({} if is_open else {"maxItems": len(items)})

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
        """The schema of what has a name, which a client may show alone."""
        schema = self.schema(tree)
        is_shown = self.definitions.brief and scalar_of(plain(tree)) is None
        return with_words(schema, described(schema.get("description"), [] if is_shown else [self.form(tree)]))

    def _key(self, tree: mi.Type) -> Schema:
        """The schema of the keys of an object, which are text in JSON; ``{}`` if any text is a key."""
        if isinstance(tree, mi.LiteralType | mi.EnumType):
            return _choices([str(json_of(value)) for value in values_of(tree, self.orders)])
        if isinstance(tree, mi.StrType):
            return _portable(_bounds(tree))
        scalar = scalar_of(tree)
        return {} if scalar is None else dict(scalar.key_schema_of(tree))


def _any_of(schemas: Iterable[Schema]) -> Schema:
    """The schema of what fits one of several, each of them once."""
    members: list[Schema] = []
    for schema in schemas:
        members += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    if not members or {} in members:
        return {}
    distinct = [member for i, member in enumerate(members) if member not in members[:i]]
    return {"anyOf": distinct} if len(distinct) > 1 else distinct[0]


def _choices(values: Iterable[Any]) -> Schema:
    """The schema of choices, in their order; those of one type stand together, null last."""
    by_type: dict[str, list[Any]] = {}
    for value in map(json_of, values):
        by_type.setdefault(_JSON_TYPES[type(value)], []).append(value)
    null = [_NULL] if by_type.pop("null", None) else []
    return _any_of([*({"type": kind, "enum": found} for kind, found in by_type.items()), *null])


def _form_of_choices(values: Iterable[Any]) -> str:
    """What choices look like, in words; ``""`` if all are text: there are models with no other choices."""
    if all(isinstance(value, str | None) for value in map(json_of, values)):
        return ""
    return describe_choices(values)


def _bounds(tree: Any) -> Schema:
    """What constraints say of a number, or of the length and the pattern of text."""
    bounds = {
        word: bound for name, word in _BOUNDS.items() if (bound := getattr(tree, name, None)) is not None
    }
    if isinstance(tree, mi.StrType):
        bounds |= _length(tree, "Length")
        bounds |= {"pattern": tree.pattern} if tree.pattern is not None else {}
    return bounds


def _length(tree: Any, noun: str) -> Schema:
    bounds = {f"min{noun}": tree.min_length, f"max{noun}": tree.max_length}
    return {word: bound for word, bound in bounds.items() if bound is not None}


def _portable(schema: Schema) -> Schema:
    """Leave out a pattern that not every client can read: some give up all tools for it."""
    if _NOT_EVERYWHERE.search(schema.get("pattern", "")):
        del schema["pattern"]
    return schema


def _default(field: Any) -> Schema:
    """The default of a member, if there is one that can be sent."""
    makes = field.default_factory in (list, dict, set)
    default = field.default_factory() if makes else field.default
    if default is NODEFAULT or not can_be_sent(default):
        return {}
    return {"default": json_of(default)}


def _is_array(tree: Any) -> bool:
    """Whether JSON has an array, each of whose items has its place, for values of a type."""
    return isinstance(tree, mi.TupleType | mi.NamedTupleType) or getattr(tree, "array_like", False)


def _docstring(tree: Any) -> str:
    """What an author says of a class. Python itself says how dataclasses and named tuples are made."""
    kind = getattr(tree.cls, "__origin__", tree.cls)
    said = inspect.cleandoc(kind.__doc__ or "")
    return "" if said.startswith(f"{kind.__name__}(") and said.endswith(")") else said


def answer_schema(answer: Any, *, outlined: bool = False) -> dict[str, Any]:
    """
    Return the JSON Schema of a type.

    Args:
        answer:
            The type.

        outlined:
            Whether it is made for an outline: arrays say which of their items stands where, which not every
            vendor takes, and descriptions do not repeat what the outline shows.

    Raises:
        TypeError: If it is no type that promptkit reads.
    """
    try:
        reader = reader_of(answer)
    except Exception:  # noqa: BLE001 (what is no type may raise anything while it is looked at)
        reader = None
    if reader is None:
        shown = str(answer) if get_args(answer) else answer_name(answer)
        msg = (
            f"{shown} cannot be the type of an answer: use a dataclass, a class of attrs or "
            "msgspec, a TypedDict, a list, a Literal, an Enum, text or a number"
        )
        raise TypeError(msg)
    definitions = Definitions({}, places=outlined, brief=outlined)
    schema, form = type_schema(answer, definitions)
    schemas = definitions.schemas
    if "$ref" in schema:  # a class that holds itself
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    said = {} if outlined or not form else {"description": form}
    return {**said, **schema} | ({"$defs": schemas} if schemas else {})


def answer_name(answer: Any) -> str:
    """Return what a type is called."""
    return getattr(answer, "__name__", str(answer))
