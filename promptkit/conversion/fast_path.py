"""
JSON values to values of a type, quickly: msgspec converts what it converts as structuring does.

For each dataclass and attrs class, msgspec fills a struct of the same members, and the class is called with
them: left alone, msgspec would set its attributes and not call ``__init__``. As an author's struct drops what
it does not know, another is filled first, which does not. Where values might differ there is no fast path, as
for sets of what a client can make collide. What does not fit is refused without a place:
`promptkit.conversion.structuring` finds all faults.
"""

from collections.abc import Callable, Iterable
from types import GenericAlias, NoneType
from typing import Annotated, Any, Final, TypeAlias, Union, get_args, get_origin, is_typeddict

import msgspec
from msgspec import UNSET, Struct

from promptkit.conversion.kinds import (
    SEQUENCES,
    Member,
    is_constrained,
    is_literal,
    is_mapping,
    is_record,
    is_sequence,
    is_struct,
    is_union,
    members_of_record,
    plain,
)
from promptkit.conversion.leaves import has_salted_hash, is_leaf, is_registered, leaf, registered_leaf
from promptkit.conversion.offsets import zone_of
from promptkit.conversion.parsing import Read
from promptkit.conversion.scalars import SCALARS

__all__ = ["fast_path"]

#: The records around a type, which may not hold one another: structuring bounds how deep they are nested.
_Around: TypeAlias = frozenset[type]


class _Plan(Struct, frozen=True):
    """What msgspec makes of a JSON value, and what makes the value of that; None if it is the value."""

    model: Any
    build: Read | None = None


def fast_path(annotation: Any) -> Read | None:
    """
    Make the function that makes values of a type from JSON values; None if msgspec cannot say all of it.

    It may raise anything for a value that does not fit, and for a few that fit: 1.0 is a whole number.
    """
    plan = _plan(annotation, frozenset())
    if plan is None:
        return None
    convert, build = _converter(plan.model), plan.build
    if (closed := _closed(plan.model)) != plan.model:
        convert = _checked(_converter(closed), convert)
    return convert if build is None else lambda value: build(convert(value))


def _checked(check: Read, convert: Read) -> Read:
    def checked(value: Any) -> Any:
        check(value)
        return convert(value)

    return checked


def _closed(model: Any) -> Any:
    """Return *model*, or one in its place whose structs refuse members that they do not have."""
    model = plain(model)
    if is_struct(model):
        return _closed_struct(model)
    if is_constrained(model):
        return Annotated[_closed(model.__origin__), *model.__metadata__]
    parts = () if is_literal(model) else get_args(model)
    if not parts:
        return model
    closed = tuple(part if part is Ellipsis else _closed(part) for part in parts)
    return Union[closed] if is_union(model) else GenericAlias(get_origin(model), closed)  # noqa: UP007


def _closed_struct(struct: Any) -> Any:
    members = members_of_record(struct)
    closed = [_closed(member.type) for member in members]
    is_open = not struct.__struct_config__.forbid_unknown_fields
    if is_open or closed != [member.type for member in members]:
        return _struct_of(struct, zip(members, closed, strict=True))
    return struct


def _struct_of(record: Any, members: Iterable[tuple[Member, Any]]) -> Any:
    """Make a struct with the members of a record, each with a type, and no others."""
    members = list(members)
    return msgspec.defstruct(
        record.__name__,
        [(each.parameter, kind, *([] if each.required else [UNSET])) for each, kind in members],
        kw_only=True,
        rename={each.parameter: each.name for each, _ in members},
        forbid_unknown_fields=True,
    )


def _converter(model: Any) -> Read:
    """Make the function that has msgspec convert JSON values."""
    # msgspec keeps what it knows of a struct, and finds out again what it knows of any other type.
    convert = msgspec.convert
    if is_struct(model):
        return lambda value: convert(value, model)
    holder: Any = msgspec.defstruct("Holder", [("held", model)])
    return lambda value: convert({"held": value}, holder).held


def _plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return how values of a type are made; None if that is left to structuring."""
    annotation = plain(annotation)
    return next((make(annotation, around) for recognises, make in _PLANS if recognises(annotation)), None)


def _are_exact(annotations: Any, around: _Around) -> bool:
    """Tell whether msgspec makes the very values of all types."""
    plans = [_plan(annotation, around) for annotation in annotations]
    return all(plan is not None and plan.build is None for plan in plans)


def _leaf_plan(annotation: Any, _: _Around) -> _Plan:
    if is_registered(annotation):
        structure = registered_leaf(annotation, None)
    else:
        kind = annotation.__origin__ if is_constrained(annotation) else annotation
        scalar = SCALARS.get(kind) if isinstance(kind, type) else None
        if zone_of(annotation) is None and (scalar is None or scalar.convert is msgspec.convert):
            return _Plan(annotation)
        structure = leaf(annotation, None)
    return _Plan(Any, lambda value: structure(value, annotation))


def _constrained_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of a value with parts, of which there may be only so many."""
    inner = _plan(annotation.__origin__, around)
    if inner is None or inner.model is Any:  # of which msgspec cannot tell the number of parts
        return None
    return _Plan(Annotated[inner.model, *annotation.__metadata__], inner.build)


def _sequence_plan(annotation: Any, around: _Around) -> _Plan | None:
    kind = get_origin(annotation) or annotation
    make = SEQUENCES[kind]
    item = (*get_args(annotation), Any)[0]
    plan = _plan(item, around)
    if plan is None or (make in (set, frozenset) and not has_salted_hash(item)):
        return None
    build = plan.build
    if build is None:  # msgspec makes lists of what is read as a tuple, but for a tuple itself
        return _Plan(annotation, tuple if make is tuple and kind is not tuple else None)
    if make is list:
        return _Plan(GenericAlias(list, plan.model), lambda found: [build(part) for part in found])
    return _Plan(GenericAlias(list, plan.model), lambda found: make([build(part) for part in found]))


def _fixed_plan(annotation: Any, around: _Around) -> _Plan | None:
    return _Plan(annotation) if _are_exact(get_args(annotation), around) else None


def _mapping_plan(annotation: Any, around: _Around) -> _Plan | None:
    key, value = get_args(annotation) or (Any, Any)
    plan = _plan(value, around)
    if plan is None or key not in (Any, str):
        return None
    build = plan.build
    if build is None:
        return _Plan(annotation)
    return _Plan(
        GenericAlias(dict, (str, plan.model)), lambda found: {key: build(part) for key, part in found.items()}
    )


def _optional_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of ``T | None``. Of other unions, structuring takes the first member that fits."""
    members = [member for member in get_args(annotation) if member is not NoneType]
    plan = _plan(members[0], around) if len(members) == 1 else None
    if plan is None:
        return None
    build = plan.build
    if build is None:
        return _Plan(annotation)
    return _Plan(plan.model | None, lambda found: None if found is None else build(found))


def _struct_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of a struct, which msgspec makes itself."""
    config = annotation.__struct_config__
    if type(annotation) is not type(Struct) or config.tag_field or config.array_like or annotation in around:
        return None
    types = [field.type for field in msgspec.structs.fields(annotation)]
    return _Plan(annotation) if _are_exact(types, around | {annotation}) else None


def _record_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of a dataclass or an attrs class. A TypedDict is in the order of what was sent."""
    if is_typeddict(annotation) or annotation in around:
        return None
    planned = []
    for member in members_of_record(annotation):
        plan = _plan(member.type, around | {annotation})
        if plan is None:
            return None
        planned.append((member, plan))
    model = _struct_of(annotation, ((member, plan.model) for member, plan in planned))
    return _Plan(model, _constructor(annotation, planned))


def _constructor(annotation: Callable[..., Any], planned: list[tuple[Member, _Plan]]) -> Read:
    """Make the function that calls a class with the members that were sent."""
    asdict = msgspec.structs.asdict
    optional = [each.parameter for each, _ in planned if not each.required]
    built = [(each.parameter, plan.build) for each, plan in planned if plan.build is not None]

    def build(found: Any) -> Any:
        values = asdict(found)
        for name in optional:
            if values[name] is UNSET:
                del values[name]
        for name, build_member in built:
            if name in values:
                values[name] = build_member(values[name])
        return annotation(**values)

    return build


#: What recognises a type, and what makes its plan, in the order of structuring. The first row that fits
#: counts.
_PLANS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, _Around], _Plan | None]], ...]] = (
    (lambda t: t is Any, lambda t, _: _Plan(t)),
    (lambda t: is_registered(t) or is_leaf(t), _leaf_plan),
    (is_constrained, _constrained_plan),
    (is_sequence, _sequence_plan),
    (lambda t: get_origin(t) is tuple, _fixed_plan),
    (is_mapping, _mapping_plan),
    (is_union, _optional_plan),
    (is_record, _record_plan),
    (is_struct, _struct_plan),
)
