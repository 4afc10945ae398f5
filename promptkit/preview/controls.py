"""
Controls: what a form shows for an argument, chosen by its type in one table.

A control shows a value only if it is written as the browser sends it back. If not, the next control of the
type is tried, and at last the value is kept unseen.
"""

import math
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import attrs
import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.json_schema import alternative_of
from promptkit.types.errors import ConversionError
from promptkit.types.functions import notes_of
from promptkit.types.kinds import is_closed, is_list, members_of, plain
from promptkit.types.readers import reader_of
from promptkit.types.unstructuring import text_of

#: What browsers change: they send each carriage return as part of a line end, and pages hold no NUL.
_UNTYPEABLE: Final = re.compile("[\r\0\ud800-\udfff]")

#: A choice among more is a list that opens.
_MOST_RADIOS: Final = 4

#: What HTML takes for a number.
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

#: How HTML writes moments. Behind them, our forms have an offset.
_TIME: Final = r"(?:[01][0-9]|2[0-3]):[0-5][0-9](?::[0-5][0-9](?:\.[0-9]{1,3})?)?"
_OFFSET: Final = r"(Z|[+-][0-9]{2}:[0-9]{2})?"
_MOMENTS: Final = {
    time: re.compile(f"({_TIME}){_OFFSET}"),
    datetime: re.compile(f"([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}T{_TIME}){_OFFSET}"),
}


@attrs.frozen
class Choice:
    """
    One of several to choose from.

    Args:
        value:
            What is sent for it; ``""`` for nothing.

        label:
            What people see.

        chosen:
            Whether it is the one that is chosen.

        means:
            The value that it stands for.
    """

    value: str
    label: str
    chosen: bool = False
    means: str = ""


@attrs.frozen
class Control:
    """
    What a form shows for an argument.

    Args:
        kind:
            What draws it in ``fields.html``.

        value:
            The text in it.

        attributes:
            More attributes of the element.

        choices:
            What to choose from.

        offset:
            The offset from UTC of a moment; None if it has no field for that.
    """

    kind: Literal["line", "area", "radios", "select", "switch", "moment", "file", "kept"]
    value: str = ""
    attributes: Mapping[str, str] = MappingProxyType({})
    choices: tuple[Choice, ...] = ()
    offset: str | None = None


#: Takes an argument and its value, ``""`` for none. Returns None if the control cannot show that value.
_Show: TypeAlias = Callable[[Argument, str], Control | None]


def control_of(argument: Argument, given: str | None) -> Control:
    """
    Return the control of an argument.

    Args:
        argument:
            The argument.

        given:
            Its value, as a client sends it; None for nothing.
    """
    of_type = next((shows for recognises, shows in _BY_TYPE if recognises(argument)), ())
    shows: tuple[_Show, ...] = (_password,) if argument.arg.secret else (*of_type, _line, _area)
    found = (show(argument, given or "") for show in shows)
    return next((control for control in found if control is not None), Control("kept", given or ""))


def takes_file(argument: Argument, control: Control) -> bool:
    """Tell whether the value may be read from a file."""
    return control.kind in ("area", "file", "kept") or argument.takes_bytes


def is_by_line(argument: Argument) -> bool:
    """Tell whether the value is a list whose items stand on a line each."""
    core = plain(argument.annotation, core=True)
    reader = reader_of(core) if is_list(core) else None
    return reader is not None and not reader.is_json


def is_json(argument: Argument) -> bool:
    """Tell whether the value is written as JSON, or may be."""
    core = plain(argument.annotation, core=True)
    readers = map(reader_of, members_of(core) or [core])
    return any(reader is not None and reader.is_json for reader in readers)


def typeable(text: str) -> bool:
    """Tell whether browsers send a text unchanged."""
    return _UNTYPEABLE.search(text) is None


def value_of(argument: Argument, given: str) -> Any:
    """Return the value that an argument reads; None if it refuses the text."""
    with suppress(ConversionError):
        return argument.reader.read(given)
    return None


def _line(_: Argument, given: str) -> Control | None:
    return _one_line(given, {"type": "text"})


def _password(_: Argument, given: str) -> Control | None:
    return _one_line(given, {"type": "password", "autocomplete": "off"})


def _one_line(given: str, attributes: Mapping[str, str]) -> Control | None:
    return Control("line", given, attributes) if "\n" not in given and typeable(given) else None


def _text(argument: Argument, given: str) -> Control | None:
    """Text is most often of several lines; text that is completed is a name."""
    return None if argument.completer is not None else _area(argument, given)


def _area(_: Argument, given: str) -> Control | None:
    return Control("area", given) if typeable(given) else None


def _file(_: Argument, given: str) -> Control | None:
    return Control("file", given)


def _number(argument: Argument, given: str) -> Control | None:
    """The input of a number, with its bounds. Browsers count steps from the lower bound."""
    value = given.strip()
    if given and not _is_number(value):
        return None
    schema = alternative_of(argument)
    whole = schema.get("type") == "integer"
    step = Decimal(str(schema.get("multipleOf", 1 if whole else 0)))
    least = _bound(schema, "minimum", "exclusiveMinimum", +whole)
    if step and least is not None:
        least = math.ceil(least / step) * step
    bounds = {
        "min": least,
        "max": _bound(schema, "maximum", "exclusiveMaximum", -whole),
        "step": step or "any",
    }
    shown = {name: str(bound) for name, bound in bounds.items() if bound is not None}
    return Control("line", value, {"type": "number", **shown})


def _is_number(text: str) -> bool:
    # Browsers drop a number that is too large for them.
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _bound(schema: Mapping[str, Any], inclusive: str, exclusive: str, inwards: int) -> Decimal | None:
    if exclusive in schema:
        return Decimal(str(schema[exclusive])) + inwards
    return Decimal(str(schema[inclusive])) if inclusive in schema else None


def _date(argument: Argument, given: str) -> Control | None:
    is_written = str(value_of(argument, given) or "") == given
    return Control("line", given, {"type": "date"}) if is_written else None


def _moment(argument: Argument, given: str) -> Control | None:
    """A date and time, or a time of day, and its offset: to the millisecond, with an offset in minutes."""
    kind = plain(argument.annotation, core=True)
    attributes = {"type": "time" if kind is time else "datetime-local", "step": "any"}
    asked = {note.tz for note in notes_of(argument.annotation) if isinstance(note, msgspec.Meta)}
    may_have_offset = True in asked or (kind is datetime and False not in asked)
    found = _MOMENTS[kind].fullmatch(given) if value_of(argument, given) is not None else None
    if given and found is None:
        return None
    local, offset = found.groups(default="") if found else ("", "")
    return Control("moment", local, attributes, offset=offset if offset or may_have_offset else None)


def _choice(argument: Argument, given: str) -> Control | None:
    if not typeable(given):
        return None
    values = dict.fromkeys(filter(None, argument.reader.values))
    chosen, default = _spelling(argument, given, values), _default(argument, values)
    choices = [_one(argument, value, chosen, default) for value in values]
    if chosen and chosen not in values:
        choices.append(Choice(chosen, f"{chosen} (not a choice)", chosen=True))
    is_list_that_opens = len(values) > _MOST_RADIOS
    if default not in values and (not argument.required or is_list_that_opens):
        label = "Choose…" if argument.required else "Not given"
        choices.insert(0, Choice("", f"{label} ({default} by default)" if default else label, not chosen))
    return Control("select" if is_list_that_opens else "radios", choices=tuple(choices))


def _one(argument: Argument, value: str, chosen: str, default: str) -> Choice:
    """One choice. That of the default stands for no value, too, unless it was given."""
    label = _label(argument, value)
    if value != default:
        return Choice(value, label, value == chosen, value)
    return Choice(value if value == chosen else "", f"{label} (default)", chosen in ("", value), value)


def _default(argument: Argument, values: Mapping[str, None]) -> str:
    """How the default is spelled among *values*; ``""`` if there is none."""
    if argument.required or not argument.has_default or argument.default is None:
        return ""
    return _spelling(argument, text_of(argument.default), values)


def _switch(argument: Argument, given: str) -> Control | None:
    """On or off, if one of the two is the default."""
    values = {value: value_of(argument, value) for value in argument.reader.values}
    chosen, default = (
        _spelling(argument, given, dict.fromkeys(values)),
        _default(argument, dict.fromkeys(values)),
    )
    if not default or (chosen and chosen not in values):
        return None
    on, off = (next(value for value, read in values.items() if read is one) for one in (True, False))
    # A browser sends nothing for a switch that is off: a hidden field says "no", unless that is the default.
    hidden = "" if default == off != chosen else off
    sent = "" if default == on != chosen else on
    return Control("switch", hidden, choices=(Choice(sent, on, (chosen or default) == on, on),))


def _label(argument: Argument, value: str) -> str:
    """What people see of a choice: what clients send for it, and what its author calls a number."""
    member = value_of(argument, value)
    return f"{member.name} ({value})" if isinstance(member, Enum) and isinstance(member.value, int) else value


def _spelling(argument: Argument, given: str, values: Mapping[str, None]) -> str:
    """How a choice is spelled among *values*; *given* itself if it is none of them."""
    meant = value_of(argument, given) if given and given not in values else None
    read = {value: value_of(argument, value) for value in values}
    same = (value for value, found in read.items() if type(found) is type(meant) and found == meant)
    return given if meant is None else next(same, given)


def _is(*kinds: type) -> Callable[[Argument], bool]:
    return lambda argument: plain(argument.annotation, core=True) in kinds


#: The controls of each type, of which the first one counts that can show the value. A type of no row is a
#: line of text; so is a value that none of its controls can show.
_BY_TYPE: Final[tuple[tuple[Callable[[Argument], bool], tuple[_Show, ...]], ...]] = (
    (_is(bool), (_switch, _choice)),
    (lambda argument: is_closed(plain(argument.annotation, core=True)), (_choice,)),
    (_is(str), (_text,)),
    (_is(int, float, Decimal), (_number,)),
    (_is(date), (_date,)),
    (_is(datetime, time), (_moment,)),
    (lambda argument: argument.takes_bytes, (_file,)),
    (lambda argument: is_by_line(argument) or is_json(argument), (_area,)),
)
