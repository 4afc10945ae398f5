"""Classification of types, and checks that values have a type."""

import dataclasses
import types
import typing
from collections import abc
from collections.abc import Callable, Mapping
from enum import Enum, Flag
from typing import Any, Final, Literal, get_args, get_origin

import attrs
import msgspec
from msgspec import NODEFAULT, UNSET
from msgspec.structs import replace

from promptkit.types.content import SURROGATES, Surrogate
from promptkit.types.errors import ConversionError

#: Limits for a client's set, or dict whose keys are not text: its size, and the number of values with the
#: same hash. Clients can choose numbers whose hashes collide, and hashing those takes quadratic time.
_MAX_HASHED: Final = 10_000
_MAX_COLLIDING: Final = 32


def checked_hashable(values: list[Any]) -> list[Any]:
    """
    Return *values* if they can be hashed safely.

    Raises:
        ConversionError: If there are too many values, or too many of them have the same hash.
    """
    if len(values) > _MAX_HASHED:
        raise ConversionError(reason=f"has more than {_MAX_HASHED:,} values: send fewer")
    values_by_hash: dict[str, set[Any]] = {}  # the keys are text, because hashes of text are unpredictable
    for value in values if len(values) > _MAX_COLLIDING else ():
        colliding = values_by_hash.setdefault(str(hash(value)), set())
        colliding.add(value)
        if len(colliding) > _MAX_COLLIDING:
            raise ConversionError(reason="has too many values with the same hash: send fewer")
    return values


#: Functions that convert a list to each sequence and set type.
SEQUENCES: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    **dict.fromkeys((list, abc.MutableSequence), list),
    **dict.fromkeys((tuple, abc.Collection, abc.Sequence), tuple),
    **dict.fromkeys((set, abc.Set, abc.MutableSet), lambda values: set(checked_hashable(values))),
    frozenset: lambda values: frozenset(checked_hashable(values)),
}
_MAPPINGS: Final = (dict, abc.Mapping, abc.MutableMapping)

#: Qualifiers of a member's type, and whether they make the member required; None if they do not affect it.
_QUALIFIERS: Final[Mapping[Any, bool | None]] = {
    typing.Required: True,
    typing.NotRequired: False,
    typing.Final: None,
    getattr(typing, "ReadOnly", typing.Final): None,
}


def unwrap_type(annotation: Any, *, core: bool = False) -> Any:
    """
    Unwrap a `typing.NewType` or a ``type`` alias.

    Args:
        annotation:
            A type.

        core:
            Whether to also remove constraints, and None from a union with one other member.
    """
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType" and get_origin(annotation) is None:
            annotation = annotation.__value__
        elif core and is_constrained(annotation):
            annotation = annotation.__origin__
        elif core and len(members := members_of(annotation)) == 1:
            annotation = members[0]
        else:
            return annotation


class Constraints(msgspec.Struct, frozen=True):
    """The constraints and descriptions that `msgspec.Meta` adds to a type."""

    gt: float | None = None
    ge: float | None = None
    lt: float | None = None
    le: float | None = None
    multiple_of: float | None = None
    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    tz: bool | None = None
    title: str | None = None
    description: str | None = None
    examples: list[Any] | None = None
    extra_json_schema: dict[str, Any] | None = None


_NO_CONSTRAINTS: Final = Constraints()


def split_constraints(annotation: Any, metadata: type = msgspec.Meta) -> tuple[Any, Constraints]:
    """Return a type without aliases and metadata, and the constraints from its instances of *metadata*."""
    if isinstance(annotation, type):
        return annotation, _NO_CONSTRAINTS
    limits: dict[str, Any] = {}
    while is_constrained(annotation := unwrap_type(annotation)):
        notes = [note for note in annotation.__metadata__ if isinstance(note, metadata)]
        values = [
            (name, getattr(note, name, None)) for note in notes for name in Constraints.__struct_fields__
        ]
        limits = {name: value for name, value in values if value is not None} | limits
        annotation = annotation.__origin__
    return annotation, Constraints(**limits)


def is_enum(annotation: Any) -> bool:
    """Return whether *annotation* is an enumeration, other than one of flags that can be combined."""
    return isinstance(annotation, type) and issubclass(annotation, Enum) and not issubclass(annotation, Flag)


def is_literal(annotation: Any) -> bool:
    """Return whether *annotation* is a ``Literal``."""
    return get_origin(annotation) is Literal


def is_list(annotation: Any) -> bool:
    """Return whether *annotation* is a list, set or variable-length tuple that has an item type."""
    return is_sequence(annotation) and bool(get_args(annotation))


def is_sequence(annotation: Any) -> bool:
    """Return whether values of *annotation* are JSON arrays of any length, with or without an item type."""
    origin = get_origin(annotation) or annotation
    if origin is tuple:
        return annotation is tuple or Ellipsis in get_args(annotation)
    return origin in SEQUENCES


def is_mapping(annotation: Any) -> bool:
    """Return whether *annotation* is a mapping, whose values are JSON objects with arbitrary members."""
    return (get_origin(annotation) or annotation) in _MAPPINGS


def is_named_tuple(annotation: Any) -> bool:
    """Return whether *annotation* is a named tuple."""
    return isinstance(annotation, type) and issubclass(annotation, tuple) and hasattr(annotation, "_fields")


def is_record(annotation: Any) -> bool:
    """Return whether *annotation* is a dataclass, an attrs class, a `msgspec.Struct` or a TypedDict."""
    names = ("__dataclass_fields__", "__attrs_attrs__", "__struct_config__")
    is_class = isinstance(annotation, type) and any(hasattr(annotation, name) for name in names)
    return is_class or typing.is_typeddict(annotation)


class Member(msgspec.Struct, frozen=True):
    """
    A member of a record.

    Args:
        name:
            The member's name in JSON.

        parameter:
            The name of the parameter of ``__init__`` that sets the member.

        type:
            The member's type, with all names resolved.

        required:
            Whether the member must be given.

        default:
            The default; `UNSET` if there is none, or if an author's function creates it.

        attribute:
            The name of the attribute that stores the member's value; None if no attribute does.
    """

    name: str
    parameter: str
    type: Any
    required: bool
    default: Any = UNSET
    attribute: str | None = None


def members_of_record(kind: Any) -> list[Member]:
    """
    Return the members that clients can send for a record or a named tuple.

    Raises TypeError for a struct that is serialized as a list.
    """
    cls = get_origin(kind) or kind
    if config := getattr(cls, "__struct_config__", None):
        if config.array_like:
            msg = f"{cls.__name__} is serialized as a list: use a NamedTuple instead"
            raise TypeError(msg)
        members = [
            (f.name, _make_member(f.encode_name, f.type, f.default, f.default_factory))
            for f in msgspec.structs.fields(kind)
        ]
        return [replace(member, parameter=name, attribute=name) for name, member in members]
    hints = hints_of(kind)
    if typing.is_typeddict(cls):
        qualified = typing.get_type_hints(cls, include_extras=True)
        return [
            Member(name, name, hints[name], _is_required(hint, name, cls)) for name, hint in qualified.items()
        ]
    if is_named_tuple(cls):
        defaults = cls._field_defaults
        return [_make_member(name, hints[name], defaults.get(name, NODEFAULT)) for name in cls._fields]
    if attrs.has(cls):
        members = [
            (
                f.alias,
                _make_member(f.name, hints[f.name], f.default, getattr(f.default, "factory", NODEFAULT)),
            )
            for f in attrs.fields(cls)
            if f.init
        ]
        return [replace(member, parameter=alias) for alias, member in members]
    not_stored = _init_vars(cls, hints)
    stored = {f.name for f in dataclasses.fields(cls)}
    return [
        replace(_make_member(f.name, not_stored[f.name], f.default), attribute=None)
        if f.name in not_stored
        else _make_member(f.name, hints[f.name], f.default, f.default_factory)
        for f in cls.__dataclass_fields__.values()
        if f.init and (f.name in not_stored or f.name in stored)
    ]


def _init_vars(cls: Any, hints: Mapping[str, Any]) -> dict[str, Any]:
    """Return the types of a dataclass's init-only members, which are parameters but are not stored."""
    kinds = {name: hint.type for name, hint in hints.items() if isinstance(hint, dataclasses.InitVar)}
    # The type in an `InitVar` can still be a string.
    holder = type(cls.__name__, (), {"__module__": cls.__module__, "__annotations__": kinds})
    return typing.get_type_hints(holder, include_extras=True)


def _is_required(hint: Any, name: str, cls: Any) -> bool:
    """
    Return whether a TypedDict member is required.

    ``__required_keys__`` alone is not enough, because it ignores qualifiers in string annotations.
    """
    _, is_required = _without_qualifiers(hint)
    return name in cls.__required_keys__ if is_required is None else is_required


def _make_member(name: str, hint: Any, default: Any, factory: Any = NODEFAULT) -> Member:
    """Create a member; *default* and *factory* can be a library's marker for a missing default."""
    has_default, has_factory = (
        all(value is not missing for missing in (NODEFAULT, dataclasses.MISSING, attrs.NOTHING))
        for value in (default, factory)
    )
    value = UNSET
    if has_default and not has_factory:
        value = default
    elif factory in (list, dict, set):
        value = factory()
    return Member(name, name, hint, not (has_default or has_factory), value, name)


def hints_of(kind: Any) -> dict[str, Any]:
    """Return the resolved types of a class's members, keyed by name, with its type arguments filled in."""
    cls = get_origin(kind) or kind
    type_arguments = dict(zip(getattr(cls, "__parameters__", ()), get_args(kind), strict=False))
    hints = typing.get_type_hints(cls, include_extras=True)
    return {name: _substitute(_without_qualifiers(hint)[0], type_arguments) for name, hint in hints.items()}


def _without_qualifiers(hint: Any) -> tuple[Any, bool | None]:
    """
    Return a type without its qualifiers, and whether the qualifiers make the member required.

    The second value is None if no qualifier determines this.
    """
    is_required = None
    while (origin := get_origin(hint)) in _QUALIFIERS:
        is_required = is_required if _QUALIFIERS[origin] is None else _QUALIFIERS[origin]
        hint = get_args(hint)[0]
    if origin is typing.Annotated:
        inner, is_required = _without_qualifiers(hint.__origin__)
        hint = typing.Annotated[(inner, *hint.__metadata__)]
    return hint, is_required


def tag_of(kind: Any) -> dict[str, Any]:
    """Return a tagged struct's tag field, mapped to its tag; ``{}`` for other types."""
    config = getattr(get_origin(kind) or kind, "__struct_config__", None)
    return {config.tag_field: config.tag} if config and config.tag_field else {}


def _substitute(hint: Any, type_arguments: Mapping[Any, Any]) -> Any:
    """Return a type with its type parameters replaced by *type_arguments*; by Any where there is none."""
    if isinstance(hint, typing.TypeVar):
        return type_arguments.get(hint, Any)
    parameters = getattr(hint, "__parameters__", ()) if not isinstance(hint, type) else ()
    return hint[tuple(type_arguments.get(parameter, Any) for parameter in parameters)] if parameters else hint


def is_constrained(annotation: Any) -> bool:
    """Return whether *annotation* is ``Annotated``, for example with a `msgspec.Meta`."""
    return get_origin(annotation) is typing.Annotated


def is_union(annotation: Any) -> bool:
    """Return whether *annotation* is a union, in either syntax."""
    return get_origin(annotation) in (typing.Union, types.UnionType)


def is_nullable(annotation: Any) -> bool:
    """Return whether *annotation*, with or without constraints, is a union that includes None."""
    kind, _ = split_constraints(annotation)
    return is_union(kind) and types.NoneType in get_args(kind)


def members_of(annotation: Any) -> list[Any]:
    """Return the members of a union except None; return an empty list for any other type."""
    members = get_args(annotation) if is_union(annotation) else ()
    return [member for member in members if member is not types.NoneType]


def is_enumerable(annotation: Any) -> bool:
    """Return whether all values of a type can be listed, like those of an enumeration."""
    annotation = unwrap_type(annotation, core=True)
    if members := members_of(annotation):
        return all(map(is_enumerable, members))
    return annotation is bool or is_enum(annotation) or is_literal(annotation)


def is_promptkit_class(annotation: Any) -> bool:
    """Return whether *annotation* is a class of `promptkit.language`, such as `Image`, or a subclass."""
    bases = getattr(annotation, "__mro__", ())
    return any(base.__module__.startswith("promptkit.language.") for base in bases)


def surrogate_of(annotation: Any) -> Surrogate | None:
    """
    Return the surrogate for one of promptkit's content classes or a Pydantic model; None for other types.
    """
    if is_promptkit_class(annotation):
        return SURROGATES.get(annotation)
    if isinstance(annotation, type) and hasattr(annotation, "__pydantic_validator__"):  # Pydantic is imported
        from promptkit.types.pydantic import pydantic_surrogate

        return pydantic_surrogate(annotation)
    return None


def is_bytes(annotation: Any) -> bool:
    """Return whether *annotation* is bytes, or `Image` or `Audio`, which are parsed from bytes."""
    surrogate = surrogate_of(annotation)
    return annotation is bytes or (surrogate is not None and surrogate.model is bytes)


def has_parts(annotation: Any) -> bool:
    """Return whether values of *annotation* have parts and are therefore written as JSON."""
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and (
        kind in SEQUENCES or kind in _MAPPINGS or is_record(kind) or issubclass(kind, tuple)
    )


def type_name(annotation: Any) -> str:
    """Return a type's text, as the author would write it."""
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")


def has_type(value: Any, annotation: Any) -> bool:
    """Return whether *value* has the type *annotation*."""
    # A fast path for most values, because importing typeguard takes longer than starting a server.
    if type(value) is annotation:
        return True
    if is_literal(annotation) and any(type(value) is type(v) and value == v for v in get_args(annotation)):
        return True
    if is_union(annotation) and any(type(value) is member for member in get_args(annotation)):
        return True
    from typeguard import CollectionCheckStrategy, TypeCheckError, check_type

    try:
        check_type(value, annotation, collection_check_strategy=CollectionCheckStrategy.ALL_ITEMS)
    except TypeCheckError:
        return False
    return True
