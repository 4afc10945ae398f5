"""
Fast conversion of JSON values to typed values by msgspec, where it converts like `structuring`.

For each class with members, msgspec fills a struct with the same members, and the class is called with them.
Converting directly, msgspec would set the attributes of a dataclass without calling ``__init__``, and drop
unknown members of a struct. Types whose values could differ have no fast path. Errors have no path here:
`promptkit.types.structuring` finds them all.
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

#: The records around a type, which must not be recursive: structuring limits the depth of nesting.
_Ancestors: TypeAlias = frozenset[type]


class _Plan(Struct, frozen=True):
    """The type that msgspec converts to, and the function that builds the value from it, if any."""

    model: Any
    build: Read | None = None


def json_read(annotation: Any, decode: Callable[[str], Any] | None = None) -> Read:
    """
    Return a function that converts JSON values to a type, as its JSON Schema describes.

    It raises `ConversionError` with every invalid part. With *decode*, text is decoded as JSON.
    """
    convert = fast_path(annotation)

    def read(value: Any) -> Any:
        if decode is not None and isinstance(value, str):
            value = decode(value)
        if convert is not None:
            try:
                return convert(value)
            except Exception:  # noqa: BLE001, S110 (an author's class can raise anything)
                pass

        return structurer(annotation)(value)

    return read


def fast_path(annotation: Any) -> Read | None:
    """
    Return a function that converts JSON values to a type; None if msgspec cannot convert all of it.

    It can raise anything for an invalid value, and for a few valid ones: 1.0 is a whole number.
    """
    plan = _plan(annotation, frozenset())
    if plan is None:
        return None
    convert, build = _converter(plan.model), plan.build
    return convert if build is None else lambda value: build(convert(value))


def _converter(model: Any) -> Read:
    """Return a function that converts JSON values with msgspec."""
    # msgspec caches type information of structs, but not of other types.
    convert = msgspec.convert
    if is_struct(model):
        return lambda value: convert(value, model)
    holder: Any = msgspec.defstruct("Holder", [("held", model)])
    return lambda value: convert({"held": value}, holder).held


def _plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    """Return the plan of a type; None if structuring must convert it."""
    annotation = plain(annotation)
    return next((make(annotation, ancestors) for matches, make in _PLANS if matches(annotation)), None)


def _leaf_plan(annotation: Any, _: _Ancestors) -> _Plan:
    kind = annotation.__origin__ if is_constrained(annotation) else annotation
    scalar = SCALARS.get(kind) if isinstance(kind, type) else None
    if zone_of(annotation) is None and (scalar is None or scalar.convert is msgspec.convert):
        return _Plan(annotation)
    return _Plan(Any, leaf(annotation))


def _constrained_plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    """Return the plan of a value with parts and a limited number of them."""
    inner = _plan(annotation.__origin__, ancestors)
    kind = plain(annotation.__origin__)
    is_set = SEQUENCES.get(get_origin(kind) or kind) not in (None, list, tuple)
    if inner is None or inner.model is Any or is_set:
        return None  # msgspec cannot count the parts
    return _Plan(Annotated[inner.model, *annotation.__metadata__], inner.build)


def _surrogate_plan(annotation: Any, _: _Ancestors) -> _Plan:
    surrogate: Any = surrogate_of(annotation)
    return _Plan(surrogate.model, surrogate.build)


def _sequence_plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    kind = get_origin(annotation) or annotation
    make = SEQUENCES[kind]
    plan = _plan((*get_args(annotation), Any)[0], ancestors)
    if plan is None:
        return None
    build = plan.build
    if build is None and kind in (list, tuple):
        return _Plan(annotation)
    if build is None:
        return _Plan(GenericAlias(list, plan.model), make)
    return _Plan(GenericAlias(list, plan.model), lambda values: make([build(part) for part in values]))


def _fixed_plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    """Return the plan of a fixed-length tuple, if msgspec creates its values directly."""
    plans = [_plan(part, ancestors) for part in get_args(annotation)]
    return _Plan(annotation) if all(plan is not None and plan.build is None for plan in plans) else None


def _mapping_plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    key, value = get_args(annotation) or (Any, Any)
    plan = _plan(value, ancestors)
    if plan is None or key not in (Any, str):
        return None
    build = plan.build
    if build is None:
        return _Plan(annotation)
    model = GenericAlias(dict, (str, plan.model))
    return _Plan(model, lambda values: {key: build(part) for key, part in values.items()})


def _optional_plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    """Return the plan of ``T | None``. For other unions, structuring takes the first matching member."""
    members = members_of(annotation)
    plan = _plan(members[0], ancestors) if len(members) == 1 else None
    if plan is None:
        return None
    build = plan.build
    if build is None:
        return _Plan(annotation)
    return _Plan(plan.model | None, lambda value: None if value is None else build(value))


def _record_plan(annotation: Any, ancestors: _Ancestors) -> _Plan | None:
    """Return the plan of a dataclass, an attrs class or a struct with all its members and no others."""
    if is_typeddict(annotation) or annotation in ancestors:  # a TypedDict keeps the order of the input
        return None
    if is_struct(annotation):
        config = annotation.__struct_config__
        if type(annotation) is not type(Struct) or config.tag_field or config.array_like:
            return None
    member_plans: list[tuple[Member, _Plan]] = []
    for member in members_of_record(annotation):
        plan = _plan(member.type, ancestors | {annotation})
        if plan is None:
            return None
        member_plans.append((member, plan))
    model = msgspec.defstruct(
        annotation.__name__,
        [(m.parameter, plan.model, *([] if m.required else [UNSET])) for m, plan in member_plans],
        kw_only=True,
        rename={member.parameter: member.name for member, _ in member_plans},
        forbid_unknown_fields=True,
    )
    return _Plan(model, _constructor(annotation, member_plans))


def _constructor(annotation: Callable[..., Any], member_plans: list[tuple[Member, _Plan]]) -> Read:
    """Return a function that calls a class with the members that were sent."""
    asdict = msgspec.structs.asdict
    optional = [member.parameter for member, _ in member_plans if not member.required]
    built = [(member.parameter, plan.build) for member, plan in member_plans if plan.build is not None]

    def build(struct: Any) -> Any:
        values = asdict(struct)
        for name in optional:
            if values[name] is UNSET:
                del values[name]
        for name, build_member in built:
            if name in values:
                values[name] = build_member(values[name])
        return annotation(**values)

    return build


#: Predicates of types, and factories of their plans, in the order of structuring. The first match counts.
_PLANS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any, _Ancestors], _Plan | None]], ...]] = (
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
