"""Hypothesis strategies for the arguments that a client can send to a prompt, derived from their types."""

import os
import sys
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from math import ceil, floor
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Final, TypeAlias, get_args, get_origin

import msgspec
from msgspec import structs

from promptkit.catalog.arguments import Argument
from promptkit.catalog.cases import iterate_sendable
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.samples import PNG, WAV
from promptkit.declarations.prompts import Prompt
from promptkit.errors.distribution import needed_by
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Message, Workflow
from promptkit.types import kinds
from promptkit.types.errors import ConversionError
from promptkit.types.unstructuring import json_of, text_of

with needed_by("generating arguments (wire_arguments, call_arguments, pytest --promptkit)", "hypothesis"):
    from hypothesis import HealthCheck, given, reject, settings
    from hypothesis import strategies as st

AnyPrompt: TypeAlias = Prompt[..., Any] | CompiledPrompt
Strategy: TypeAlias = st.SearchStrategy[Any]

#: The classes of the records around a value. They are tracked, because a class can contain itself.
Outer: TypeAlias = tuple[type, ...]

#: The constraints of a type, keyed by their names in `msgspec.Meta`.
Bounds: TypeAlias = dict[str, Any]

#: The maximum number of list items beyond the minimum length, and the maximum depth of a recursive class.
_EXTRA_ITEMS: Final = 4
_MAX_DEPTH: Final = 2

#: The largest signed 64-bit integer. JSON parsers can reject larger ones.
_MAX_INTEGER: Final = 2**63 - 1

_OFFSETS: Final = (UTC, timezone(timedelta(hours=5, minutes=30)), timezone(-timedelta(hours=3)))

_NUMBERS: Final = st.integers(-_MAX_INTEGER, _MAX_INTEGER) | st.floats(allow_nan=False, allow_infinity=False)
_ANY: Final = st.recursive(
    st.none() | st.booleans() | _NUMBERS | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
_PATHS: Final = st.from_regex(r"\.{0,2}/?[\w .-]+(/[\w .-]+){0,2}", fullmatch=True) | st.text()


def wire_arguments(prompt: AnyPrompt) -> st.SearchStrategy[dict[str, str]]:
    """
    Return a strategy for the arguments of *prompt* as clients send them: strings, keyed by argument name.

    The strategy supports every parameter type, and includes the author's examples and the cases that render.
    Optional arguments are sometimes omitted, or blank, as in a form that is not filled in. Values of types
    registered with `promptkit.register_type` come from Hypothesis. For a type that Hypothesis does not
    support, register a strategy with ``hypothesis.strategies.register_type_strategy``.

    Args:
        prompt:
            The prompt.

    Raises:
        CompileError: If the prompt does not compile.
    """
    compiled = _compile(prompt)
    arguments = compiled.arguments.ordered
    values = st.fixed_dictionaries(
        {argument.name: argument_texts(argument) for argument in arguments if not argument.has_default},
        optional={argument.name: argument_texts(argument) for argument in arguments if argument.has_default},
    )
    cases = [sent for case, sent in iterate_sendable(compiled.saved()) if case.refusal is None]
    return st.sampled_from(cases) | values if cases else values


def call_arguments(prompt: AnyPrompt) -> st.SearchStrategy[dict[str, Any]]:
    """
    Return a strategy for the keyword arguments of *prompt*: `wire_arguments`, converted to their types.

    Args:
        prompt:
            The prompt.

    Raises:
        CompileError: If the prompt does not compile.
    """
    return wire_arguments(prompt).map(_compile(prompt).arguments.read)


def try_generated(prompt: AnyPrompt, test: Callable[[dict[str, str]], None]) -> None:
    """
    Call *test* with arguments generated for *prompt*. If ``CI`` is set, they are the same in each run.

    Raises:
        Exception: The exception that *test* raises for the simplest arguments with which it fails.
    """
    configured = settings(
        deadline=None,
        derandomize=settings().derandomize or "CI" in os.environ,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    configured(given(wire_arguments(prompt))(test))()


def _compile(prompt: AnyPrompt) -> CompiledPrompt:
    return prompt.compiled if isinstance(prompt, Prompt) else prompt


def argument_texts(argument: Argument) -> st.SearchStrategy[str]:
    """Return a strategy for the strings that a parameter accepts."""

    def is_valid(text: str) -> bool:
        if not text and not argument.blank_is_value:
            return argument.has_default
        try:
            argument.reader.read(text)
        except ConversionError:
            return False
        return True

    # A choice or an example can have several spellings, and a field of a form can be blank.
    texts = [*argument.reader.values, *map(text_of, argument.examples)]
    if argument.has_default and not argument.blank_is_value:
        texts.append("")
    values = _json_values(argument.annotation).filter(lambda value: value is not None).map(text_of)
    return (st.sampled_from(texts) | values if texts else values).filter(is_valid)


def _json_values(annotation: Any, outer: Outer = ()) -> Strategy:  # noqa: PLR0911 (one for each kind of type)
    """Return a strategy for the JSON values that a type accepts."""
    kind, bounds = _split_constraints(annotation)
    if kind in _SCALARS:
        return _SCALARS[kind](bounds)
    if kinds.is_literal(kind) or kinds.is_enum(kind):
        return st.sampled_from([json_of(member) for member in get_args(kind) or kind])
    if kinds.is_union(kind):
        return st.one_of([_json_values(member, outer) for member in get_args(kind)])
    if kinds.is_sequence(kind):
        return _lists(kind, bounds, outer)
    if kinds.is_mapping(kind):
        return _dictionaries(kind, bounds, outer)
    if get_origin(kind) is tuple:
        return st.tuples(*(_json_values(item, outer) for item in get_args(kind))).map(list)
    if hasattr(kind, "__pydantic_fields__"):
        return _models(kind, outer)
    return _records(kind, outer) if kinds.has_parts(kind) else st.from_type(kind).map(_to_json)


def _split_constraints(annotation: Any) -> tuple[Any, Bounds]:
    """Return a type without its annotations, and the constraints in them, from msgspec or Pydantic."""
    kind, limits = kinds.split_constraints(annotation, object)
    return kind, {name: value for name, value in structs.asdict(limits).items() if value is not None}


def _integers(bounds: Bounds) -> Strategy:
    minimum = bounds["gt"] + 1 if "gt" in bounds else bounds.get("ge", -_MAX_INTEGER)
    maximum = bounds["lt"] - 1 if "lt" in bounds else bounds.get("le", _MAX_INTEGER)
    step = bounds.get("multiple_of", 1)
    return st.integers(-(-minimum // step), maximum // step).map(lambda number: number * step)


def _floats(bounds: Bounds) -> Strategy:
    minimum, maximum = bounds.get("gt", bounds.get("ge")), bounds.get("lt", bounds.get("le"))
    if step := bounds.get("multiple_of"):
        lowest = None if minimum is None else ceil(minimum / step)
        highest = None if maximum is None else floor(maximum / step)
        return st.integers(lowest, highest).map(lambda number: number * step)
    finite = st.floats(minimum, maximum, allow_nan=False, allow_infinity=False)
    return finite.filter(lambda number: number not in (bounds.get("gt"), bounds.get("lt")))


def _strings(bounds: Bounds) -> Strategy:
    if "pattern" in bounds:
        return st.from_regex(bounds["pattern"], alphabet=st.characters(codec="utf-8"))
    return st.text(min_size=bounds.get("min_length", 0), max_size=bounds.get("max_length"))


def _bytes(bounds: Bounds) -> Strategy:
    return st.binary(min_size=bounds.get("min_length", 0), max_size=bounds.get("max_length")).map(json_of)


def _dates_or_times(make: Callable[..., Strategy]) -> Callable[[Bounds], Strategy]:
    """Return a function that creates a strategy for datetimes or times, with UTC offsets if required."""
    zones = {None: (None, *_OFFSETS), True: _OFFSETS, False: (None,)}
    return lambda bounds: make(timezones=st.sampled_from(zones[bounds.get("tz")])).map(json_of)


def _lists(kind: Any, bounds: Bounds, outer: Outer) -> Strategy:
    items = _json_values((*get_args(kind), Any)[0], outer)
    if items.is_empty:  # a recursive class has reached its maximum depth
        return st.just([])
    is_set = issubclass(get_origin(kind) or kind, AbstractSet)
    minimum, maximum = _size_range(bounds)
    unique = msgspec.json.encode if is_set else None
    return st.lists(items, min_size=minimum, max_size=maximum, unique_by=unique)


def _dictionaries(kind: Any, bounds: Bounds, outer: Outer) -> Strategy:
    key, value = get_args(kind) or (Any, Any)
    keys, values = (
        st.text() if key is Any else _json_values(key, outer).map(_json_key),
        _json_values(value, outer),
    )
    minimum, maximum = _size_range(bounds)
    return (
        st.just({}) if values.is_empty else st.dictionaries(keys, values, min_size=minimum, max_size=maximum)
    )


def _json_key(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _size_range(bounds: Bounds) -> tuple[int, int]:
    minimum = bounds.get("min_length", 0)
    return minimum, min(minimum + _EXTRA_ITEMS, bounds.get("max_length", sys.maxsize))


def _records(kind: Any, outer: Outer) -> Strategy:
    """Return a strategy for a record, that is, a class with fields."""
    cls = get_origin(kind) or kind
    if outer.count(cls) >= _MAX_DEPTH:
        return st.nothing()
    members = [(member, _json_values(member.type, (*outer, cls))) for member in kinds.members_of_record(kind)]
    if kinds.is_named_tuple(cls):
        values, minimum = [values for _, values in members], sum(member.required for member, _ in members)
        return st.one_of([st.tuples(*values[:end]).map(list) for end in range(minimum, len(values) + 1)])
    tag = {name: st.just(value) for name, value in kinds.tag_of(kind).items()}
    required = {member.name: values for member, values in members if member.required}
    optional = {member.name: values for member, values in members if not (member.required or values.is_empty)}
    return st.fixed_dictionaries(required | tag, optional=optional)


def _models(kind: Any, outer: Outer) -> Strategy:
    """Return a strategy for a Pydantic model. Values that its validators reject are removed later."""
    if outer.count(kind) >= _MAX_DEPTH:
        return st.nothing()
    required, optional = {}, {}
    for name, field in kind.__pydantic_fields__.items():
        values = _json_values(Annotated[(field.annotation, *(field.metadata or [None]))], (*outer, kind))
        if name == "root":  # the only field of a RootModel
            return values
        alias = field.validation_alias if isinstance(field.validation_alias, str) else field.alias or name
        if field.is_required():
            required[alias] = values
        elif not values.is_empty:
            optional[alias] = values
    return st.fixed_dictionaries(required, optional=optional)


def _to_json(value: Any) -> Any:
    try:
        return json_of(value)
    except Exception:  # noqa: BLE001 (a registered function can fail for generated values)
        reject()


#: The smallest possible files, in base64: images of one pixel, and empty audio.
_PICTURES: Final = (
    "R0lGODlhAQABAIAAAP///wAAACwAAAAAAQABAAACAkQBADs=",
    PNG,
)
_RECORDINGS: Final = (WAV,)

_CONTENT_TEXTS: Final = st.text(min_size=1).filter(lambda text: not text.isspace())


_MESSAGES: Final = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant"]), "content": _CONTENT_TEXTS}
)

#: Functions that create the strategies for types with constraints, and for types that Hypothesis lacks.
_SCALARS: Final[dict[Any, Callable[[Bounds], Strategy]]] = {
    **dict.fromkeys((Any, object), lambda _: _ANY),
    NoneType: lambda _: st.none(),
    int: _integers,
    float: _floats,
    Decimal: lambda _: st.decimals(allow_nan=False, allow_infinity=False).map(str),
    str: _strings,
    bytes: _bytes,
    datetime: _dates_or_times(st.datetimes),
    time: _dates_or_times(st.times),
    Path: lambda _: _PATHS,
    Image: lambda _: st.sampled_from(_PICTURES),
    Audio: lambda _: st.sampled_from(_RECORDINGS),
    Message: lambda _: _MESSAGES,
    Workflow: lambda _: st.lists(_MESSAGES, max_size=_EXTRA_ITEMS),
}
