"""
Readers: from the text of one argument to a value of its type.

On the wire every argument is a string. The table `READERS` says for each type how such a
string is read; `promptkit.catalog.arguments` looks a parameter up in it once, when it is compiled.
"""

import types
import typing
from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, Final, Literal, get_args, get_origin
from uuid import UUID

import attrs
import msgspec
from msgspec import Struct
from msgspec import inspect as mi

from promptkit.conversion.descriptions import bare, example_text, expectation, type_tree
from promptkit.conversion.errors import MAX_FAULTS, ConversionError, ConversionErrors
from promptkit.conversion.json_extent import holds_more
from promptkit.conversion.registry import CUSTOMS, expectations
from promptkit.conversion.scalars import (
    Read,
    located,
    offset_fault,
    parse_duration,
    parsed,
    read_bool,
    read_bytes,
    read_decimal,
    read_float,
    read_int,
    read_text,
    zone_of,
)
from promptkit.errors.exceptions import nearest

__all__ = ["Reader", "is_constrained", "is_enum", "is_list", "is_literal", "is_union", "plain", "reader_of"]

#: Where `str.splitlines` splits.
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"


class Reader(Struct, frozen=True):
    """
    How values of one type are read.

    Args:
        read:
            From what a client sent to the value.

        expected:
            What *read* takes, in a few words that end a sentence: ``a whole number``.

        hint:
            The same where people choose a value; ``""`` where the description says enough.

        values:
            Every text that is a value, if there are few: what completion offers.

        is_json:
            Whether people have to write JSON.

        exceeds:
            Whether a text holds more values than so many; None for what is one value always.
    """

    read: Read
    expected: str
    hint: str = ""
    values: tuple[str, ...] = ()
    is_json: bool = False
    exceeds: Callable[[str, int], bool] | None = None


def _choice(choices: Iterable[tuple[Any, tuple[Any, ...]]]) -> Reader:
    """
    Return a reader of a fixed set of values.

    Args:
        choices:
            Each value and what it is called, as text or as another JSON value. The first name
            is the one that people see, and counts before all others. Of several values with
            one name the first counts, and a name in its own type and case before another.
    """
    choices = list(choices)
    # What people see counts before what they may write as well.
    named = [(names[0], value) for value, names in choices]
    named += [(name, value) for value, names in choices for name in names[1:]]
    exact: dict[Any, Any] = {}
    for name, value in named:
        exact.setdefault((type(name), name), value)
    for name, value in named:
        exact.setdefault((str, str(name)), value)
    folded: dict[str, Any] = {}
    for name, value in named:
        folded.setdefault(str(name).casefold(), value)
    shown = {str(name): str(names[0]) for _, names in reversed(choices) for name in names}

    texts = {name: value for (kind, name), value in exact.items() if kind is str}

    def read(value: Any) -> Any:
        if type(value) is str and value in texts:
            return texts[value]
        if not isinstance(value, str | int | float | bool):
            raise ConversionError
        if isinstance(value, float) and value.is_integer() and (float, value) not in exact:
            value = int(value)  # 1.0 is an integer, to JSON Schema
        key = (type(value), value)
        if key in exact:
            return exact[key]
        if not isinstance(value, str) or (text := value.strip().casefold()) not in folded:
            raise ConversionError(nearest=partial(_nearest, value, shown) if isinstance(value, str) else None)
        return folded[text]

    names = tuple(str(names[0]) for _, names in choices)
    one_of = repr(names[0]) if len(names) == 1 else f"one of {', '.join(names)}"
    return Reader(read, one_of, one_of, names)


def _nearest(text: str, shown: Mapping[str, str]) -> str | None:
    """Return what people see of the value whose name *text* was probably meant to be."""
    found = nearest(text, shown)
    return None if found is None else shown[found]


def _member_names(member: Enum) -> tuple[Any, ...]:
    """
    Return what a member of an enumeration is called: its value, if that is plain, and its names.
    """
    names = [name for name, named in type(member).__members__.items() if named is member]
    return (member.value, *names) if isinstance(member.value, str | int) else tuple(names)


def _enum_reader(annotation: type[Enum]) -> Reader | None:
    """
    Return a reader of an enumeration, by value or by name. One without members has no value.
    """
    return _choice((member, _member_names(member)) for member in annotation) if len(annotation) else None


def _literal_reader(annotation: Any) -> Reader:
    """
    Return a reader of a ``Literal``; None among its values is "not given".
    """
    values = [value for value in get_args(annotation) if value is not None]
    return _choice((v, _member_names(v) if isinstance(v, Enum) else (v,)) for v in values)


def _union_reader(annotation: Any) -> Reader | None:
    """
    Return a reader of a union: the first member that fits, plain text last.

    None is no member: it is what was not given.
    """
    members = [member for member in get_args(annotation) if member is not types.NoneType]
    readers = [reader_of(member) for member in sorted(members, key=lambda member: plain(member) is str)]
    known = [reader for reader in readers if reader is not None]
    if len(known) != len(readers) or not known:
        return None
    if len(known) == 1:
        return known[0]

    def read(value: Any) -> Any:
        misfits = []
        for reader in known:
            try:
                return reader.read(value)
            except ConversionError as misfit:
                misfits.append(misfit)
        # The member that was meant is the one whose parts are at fault, or that says why it refuses.
        deep = [misfit for misfit in misfits if all(part.path or part.reason for part in misfit.parts)]
        if len(deep) == 1:
            raise deep[0]
        raise ConversionError(nearest=next((misfit.nearest for misfit in misfits if misfit.nearest), None))

    expected = " or ".join(reader.expected for reader in known)
    hint = "" if _TEXT in known else " or ".join(reader.hint or reader.expected for reader in known)
    values = tuple(value for reader in known for value in reader.values)
    counting = [reader.exceeds for reader in known if reader.exceeds is not None]

    def exceeds(text: str, most: int) -> bool:
        return any(counts(text, most) for counts in counting)

    return Reader(read, expected, hint, values, exceeds=exceeds if counting else None)


def _constrained_reader(annotation: Any) -> Reader | None:
    """
    Return a reader of ``Annotated[T, msgspec.Meta(...)]``.
    """
    inner = reader_of(annotation.__origin__)
    if inner is None:
        return None
    if zone := zone_of(annotation):
        return _zoned_reader(inner, zone)
    try:
        msgspec.json.Decoder(annotation)  # looks at whether the constraints are those of the type
        tree = type_tree(annotation)
    except TypeError:
        return None
    expected = expectation(tree, expectations())
    limits = (getattr(tree, "min_length", None) or 0, getattr(tree, "max_length", None))
    sized = not isinstance(tree, mi.StrType | mi.BytesType) and hasattr(tree, "min_length")

    def read(value: Any) -> Any:
        found = inner.read(value)
        if sized:
            if not limits[0] <= len(found) <= (len(found) if limits[1] is None else limits[1]):
                raise ConversionError(expected)
            return found
        try:
            return msgspec.convert(found, annotation)
        except (msgspec.ValidationError, ValueError):
            raise ConversionError(expected, reason=offset_fault(found, annotation)) from None

    hint = expected if expected != "text" else ""
    return Reader(read, expected, hint, inner.values, exceeds=inner.exceeds)


def _zoned_reader(inner: Reader, zone: tzinfo) -> Reader:
    """
    Return a reader of datetimes that takes those without an offset for times in *zone*.
    """
    hint = f"{inner.expected}, in {zone} unless it has an offset"
    return Reader(lambda value: located(inner.read(value), zone), inner.expected, hint)


def _list_reader(annotation: Any) -> Reader | None:
    """
    Return a reader of a list, a set or a tuple of any length, of plain values.

    It takes a JSON array, or values that commas or line ends separate. Of anything but plain
    values it is JSON alone.
    """
    make = get_origin(annotation)
    item = get_args(annotation)[0]
    member = reader_of(item)
    if member is None or member.is_json or is_list(item):
        return _json_reader(annotation)
    read_member = member.read
    nullable = is_union(plain(item)) and types.NoneType in get_args(plain(item))
    # A data: URI has a comma of its own.
    separators = "\n" if member is _BYTES else ",\n"
    if make in (set, frozenset) and member not in (_TEXT, _BYTES):
        from promptkit.conversion.collisions import set_of

        make = partial(set_of, make)

    def read(value: Any) -> Any:
        items = _split_list(value, separators) if isinstance(value, str) else value
        if not isinstance(items, list):
            raise ConversionError
        found, faults = [], []
        for i, part in enumerate(items):
            try:
                found.append(None if part is None and nullable else read_member(part))
            except ConversionError as misfit:
                faults += [_of(fault, member, part).at(f"[{i}]") for fault in misfit.parts]
                if len(faults) >= MAX_FAULTS:
                    break
        if faults:
            raise ConversionErrors(tuple(faults))
        try:
            return make(found)
        except TypeError:  # what an author has registered may not be hashable
            raise ConversionError from None

    expected = f"a list, each {member.expected}" if member.expected != "text" else "a list"
    separated = "several, one a line" if member is _BYTES else "several, separated by commas"
    hint = f"{separated}; each {member.hint}" if member.hint else separated
    return Reader(read, expected, hint, exceeds=partial(_list_exceeds, separators))


def _of(fault: ConversionError, reader: Reader, value: Any) -> ConversionError:
    """
    Return *fault* with what its reader expects and what it got, if it does not say.
    """
    return ConversionError(
        fault.expected or reader.expected,
        got=value if fault.got is None else fault.got,
        nearest=fault.find_nearest,
        path=fault.path,
        reason=fault.reason,
    )


def _split_list(text: str, separators: str) -> Any:
    """
    Return the items of a list as people write it, without blank ones.
    """
    if _is_array(text):
        return _decode(text)
    items = text.splitlines() if _is_by_line(text, separators) else text.split(",")
    return [item.strip() for item in items if item.strip()]


def _list_exceeds(separators: str, text: str, most: int) -> bool:
    """
    Return whether a list as people write it has more than *most* items, blank ones too.
    """
    if _is_array(text):
        return holds_more(text, most)
    text = text.strip()
    if _is_by_line(text, separators):
        return sum(map(text.count, _LINE_ENDS)) - text.count("\r\n") >= most
    return text.count(",") >= most


def _is_array(text: str) -> bool:
    return text.lstrip().startswith("[")


def _is_by_line(text: str, separators: str) -> bool:
    """
    Return whether line ends separate the items of a list.
    """
    return "\n" in text.strip() or "," not in separators


def _decode(text: str) -> Any:
    """
    Return the JSON value that *text* holds.
    """
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, ValueError):
        raise ConversionError from None


def _json_reader(annotation: Any) -> Reader | None:
    """
    Return a reader of a type whose values have parts; they are JSON.
    """
    try:
        tree = type_tree(annotation)
    except (TypeError, NameError, RecursionError):
        return None
    if not _readable(tree, set()):
        return None
    structure: Read | None = None

    def read(value: Any) -> Any:
        nonlocal structure
        if structure is None:
            from promptkit.conversion.structuring import (
                structurer,  # takes longer to import than a server to start
            )

            structure = structurer(annotation)
        return structure(_decode(value) if isinstance(value, str) else value)

    example = example_text(tree)
    hint = f"JSON, for example {example}"
    return Reader(read, expectation(tree, expectations()), hint, is_json=True, exceeds=holds_more)


#: What the keys of a JSON object can stand for.
_KEYS: Final = (
    mi.AnyType,
    mi.StrType,
    mi.IntType,
    mi.FloatType,
    mi.DecimalType,
    mi.DateType,
    mi.DateTimeType,
    mi.TimeType,
    mi.UUIDType,
    mi.EnumType,
    mi.LiteralType,
    mi.CustomType,
)


def _readable(tree: mi.Type, seen: set[type]) -> bool:
    """
    Return whether every part of a type can be read.
    """
    tree = bare(tree)
    if isinstance(tree, mi.CustomType):
        return tree.cls in CUSTOMS
    if isinstance(tree, mi.RawType | mi.ExtType | mi.ByteArrayType | mi.MemoryViewType):
        return False
    if isinstance(tree, mi.DictType) and not isinstance(tree.key_type, _KEYS):
        return False
    if (kind := getattr(tree, "cls", None)) in seen:
        return True
    inner = [getattr(tree, name) for name in ("item_type", "key_type", "value_type") if hasattr(tree, name)]
    inner += [*getattr(tree, "item_types", ()), *getattr(tree, "types", ())]
    inner += [field.type for field in getattr(tree, "fields", ())]
    return all(_readable(part, seen | {kind} if kind else seen) for part in inner)


def _custom_reader(annotation: Any) -> Reader:
    """
    Return a reader of a type that is registered.
    """
    custom = CUSTOMS[annotation]
    return Reader(custom.read, custom.expected, custom.expected)


def plain(annotation: Any) -> Any:
    """
    Return the type that a `typing.NewType`, or a ``type`` alias, stands for.
    """
    while True:
        if isinstance(annotation, typing.NewType):
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType" and get_origin(annotation) is None:
            annotation = annotation.__value__
        else:
            return annotation


def _is(kind: type) -> Callable[[Any], bool]:
    """
    Return what recognises *kind* itself.
    """
    return lambda annotation: annotation is kind


def is_enum(annotation: Any) -> bool:
    """
    Return whether *annotation* is an enumeration.
    """
    return isinstance(annotation, type) and issubclass(annotation, Enum)


def is_literal(annotation: Any) -> bool:
    """
    Return whether *annotation* is a ``Literal``.
    """
    return get_origin(annotation) is Literal


def is_list(annotation: Any) -> bool:
    """
    Return whether *annotation* is a list, a set or a tuple of any length, of something.
    """
    arguments = get_args(annotation)
    if get_origin(annotation) is tuple:
        return len(arguments) == 2 and arguments[1] is Ellipsis
    return get_origin(annotation) in (list, set, frozenset) and len(arguments) == 1


def is_constrained(annotation: Any) -> bool:
    """
    Return whether *annotation* has constraints of `msgspec.Meta`.
    """
    return get_origin(annotation) is typing.Annotated


def is_custom(annotation: Any) -> bool:
    """
    Return whether *annotation* is a type that is registered.
    """
    return isinstance(annotation, type) and annotation in CUSTOMS


def has_parts(annotation: Any) -> bool:
    """
    Return whether the values of *annotation* have parts, which JSON writes.
    """
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and (
        kind in (list, tuple, set, frozenset, dict)
        or typing.is_typeddict(kind)
        or issubclass(kind, tuple | msgspec.Struct)
        or attrs.has(kind)
        or hasattr(kind, "__dataclass_fields__")
    )


def is_union(annotation: Any) -> bool:
    """
    Return whether *annotation* is a union, in either spelling.
    """
    return get_origin(annotation) in (typing.Union, types.UnionType)


_TEXT: Final = Reader(read_text, "text")
_INT: Final = Reader(read_int, "a whole number", "a whole number")
_FLOAT: Final = Reader(read_float, "a number", "a number")
_BOOL: Final = Reader(read_bool, "yes or no", "yes or no", ("yes", "no"))
_BYTES: Final = Reader(read_bytes, "base64 or a data: URI", "base64 or a data: URI")


def _scalar(read: Read, expected: str, more: str = "") -> Callable[[Any], Reader]:
    """
    Return what makes the reader of a scalar; *more* is said where people choose a value.
    """
    reader = Reader(read, expected, expected + more)
    return lambda _: reader


_DATE: Final = "a date, as in 2026-01-31"
_DATETIME: Final = "a date and time, as in 2026-01-31T12:00"
_AS_WRITTEN: Final = ", read as it is written, with an offset (+01:00) or without"

#: The types that can be parameters: what recognises one, and what makes its reader. The
#: first row that recognises a type counts; a factory may still decline, with None.
READERS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], Reader | None]], ...]] = (
    (_is(str), lambda _: _TEXT),
    (_is(bool), lambda _: _BOOL),
    (_is(int), lambda _: _INT),
    (_is(float), lambda _: _FLOAT),
    (_is(bytes), lambda _: _BYTES),
    (_is(Decimal), _scalar(read_decimal, "a number")),
    (_is(date), _scalar(parsed(date.fromisoformat), _DATE)),
    (
        _is(datetime),
        _scalar(parsed(lambda text: datetime.fromisoformat(text.upper())), _DATETIME, _AS_WRITTEN),
    ),
    (_is(time), _scalar(parsed(lambda text: time.fromisoformat(text.upper())), "a time of day, as in 12:00")),
    (_is(timedelta), _scalar(parsed(parse_duration), "a duration, as in 1h 30m")),
    (_is(UUID), _scalar(parsed(UUID), "a UUID")),
    (is_custom, _custom_reader),
    (is_constrained, _constrained_reader),
    (is_enum, _enum_reader),
    (is_literal, _literal_reader),
    (is_list, _list_reader),
    (is_union, _union_reader),
    (has_parts, _json_reader),
)


def reader_of(annotation: Any) -> Reader | None:
    """
    Return the reader for a type, or None if it is not supported.
    """
    annotation = plain(annotation)
    for recognises, factory in READERS:
        if recognises(annotation):
            return factory(annotation)
    return None
