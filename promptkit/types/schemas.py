"""
Generation of JSON Schemas for types, in the subset of JSON Schema that clients can convert for their models.

The rules follow the most limited of these clients:

- Choices have a ``type`` and are in the author's order. If they have several types, they form an ``anyOf``.
- Nested types are inlined. Only recursive classes are referenced.
- An array has one schema for all items and limits on their number, but no schema per position.
- ``type`` is always a string, objects allow additional members, and patterns do not use lookaround.
- The format of a value that has a name is also described in words.
"""

import inspect
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import NoneType
from typing import Any, Final, TypeAlias, get_args, get_origin

from msgspec import UNSET, Struct

from promptkit.types.choices import meaning_of
from promptkit.types.content import Surrogate
from promptkit.types.descriptions import describe_type, join_description
from promptkit.types.enum_sources import meanings_of
from promptkit.types.kinds import (
    Constraints,
    is_enum,
    is_literal,
    is_mapping,
    is_named_tuple,
    is_record,
    is_sequence,
    is_union,
    members_of_record,
    split_constraints,
    surrogate_of,
    tag_of,
)
from promptkit.types.parsing import reader_for
from promptkit.types.scalar_types import scalar_of
from promptkit.types.unstructuring import can_be_sent, json_of

Schema: TypeAlias = dict[str, Any]


class Definitions(Struct):
    """
    The ``$defs`` of a schema, which contain recursive classes, and the options of the schema.

    If *by_position* is true, arrays have a schema for each position. If *is_brief* is true, descriptions do
    not repeat what an outline shows. If *docstrings* is false, classes' docstrings are not used as
    descriptions.
    """

    schemas: dict[str, Schema]
    by_position: bool = False
    is_brief: bool = False
    docstrings: bool = True
    _names: dict[Any, str] = {}

    def has(self, kind: Any) -> bool:
        """Return whether a class has a definition, or has been referenced."""
        return kind in self._names

    def refer(self, kind: Any, label: str = "") -> Schema:
        """Return a reference to the definition of *kind*. Its name is derived from *label*, if given."""
        return {"$ref": f"#/$defs/{self.name(kind, label)}"}

    def name(self, kind: Any, label: str = "") -> str:
        """Return the name of the definition of *kind*, choosing an unused name on the first call."""
        if kind not in self._names:
            name = re.sub(r"\W+", "_", label or getattr(kind, "__name__", str(kind)))
            while name in self._names.values():
                name += "_"
            self._names[kind] = name
        return self._names[kind]


def schema_of_surrogate(surrogate: Surrogate, definitions: Definitions) -> Schema:
    """Return the schema of a surrogate. Its own definitions are inlined unless they are recursive."""
    defined = surrogate.schema.get("$defs", {})

    def without_docstring(schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """Remove the description from the schema of a class, which is its docstring, if it is not wanted."""
        is_class = not definitions.docstrings and not schema.keys().isdisjoint(("properties", "enum"))
        return {key: part for key, part in schema.items() if key != "description"} if is_class else schema

    def inline_references(node: Any, ancestors: frozenset[str]) -> Any:
        if isinstance(node, list):
            return [inline_references(part, ancestors) for part in node]
        if not isinstance(node, Mapping):
            return node
        inlined = {key: inline_references(part, ancestors) for key, part in node.items()}
        if inlined.get("additionalProperties") is False:
            del inlined["additionalProperties"]
        # "$ref" can also be the name of an object's member.
        return (
            inlined | resolve_reference(inlined.pop("$ref"), ancestors)
            if isinstance(inlined.get("$ref"), str)
            else inlined
        )

    def resolve_reference(reference: str, ancestors: frozenset[str]) -> Schema:
        name = reference.rpartition("/")[2]
        kind = (surrogate.build, name)
        if name not in ancestors and not definitions.has(kind):
            schema: Schema = inline_references(without_docstring(defined[name]), ancestors | {name})
            if not definitions.has(kind):
                return schema
            definitions.schemas[definitions.name(kind, name)] = schema
        return definitions.refer(kind, name)

    root = {key: part for key, part in surrogate.schema.items() if key != "$defs"}
    inlined: Schema = inline_references(without_docstring(root), frozenset())
    return inlined


#: JSON types by Python type.
_JSON_TYPES: Final = {NoneType: "null", bool: "boolean", int: "integer", float: "number", str: "string"}

#: The JSON Schema keywords for the constraints of numbers and text, other than lengths.
_BOUNDS: Final = {
    "ge": "minimum",
    "gt": "exclusiveMinimum",
    "le": "maximum",
    "lt": "exclusiveMaximum",
    "multiple_of": "multipleOf",
    "pattern": "pattern",
}

#: Syntax that some regular expression engines do not support: lookaround, backreferences, named groups, and
#: the anchors of Python.
_UNPORTABLE: Final = re.compile(r"\(\?[^:]|\\[1-9AZ]")

_NULL: Final = {"type": "null"}


def type_schema(annotation: Any, definitions: Definitions) -> tuple[Schema, str]:
    """
    Return the schema of a type, and a description of its format; ``""`` if the format needs no description.

    Args:
        annotation:
            A type that promptkit supports.

        definitions:
            The definitions of the schema. Definitions to which the schema refers are added to it.
    """
    return _SchemaWriter(definitions, frozenset()).schema(annotation), _describe_format(annotation)


def add_description(schema: Schema, words: str) -> Schema:
    """
    Return *schema* with a description.

    The description of an optional type is also put into its member that is not null, where some clients
    expect it.
    """
    if not words:
        return schema
    described = {**schema, "description": words}
    members = schema.get("anyOf", [])
    if len(members) == 2 and members[1] == _NULL:
        described["anyOf"] = [{**members[0], "description": words}, _NULL]
    return described


def _describe_format(annotation: Any) -> str:
    """Describe the format of a type; return ``""`` if its JSON types describe it fully."""
    return describe_type(annotation, with_meanings=True) if _has_format(annotation) else ""


def _describe_enums(annotation: Any) -> Iterator[str]:
    """Yield a description of each enumeration in a type whose members have meanings."""
    kind, _ = split_constraints(annotation)
    if is_enum(kind) and meanings_of(kind):
        yield describe_type(kind, with_meanings=True)
    for part in get_args(kind):
        yield from _describe_enums(part)


def _has_format(annotation: Any) -> bool:
    """Return whether a type has a format that its JSON types alone do not fully describe."""
    kind, limits = split_constraints(annotation)
    arguments = get_args(kind)
    if (scalar := scalar_of(kind)) is not None:
        has_format = {
            **scalar.schema,
            **_bound_keywords(kind, limits),
            **scalar.extra_keywords_for(limits),
        }.keys() != {"type"}
    elif (surrogate := surrogate_of(kind)) is not None:
        has_format = surrogate.schema.get("type") == "string"  # any parts are described by the schema
    elif is_literal(kind) or is_enum(kind):
        choices = [*(arguments or kind)]
        is_plain = all(isinstance(value, str | None) for value in map(json_of, choices))
        has_format = not is_plain or any(map(meaning_of, choices))
    elif is_union(kind):
        has_format = any(map(_has_format, arguments))
    elif is_sequence(kind):
        has_format = bool(_length_keywords(limits, "Items")) or _has_format((*arguments, Any)[0])
    else:
        has_format = is_mapping(kind) or get_origin(kind) is tuple or is_named_tuple(get_origin(kind) or kind)
    return has_format


class _SchemaWriter(Struct):
    """A generator of schemas for types that are nested inside the classes *ancestors*."""

    definitions: Definitions
    ancestors: frozenset[Any]

    def schema(self, annotation: Any) -> Schema:
        """Return the schema of a type, with the title and description of `msgspec.Meta`."""
        kind, limits = split_constraints(annotation)
        words = {name: getattr(limits, name) for name in ("title", "description", "examples")}
        words = {name: value for name, value in words.items() if value is not None}
        return {**self._schema(kind, limits), **words, **(limits.extra_json_schema or {})}

    def _schema(self, kind: Any, limits: Constraints) -> Schema:
        arguments = get_args(kind)
        schema: Schema = {}
        if (scalar := scalar_of(kind)) is not None:
            schema = _remove_unportable_pattern(
                {**scalar.schema, **_bound_keywords(kind, limits), **scalar.extra_keywords_for(limits)}
            )
        elif (surrogate := surrogate_of(kind)) is not None:
            schema = schema_of_surrogate(surrogate, self.definitions)
        elif kind is NoneType:
            schema = _NULL
        elif is_literal(kind) or is_enum(kind):
            schema = _choices_schema(arguments or kind)
        elif is_union(kind):
            schema = _combine_schemas(
                map(self.schema, sorted(arguments, key=lambda member: member is NoneType))
            )
        elif is_mapping(kind):
            key, value = arguments or (Any, Any)
            schema = self._object_schema(key, value, limits)
        elif is_sequence(kind):
            items = self.schema((*arguments, Any)[0])
            schema = {"type": "array", "items": items, **_length_keywords(limits, "Items")}
        elif get_origin(kind) is tuple:
            schema = self._fixed_array_schema([*map(self.schema, arguments)], len(arguments))
        elif is_record(cls := get_origin(kind) or kind) or is_named_tuple(cls):
            schema = self._record_schema(kind)
        return schema

    def _object_schema(self, key: Any, value: Any, limits: Constraints) -> Schema:
        keys = _key_schema(key)
        names = {"propertyNames": keys} if keys else {}
        values = self.schema(value)
        return {
            "type": "object",
            **names,
            "additionalProperties": values,
            **_length_keywords(limits, "Properties"),
        }

    def _record_schema(self, kind: Any) -> Schema:
        """Return the schema of a class, or a reference to its definition if the class is recursive."""
        definitions = self.definitions
        if kind in self.ancestors or definitions.has(kind):
            return definitions.refer(kind)
        writer = _SchemaWriter(definitions, self.ancestors | {kind})
        docstring = _author_docstring(get_origin(kind) or kind) if definitions.docstrings else ""
        schema = {"description": docstring} if docstring else {}
        schema |= (
            writer._named_tuple_schema(kind)
            if is_named_tuple(get_origin(kind) or kind)
            else writer._members_schema(kind)
        )
        if not definitions.has(kind):
            return schema
        definitions.schemas[definitions.name(kind)] = schema
        return definitions.refer(kind)

    def _named_tuple_schema(self, kind: Any) -> Schema:
        members = members_of_record(kind)
        items = [self.schema(member.type) for member in members]
        return self._fixed_array_schema(items, sum(member.required for member in members))

    def _fixed_array_schema(self, items: Sequence[Schema], minimum: int) -> Schema:
        """
        Return the schema of an array with one item for each of *items*. The first *minimum* are required.
        """
        prefix = {"prefixItems": items, "items": False}
        items_schema = prefix if self.definitions.by_position else {"items": _combine_schemas(items)}
        return {"type": "array", **items_schema, "minItems": minimum, "maxItems": len(items)}

    def _members_schema(self, kind: Any) -> Schema:
        properties = {name: _choices_schema([tag]) for name, tag in tag_of(kind).items()}
        required = [*properties]
        for member in members_of_record(kind):
            has_default = member.default is not UNSET and can_be_sent(member.default)
            default = {"default": json_of(member.default)} if has_default else {}
            properties[member.name] = self._member_schema(member.type) | default
            required += [member.name] if member.required else []
        return {"type": "object", "properties": properties, "required": required}

    def _member_schema(self, annotation: Any) -> Schema:
        """
        Return a member's schema with a description of its format.

        Each member needs its own, because clients can show members separately.
        """
        schema = self.schema(annotation)
        is_outlined = self.definitions.is_brief and scalar_of(annotation) is None
        clauses = _describe_enums(annotation) if is_outlined else [_describe_format(annotation)]
        return add_description(schema, join_description(schema.get("description"), clauses))


def _key_schema(annotation: Any) -> Schema:
    """Return the schema of an object's keys, which are strings in JSON; ``{}`` if any string is valid."""
    kind, limits = split_constraints(annotation)
    if is_literal(kind) or is_enum(kind):
        return _choices_schema([str(json_of(value)) for value in get_args(kind) or kind])
    if kind is str:
        return _remove_unportable_pattern(_bound_keywords(kind, limits))
    scalar = scalar_of(kind)
    return {} if scalar is None else dict(scalar.key_schema_of(limits))


def _combine_schemas(schemas: Iterable[Schema]) -> Schema:
    """Return a schema that accepts the values of all *schemas*, without duplicates."""
    members: list[Schema] = []
    for schema in schemas:
        members += schema["anyOf"] if schema.keys() == {"anyOf"} else [schema]
    if not members or {} in members:
        return {}
    distinct = [member for i, member in enumerate(members) if member not in members[:i]]
    return {"anyOf": distinct} if len(distinct) > 1 else distinct[0]


def _choices_schema(values: Iterable[Any]) -> Schema:
    """Return the schema of choices. They keep their order but are grouped by type, with null at the end."""
    by_type: dict[str, list[Any]] = {}
    for value in map(json_of, values):
        by_type.setdefault(_JSON_TYPES[type(value)], []).append(value)
    null = [_NULL] if by_type.pop("null", None) else []
    return _combine_schemas([*({"type": kind, "enum": members} for kind, members in by_type.items()), *null])


def _bound_keywords(kind: Any, limits: Constraints) -> Schema:
    """Return the keywords for the limits of a number, or for the length and pattern of text."""
    bounds = {keyword: getattr(limits, name) for name, keyword in _BOUNDS.items()}
    lengths = _length_keywords(limits, "Length") if kind is str else {}
    return lengths | {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _length_keywords(limits: Constraints, noun: str) -> Schema:
    bounds = {f"min{noun}": limits.min_length, f"max{noun}": limits.max_length}
    return {keyword: bound for keyword, bound in bounds.items() if bound is not None}


def _remove_unportable_pattern(schema: Schema) -> Schema:
    """Return *schema*, after removing its pattern if the pattern would make some clients reject all tools."""
    if _UNPORTABLE.search(schema.get("pattern", "")):
        del schema["pattern"]
    return schema


def _author_docstring(kind: Any) -> str:
    """Return a class's docstring; ``""`` if the author wrote none, even if Python has generated one."""
    docstring = inspect.cleandoc(kind.__doc__ or "")
    return "" if docstring.startswith(f"{kind.__name__}(") and docstring.endswith(")") else docstring


def answer_schema(answer: Any, *, outlined: bool = False) -> dict[str, Any]:
    """
    Return the JSON Schema of an answer's type. It omits docstrings, which are not written for models.

    Args:
        answer:
            The type.

        outlined:
            Whether the schema is used to generate an outline. If so, arrays have a schema for each position,
            which some vendors do not support, and descriptions do not repeat what the outline shows.

    Raises:
        TypeError: If promptkit does not support the type.
    """
    check_answer_type(answer)
    definitions = Definitions({}, by_position=outlined, is_brief=outlined, docstrings=False)
    schema, form = type_schema(answer, definitions)
    schemas = definitions.schemas
    if "$ref" in schema:  # a recursive class
        schema = schemas[schema["$ref"].rpartition("/")[2]]
    words = "; ".join(_describe_enums(answer)) if outlined else form
    description = {"description": words} if words else {}
    return {**description, **schema} | ({"$defs": schemas} if schemas else {})


def check_answer_type(answer: Any) -> None:
    """Raise TypeError if promptkit does not support *answer* as the type of an answer."""
    try:
        reader = reader_for(answer)
    except Exception:  # noqa: BLE001 (inspecting an arbitrary object can raise anything)
        reader = None
    if reader is None:
        type_text = str(answer) if get_args(answer) else answer_name(answer)
        msg = (
            f"{type_text} cannot be the type of an answer: use a dataclass, an attrs or msgspec "
            "class, a TypedDict, a list, a Literal, an Enum, text or a number"
        )
        raise TypeError(msg)


def answer_name(answer: Any) -> str:
    """Return the name of an answer's type."""
    return getattr(answer, "__name__", str(answer))
