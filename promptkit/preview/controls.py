"""
Controls: what a form shows for an argument, chosen by its type in one table.

A control shows a value only if the browser sends back what reads as the same value. If not, the next control
of the type is tried, and at last the value is kept unseen.
"""

import math
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs
import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.json_schema import alternative_of
from promptkit.conversion.annotations import notes_of
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.kinds import core_of, is_closed, is_list, members_of
from promptkit.conversion.readers import reader_of, split_list
from promptkit.conversion.scalars import SCALARS
from promptkit.conversion.unstructuring import text_of

__all__ = ["Control", "Option", "control_of", "is_by_line", "is_json", "is_upload", "takes_file", "typeable"]

Kind: TypeAlias = Literal["line", "area", "radios", "select", "moment", "file", "kept"]

#: A choice among more is a list that opens.
_MOST_RADIOS: Final = 4

#: What HTML takes for a number.
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

#: What browsers change: they send each carriage return as part of a line end, and pages hold no NUL.
_UNTYPEABLE: Final = re.compile("[\r\0\ud800-\udfff]")

#: Keyboards of small devices, by the format in the JSON Schema.
_KEYBOARDS: Final = {"uri": "url", "email": "email", "decimal": "decimal"}


@attrs.frozen
class Option:
    """
    One of several values to choose from.

    Args:
        value:
            What is sent; ``""`` for nothing.

        label:
            What people see.

        chosen:
            Whether it is the value.
    """

    value: str
    label: str
    chosen: bool = False


@attrs.frozen
class Control:
    """
    What a form shows for an argument.

    Args:
        kind:
            The macro of ``fields.html`` that draws it.

        value:
            The text in it.

        attributes:
            More attributes of the element.

        options:
            What to choose from.

        offset:
            The offset from UTC of a moment; None if it has no field for that.
    """

    kind: Kind
    value: str = ""
    attributes: Mapping[str, str] = MappingProxyType({})
    options: tuple[Option, ...] = ()
    offset: str | None = None


#: Takes an argument and its value, ``""`` for none. Returns None if the control cannot show that value.
Show: TypeAlias = Callable[[Argument, str], Control | None]


def control_of(argument: Argument, given: str | None) -> Control:
    """
    Return the control of an argument.

    Args:
        argument:
            The argument.

        given:
            Its value, as a client sends it; None for nothing.
    """
    shows = (_password,) if argument.arg.secret else (*_shows_of(core_of(argument.annotation)), _line, _area)
    found = (show(argument, given or "") for show in shows)
    return next((control for control in found if control is not None), _kept(given or ""))


def typeable(text: str) -> bool:
    """
    Tell whether browsers send a text unchanged.
    """
    return _UNTYPEABLE.search(text) is None


def is_upload(argument: Argument) -> bool:
    """
    Tell whether people give the value as a file, or as several.
    """
    core = core_of(argument.annotation)
    return core is bytes or (is_list(core) and core_of(get_args(core)[0]) is bytes)


def takes_file(argument: Argument, control: Control) -> bool:
    """
    Tell whether the value may be read from a file.
    """
    return control.kind in ("area", "file", "kept") or is_upload(argument)


def is_by_line(argument: Argument) -> bool:
    """
    Tell whether the value is a list whose items stand on a line each.
    """
    return _is_lines(core_of(argument.annotation))


def is_json(argument: Argument) -> bool:
    """
    Tell whether the value is written as JSON, or may be.
    """
    return _has_parts(core_of(argument.annotation))


def _shows_of(core: Any) -> tuple[Show, ...]:
    return next((shows for recognises, shows in _BY_TYPE if recognises(core)), ())


def _line(argument: Argument, given: str) -> Control | None:
    if "\n" in given or not typeable(given):
        return None
    keyboard = _KEYBOARDS.get(alternative_of(argument).get("format", ""))
    return Control("line", given, {"type": "text"} | ({"inputmode": keyboard} if keyboard else {}))


def _password(_: Argument, given: str) -> Control | None:
    if "\n" in given or not typeable(given):
        return None
    return Control("line", given, {"type": "password", "autocomplete": "off"})


def _text(argument: Argument, given: str) -> Control | None:
    """Text is most often of several lines; text that is completed is a name."""
    return None if argument.completer is not None else _area(argument, given)


def _area(_: Argument, given: str) -> Control | None:
    return Control("area", given) if typeable(given) else None


def _kept(given: str) -> Control:
    """A value that people can only replace or remove, in base64."""
    return Control("kept", b64encode(given.encode(errors="surrogatepass")).decode())


def _file(_: Argument, given: str) -> Control | None:
    return Control("file", given) if typeable(given) else None


def _choice(argument: Argument, given: str) -> Control | None:
    if not typeable(given):
        return None
    values = dict.fromkeys(filter(None, argument.reader.values))
    chosen = _spelling(argument, given, values)
    options = [Option(value, value, value == chosen) for value in values]
    if chosen and chosen not in values:
        options.append(Option(chosen, f"{chosen} (not a choice)", chosen=True))
    kind: Kind = "radios" if len(values) <= _MOST_RADIOS else "select"
    if not argument.required or kind == "select":
        options.insert(0, Option("", _left_out(argument, values), not chosen))
    return Control(kind, options=tuple(options))


def _left_out(argument: Argument, values: Mapping[str, None]) -> str:
    """The option that chooses nothing."""
    if argument.required:
        return "Choose…"
    has_default = argument.has_default and argument.default is not None
    return (
        f"Default: {_spelling(argument, text_of(argument.default), values)}" if has_default else "Not given"
    )


def _spelling(argument: Argument, given: str, values: Mapping[str, None]) -> str:
    """How a choice is spelled among *values*; *given* itself if it is none of them."""
    if not given or given in values:
        return given
    meant = _read(argument, given)
    same = (value for value in values if _is_same(_read(argument, value), meant))
    return given if meant is None else next(same, given)


def _number(argument: Argument, given: str) -> Control | None:
    value = given.strip()
    if not _is_number(value):
        written = _read(argument, given)
        value = "" if written is None else str(written)
    if given and not _is_number(value):
        return None
    schema = alternative_of(argument)
    return Control("line", value, {"type": "number", **_bounds(schema)})


def _is_number(text: str) -> bool:
    # Browsers drop a number that is too large for them.
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _bounds(schema: Mapping[str, Any]) -> dict[str, str]:
    """The attributes for the bounds of a number. Browsers count steps from the lower bound."""
    whole = schema.get("type") == "integer"
    step = Decimal(str(schema.get("multipleOf", 1 if whole else 0)))
    least, most = _lowest(schema, whole=whole), _highest(schema, whole=whole)
    if step and least is not None:
        least = math.ceil(least / step) * step
    bounds = {"min": least, "max": most, "step": step or "any"}
    return {name: str(bound) for name, bound in bounds.items() if bound is not None}


def _lowest(schema: Mapping[str, Any], *, whole: bool) -> Decimal | None:
    if "exclusiveMinimum" in schema:
        return Decimal(str(schema["exclusiveMinimum"])) + whole
    return Decimal(str(schema["minimum"])) if "minimum" in schema else None


def _highest(schema: Mapping[str, Any], *, whole: bool) -> Decimal | None:
    if "exclusiveMaximum" in schema:
        return Decimal(str(schema["exclusiveMaximum"])) - whole
    return Decimal(str(schema["maximum"])) if "maximum" in schema else None


def _date(argument: Argument, given: str) -> Control | None:
    found = _read(argument, given) if given else None
    if given and found is None:
        return None
    return Control("line", found.isoformat() if found else "", {"type": "date"})


def _moment(argument: Argument, given: str) -> Control | None:
    """A date and time, or a time of day, with a field of its own for the offset."""
    core = core_of(argument.annotation)
    kind = "time" if core is time else "datetime-local"
    asked = {note.tz for note in notes_of(argument.annotation) if isinstance(note, msgspec.Meta)}
    may_have_offset = True in asked or (core is datetime and False not in asked)
    if not given:
        return Control("moment", "", {"type": kind, "step": "any"}, offset="" if may_have_offset else None)
    try:
        # As it is written: the reader of the argument may add a zone.
        found: datetime | time = SCALARS[core].read(given)
    except ConversionError:
        return None
    offset = _offset(found)
    if found.microsecond % 1000 or offset is None:
        return None
    local = found.replace(tzinfo=None).isoformat(timespec="milliseconds" if found.microsecond else "auto")
    shown = offset if offset or may_have_offset else None
    return Control("moment", local, {"type": kind, "step": "any"}, offset=shown)


def _offset(moment: datetime | time) -> str | None:
    """The offset of a moment as text; None if it has parts of a minute."""
    offset = moment.utcoffset()
    if offset is None:
        return ""
    if offset % timedelta(minutes=1):
        return None
    sign, minutes = ("-" if offset < timedelta() else "+"), abs(offset) // timedelta(minutes=1)
    return f"{sign}{minutes // 60:02}:{minutes % 60:02}"


def _lines(argument: Argument, given: str) -> Control | None:
    if not typeable(given):
        return None
    lines = _by_line(argument, given)
    return Control("area", given if lines is None else lines)


def _by_line(argument: Argument, given: str) -> str | None:
    """A list with an item on each line; None if it is so already, or would be read as another list."""
    item = core_of(get_args(core_of(argument.annotation))[0])
    split = partial(split_list, one_a_line=item in SCALARS and SCALARS[item].one_a_line)
    try:
        items = split(given)
    except ConversionError:
        return None
    if (
        not items
        or not isinstance(items, list)
        or not all(isinstance(one, str | int | float) for one in items)
    ):
        return None
    texts = [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in items]
    lines = "\n".join(texts)
    if "\n" in given.strip() and items == texts and given.lstrip()[:1] != "[":
        return None
    if not typeable(lines) or split(lines) != texts:
        return None
    meant = _read(argument, given)
    is_meant = meant is not None and _is_same(_read(argument, lines), meant)
    return lines if items == texts or is_meant else None


def _read(argument: Argument, given: str) -> Any:
    """The value that an argument reads; None if it refuses the text."""
    try:
        return argument.reader.read(given)
    except ConversionError:
        return None


def _is_same(value: Any, other: Any) -> bool:
    return type(value) is type(other) and bool(value == other)


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda core: core in kinds


def _is_lines(core: Any) -> bool:
    reader = reader_of(core) if is_list(core) else None
    return reader is not None and not reader.is_json


def _has_parts(core: Any) -> bool:
    readers = map(reader_of, members_of(core) or [core])
    return any(reader is not None and reader.is_json for reader in readers)


#: The controls of each type, of which the first one counts that can show the value. A type of no row is a
#: line of text; so is a value that none of its controls can show.
_BY_TYPE: Final[tuple[tuple[Callable[[Any], bool], tuple[Show, ...]], ...]] = (
    (is_closed, (_choice,)),
    (_is(str), (_text,)),
    (_is(int, float, Decimal), (_number,)),
    (_is(date), (_date,)),
    (_is(datetime, time), (_moment,)),
    (_is(bytes), (_file,)),
    (_is_lines, (_lines,)),
    (_has_parts, (_area,)),
)
