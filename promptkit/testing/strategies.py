"""Hypothesis strategies: the arguments that a client may send to a prompt, from their types."""

from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from math import ceil, floor
from pathlib import Path
from types import NoneType
from typing import Any, Final, TypeAlias, get_args

import msgspec
from msgspec import inspect as mi

from promptkit.catalog.arguments import Argument
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.prompts import Prompt
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.kinds import is_enum, is_list, is_literal, is_union, plain
from promptkit.conversion.scalars import SCALARS
from promptkit.conversion.unstructuring import json_of, text_of
from promptkit.errors.distribution import needed_by

with needed_by("making arguments up (wire_arguments, call_arguments, pytest --promptkit)", "hypothesis"):
    from hypothesis import reject
    from hypothesis import strategies as st

__all__ = ["call_arguments", "wire_arguments"]

AnyPrompt: TypeAlias = Prompt[..., Any] | CompiledPrompt
Values: TypeAlias = st.SearchStrategy[Any]

#: The records that a value lies in, by their classes: one may contain itself.
Outer: TypeAlias = tuple[type, ...]

#: How many items a list has beyond those that it must have, and how often a class lies in itself.
_ITEMS: Final = 4
_DEPTH: Final = 2

#: The largest whole number that every program reads from JSON.
_LARGEST: Final = 2**63 - 1

_OFFSETS: Final = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=3)))

_NUMBERS: Final = st.integers(-_LARGEST, _LARGEST) | st.floats(allow_nan=False, allow_infinity=False)
_ANY: Final = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_PATHS: Final = st.from_regex(r"\.{0,2}/?[\w .-]+(/[\w .-]+){0,2}", fullmatch=True) | st.text()


def wire_arguments(prompt: AnyPrompt) -> st.SearchStrategy[dict[str, str]]:
    """
    Return a strategy for what a client may send to *prompt*, as text, by argument name.

    It makes values of every type that a parameter can have, among them the examples of its author. What
    has a default is also left out, or left blank as in a form. Of a type that `promptkit.register_type`
    has taught, hypothesis makes the values: teach it by ``hypothesis.strategies.register_type_strategy``
    if it cannot.

    Args:
        prompt:
            The prompt.

    Raises:
        CompileError: If the prompt cannot be served as it is written.
    """
    arguments = _compiled(prompt).arguments.ordered
    return st.fixed_dictionaries(
        {argument.name: _texts(argument) for argument in arguments if not argument.has_default},
        optional={argument.name: _texts(argument) for argument in arguments if argument.has_default},
    )


def call_arguments(prompt: AnyPrompt) -> st.SearchStrategy[dict[str, Any]]:
    """
    Return a strategy for keyword arguments to call *prompt* with: what `wire_arguments` makes, as values.

    Args:
        prompt:
            The prompt.

    Raises:
        CompileError: If the prompt cannot be served as it is written.
    """
    return wire_arguments(prompt).map(_compiled(prompt).arguments.read)


def _compiled(prompt: AnyPrompt) -> CompiledPrompt:
    return prompt.compiled if isinstance(prompt, Prompt) else prompt


def _texts(argument: Argument) -> st.SearchStrategy[str]:
    """Return a strategy for the text of one argument, which its parameter reads."""

    def is_read(text: str) -> bool:
        if not text and not argument.blank_is_value:
            return argument.has_default
        try:
            argument.reader.read(text)
        except ConversionError:
            return False
        return True

    made = _json_values(argument.annotation).map(text_of)
    return st.one_of(*_people_write(argument), made).filter(is_read)


def _people_write(argument: Argument) -> list[st.SearchStrategy[str]]:
    """Return strategies for what people write otherwise than programs: choices, examples, nothing."""
    texts = [*argument.reader.values, *map(text_of, argument.examples)]
    if argument.has_default and not argument.blank_is_value:
        texts.append("")  # an empty field of a form
    return [st.sampled_from(texts)] if texts else []


def _json_values(annotation: Any) -> Values:
    """Return a strategy for the JSON values that a type may take; null stands only inside of them."""
    annotation = plain(annotation)
    if is_literal(annotation) or is_enum(annotation):
        members = get_args(annotation) if is_literal(annotation) else annotation
        return st.sampled_from([json_of(member) for member in members if member is not None])
    if is_union(annotation):
        return st.one_of([_json_values(kind) for kind in get_args(annotation) if kind is not NoneType])
    if is_list(annotation):
        return st.lists(_item_values(get_args(annotation)[0]), max_size=_ITEMS)
    return _values(mi.type_info(annotation), ())


def _item_values(annotation: Any) -> Values:
    values = _json_values(annotation)
    nullable = is_union(plain(annotation)) and NoneType in get_args(plain(annotation))
    return st.none() | values if nullable else values


def _values(tree: mi.Type, outer: Outer) -> Values:
    tree = plain(tree)
    if (make := _BY_TREE.get(type(tree))) is not None:
        return make(tree, outer)
    kind = next(kind for kind, scalar in SCALARS.items() if scalar.tree is type(tree))
    return st.from_type(kind).map(json_of)


def _integers(tree: mi.IntType, _: Outer) -> Values:
    least = tree.ge if tree.gt is None else tree.gt + 1
    most = tree.le if tree.lt is None else tree.lt - 1
    step = tree.multiple_of or 1
    lowest = -(-(-_LARGEST if least is None else least) // step)
    highest = (_LARGEST if most is None else most) // step
    return st.integers(lowest, highest).map(lambda number: number * step)


def _floats(tree: mi.FloatType, _: Outer) -> Values:
    least = tree.ge if tree.gt is None else tree.gt
    most = tree.le if tree.lt is None else tree.lt
    if step := tree.multiple_of:
        lowest = None if least is None else ceil(least / step)
        highest = None if most is None else floor(most / step)
        return st.integers(lowest, highest).map(lambda number: number * step)
    finite = st.floats(least, most, allow_nan=False, allow_infinity=False)
    return finite.filter(lambda number: number not in (tree.gt, tree.lt))


def _texts_of(tree: mi.StrType, _: Outer) -> Values:
    if tree.pattern is not None:
        return st.from_regex(tree.pattern, alphabet=st.characters(codec="utf-8"))
    return st.text(min_size=tree.min_length or 0, max_size=tree.max_length)


def _bytes(tree: mi.BytesType, _: Outer) -> Values:
    return st.binary(min_size=tree.min_length or 0, max_size=tree.max_length).map(json_of)


def _moments(tree: mi.DateTimeType | mi.TimeType, _: Outer) -> Values:
    """Return a strategy for times, whose type may ask for an offset, or refuse one."""
    zones = st.sampled_from({None: (None, *_OFFSETS), True: _OFFSETS, False: (None,)}[tree.tz])
    make: Callable[..., Values] = st.times if isinstance(tree, mi.TimeType) else st.datetimes
    return make(timezones=zones).map(json_of)


def _list(tree: Any, outer: Outer) -> Values:
    items = _values(tree.item_type, outer)
    if items.is_empty:  # deep in a class that contains itself
        return st.just([])
    unique = msgspec.json.encode if isinstance(tree, mi.SetType | mi.FrozenSetType) else None
    least, most = _sizes(tree)
    return st.lists(items, min_size=least, max_size=most, unique_by=unique)


def _dict(tree: mi.DictType, outer: Outer) -> Values:
    keys = st.text() if isinstance(tree.key_type, mi.AnyType) else _values(tree.key_type, outer).map(_key)
    values = _values(tree.value_type, outer)
    least, most = _sizes(tree)
    return st.just({}) if values.is_empty else st.dictionaries(keys, values, min_size=least, max_size=most)


def _key(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _sizes(tree: Any) -> tuple[int, int]:
    least = tree.min_length or 0
    most = least + _ITEMS
    return least, most if tree.max_length is None else min(most, tree.max_length)


def _tuple(tree: mi.TupleType, outer: Outer) -> Values:
    return st.tuples(*(_values(item, outer) for item in tree.item_types)).map(list)


def _union(tree: mi.UnionType, outer: Outer) -> Values:
    return st.one_of([_values(member, outer) for member in tree.types])


def _record(tree: Any, outer: Outer) -> Values:
    """Return a strategy for a class with named members."""
    if outer.count(tree.cls) >= _DEPTH:
        return st.nothing()
    members = [(field, _values(field.type, (*outer, tree.cls))) for field in tree.fields]
    tag_field = getattr(tree, "tag_field", None)
    if isinstance(tree, mi.NamedTupleType) or getattr(tree, "array_like", False):
        return _array([st.just(tree.tag)] if tag_field else [], members)
    required = {field.encode_name: values for field, values in members if field.required}
    if tag_field:
        required[tag_field] = st.just(tree.tag)
    optional = {
        field.encode_name: values for field, values in members if not (field.required or values.is_empty)
    }
    return st.fixed_dictionaries(required, optional=optional)


def _array(tag: list[Values], members: list[tuple[mi.Field, Values]]) -> Values:
    """Return a strategy for a record that is an array in JSON, whose last members may be left out."""
    least = max((at for at, (field, _) in enumerate(members, start=1) if field.required), default=0)
    values = [*tag, *(values for _, values in members)]
    ends = range(len(tag) + least, len(values) + 1)
    return st.one_of([st.tuples(*values[:end]).map(list) for end in ends])


def _registered(tree: mi.CustomType, _: Outer) -> Values:
    """Return a strategy for the text of a registered type, whose values hypothesis makes."""
    if tree.cls is Path:
        return _PATHS
    write = SCALARS[tree.cls].write

    def written(value: Any) -> str:
        try:
            return write(value)
        except Exception:  # noqa: BLE001 (an author's function may be unable to write what was made up)
            reject()

    return st.from_type(tree.cls).map(written)


#: What makes values of types with parts or bounds, and of those that hypothesis does not know.
_BY_TREE: Final[dict[type[mi.Type], Callable[[Any, Outer], Values]]] = {
    mi.AnyType: lambda _, __: _ANY,
    mi.NoneType: lambda _, __: st.none(),
    mi.IntType: _integers,
    mi.FloatType: _floats,
    mi.DecimalType: lambda _, __: st.decimals(allow_nan=False, allow_infinity=False).map(str),
    mi.StrType: _texts_of,
    mi.BytesType: _bytes,
    **dict.fromkeys((mi.DateTimeType, mi.TimeType), _moments),
    mi.EnumType: lambda tree, _: st.sampled_from([json_of(member) for member in tree.cls]),
    mi.LiteralType: lambda tree, _: st.sampled_from(tree.values),
    mi.CustomType: _registered,
    **dict.fromkeys((mi.ListType, mi.SetType, mi.FrozenSetType, mi.VarTupleType), _list),
    mi.TupleType: _tuple,
    mi.DictType: _dict,
    mi.UnionType: _union,
    **dict.fromkeys((mi.TypedDictType, mi.DataclassType, mi.StructType, mi.NamedTupleType), _record),
}
