"""
JSON values to values of a type, quickly: msgspec converts what it converts as structuring does.

For each class with members, msgspec fills a struct of the same members, and the class is called with them:
left alone, msgspec would set the attributes of a dataclass and not call ``__init__``, and drop what a struct
does not know. Where values might differ there is no fast path. What does not fit is refused without a place:
`promptkit.types.structuring` finds all faults.
"""

from collections.abc import Callable
from types import GenericAlias
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin, is_typeddict

import msgspec
from msgspec import UNSET, Struct

from promptkit.types.constraints import zone_of
from promptkit.types.json_scalars import is_leaf, leaf
from promptkit.types.kinds import (
    SEQUENCES,
    Member,
    is_constrained,
    is_mapping,
    is_record,
    is_sequence,
    is_struct,
    is_union,
    members_of,
    members_of_record,
    plain,
    surrogate_of,
)
from promptkit.types.scalar_parsing import Read
from promptkit.types.scalars import SCALARS
from promptkit.types.structuring import structurer

#: The records around a type, which may not hold one another: structuring bounds how deep they are nested.
_Around: TypeAlias = frozenset[type]


class _Plan(Struct, frozen=True):
    """What msgspec makes of a JSON value, and what makes the value of that; None if it is the value."""

    model: Any
    build: Read | None = None


def json_read(annotation: Any, decode: Callable[[str], Any] | None = None) -> Read:
    """
    Make the function that makes values of a type from JSON values, as the type's JSON Schema says.

    It raises `ConversionError` with every part that does not fit. With *decode*, text is JSON.
    """
    convert = fast_path(annotation)

    def read(value: Any) -> Any:
        if decode is not None and isinstance(value, str):
            value = decode(value)
        if convert is not None:
            try:
                return convert(value)
            except Exception:  # noqa: BLE001, S110 (an author's class may refuse in any way)
                pass

        return structurer(annotation)(value)

    return read


def fast_path(annotation: Any) -> Read | None:
    """
    Make the function that makes values of a type from JSON values; None if msgspec cannot say all of it.

    It may raise anything for a value that does not fit, and for a few that fit: 1.0 is a whole number.
    """
    plan = _plan(annotation, frozenset())
    if plan is None:
        return None
    convert, build = _converter(plan.model), plan.build
    return convert if build is None else lambda value: build(convert(value))


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


def _leaf_plan(annotation: Any, _: _Around) -> _Plan:
    kind = annotation.__origin__ if is_constrained(annotation) else annotation
    scalar = SCALARS.get(kind) if isinstance(kind, type) else None
    if zone_of(annotation) is None and (scalar is None or scalar.convert is msgspec.convert):
        return _Plan(annotation)
    return _Plan(Any, leaf(annotation))


def _constrained_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of a value with parts, of which there may be only so many."""
    inner = _plan(annotation.__origin__, around)
    kind = plain(annotation.__origin__)
    makes_set = SEQUENCES.get(get_origin(kind) or kind) not in (None, list, tuple)
    if inner is None or inner.model is Any or makes_set:
        return None  # msgspec cannot tell the number of parts
    return _Plan(Annotated[inner.model, *annotation.__metadata__], inner.build)


def _surrogate_plan(annotation: Any, _: _Around) -> _Plan:
    surrogate: Any = surrogate_of(annotation)
    return _Plan(surrogate.model, surrogate.build)


def _sequence_plan(annotation: Any, around: _Around) -> _Plan | None:
    kind = get_origin(annotation) or annotation
    make = SEQUENCES[kind]
    plan = _plan((*get_args(annotation), Any)[0], around)
    if plan is None:
        return None
    build = plan.build
    if build is None and kind in (list, tuple):
        return _Plan(annotation)
    if build is None:
        return _Plan(GenericAlias(list, plan.model), make)
    return _Plan(GenericAlias(list, plan.model), lambda found: make([build(part) for part in found]))


def _fixed_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of a tuple of fixed length, if msgspec makes the very values in it."""
    plans = [_plan(part, around) for part in get_args(annotation)]
    return _Plan(annotation) if all(plan is not None and plan.build is None for plan in plans) else None


def _mapping_plan(annotation: Any, around: _Around) -> _Plan | None:
    key, value = get_args(annotation) or (Any, Any)
    plan = _plan(value, around)
    if plan is None or key not in (Any, str):
        return None
    build = plan.build
    if build is None:
        return _Plan(annotation)
    model = GenericAlias(dict, (str, plan.model))
    return _Plan(model, lambda found: {key: build(part) for key, part in found.items()})


def _optional_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of ``T | None``. Of other unions, structuring takes the first member that fits."""
    members = members_of(annotation)
    plan = _plan(members[0], around) if len(members) == 1 else None
    if plan is None:
        return None
    build = plan.build
    if build is None:
        return _Plan(annotation)
    return _Plan(plan.model | None, lambda found: None if found is None else build(found))


def _record_plan(annotation: Any, around: _Around) -> _Plan | None:
    """Return the plan of a dataclass, an attrs class or a struct, with all of its members and no others."""
    if is_typeddict(annotation) or annotation in around:  # a TypedDict is in the order of what was sent
        return None
    if is_struct(annotation):
        config = annotation.__struct_config__
        if type(annotation) is not type(Struct) or config.tag_field or config.array_like:
            return None
    planned: list[tuple[Member, _Plan]] = []
    for member in members_of_record(annotation):
        plan = _plan(member.type, around | {annotation})
        if plan is None:
            return None
        planned.append((member, plan))
    model = msgspec.defstruct(
        annotation.__name__,
        [(m.parameter, plan.model, *([] if m.required else [UNSET])) for m, plan in planned],
        kw_only=True,
        rename={member.parameter: member.name for member, _ in planned},
        forbid_unknown_fields=True,
    )
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
    (is_leaf, _leaf_plan),
    (is_constrained, _constrained_plan),
    (lambda t: surrogate_of(t) is not None, _surrogate_plan),
    (is_sequence, _sequence_plan),
    (lambda t: get_origin(t) is tuple, _fixed_plan),
    (is_mapping, _mapping_plan),
    (is_union, _optional_plan),
    (lambda t: is_record(t) or is_struct(t), _record_plan),
)
