"""
Controls: what a form shows for an argument, chosen by its type in one table.

A control shows a value only if the browser sends back what reads as the same value. If not, the next control
of the type is tried, and at last the value is kept unseen.
"""

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, Final, get_args

import msgspec

from promptkit.catalog.arguments import Argument
from promptkit.catalog.json_schema import alternative_of
from promptkit.conversion.errors import ConversionError
from promptkit.conversion.kinds import is_closed, is_list, members_of, plain
from promptkit.conversion.readers import reader_of, split_list
from promptkit.conversion.scalars import SCALARS
from promptkit.conversion.unstructuring import text_of
from promptkit.preview.control import Control, Kind, Option, Show, is_same, typeable, value_of
from promptkit.preview.native_controls import date_control, moment_control, number_control

__all__ = ["control_of", "is_by_line", "is_json", "is_upload", "takes_file"]

#: A choice among more is a list that opens.
_MOST_RADIOS: Final = 4

#: Keyboards of small devices, by the format in the JSON Schema.
_KEYBOARDS: Final = {"uri": "url", "email": "email", "decimal": "decimal"}


def control_of(argument: Argument, given: str | None) -> Control:
    """
    Return the control of an argument.

    Args:
        argument:
            The argument.

        given:
            Its value, as a client sends it; None for nothing.
    """
    shows = (
        (_password,)
        if argument.arg.secret
        else (*_shows_of(plain(argument.annotation, core=True)), _line, _area)
    )
    found = (show(argument, given or "") for show in shows)
    return next((control for control in found if control is not None), _kept(given or ""))


def is_upload(argument: Argument) -> bool:
    """
    Tell whether people give the value as a file, or as several.
    """
    return _is_upload(plain(argument.annotation, core=True))


def takes_file(argument: Argument, control: Control) -> bool:
    """
    Tell whether the value may be read from a file.
    """
    return control.kind in ("area", "file", "kept") or is_upload(argument)


def is_by_line(argument: Argument) -> bool:
    """
    Tell whether the value is a list whose items stand on a line each.
    """
    return _is_lines(plain(argument.annotation, core=True))


def is_json(argument: Argument) -> bool:
    """
    Tell whether the value is written as JSON, or may be.
    """
    return _has_parts(plain(argument.annotation, core=True))


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
    """A value that people can only replace or remove."""
    return Control("kept", given)


def _file(_: Argument, given: str) -> Control | None:
    return Control("file", given)


def _choice(argument: Argument, given: str) -> Control | None:
    if not typeable(given):
        return None
    values = dict.fromkeys(filter(None, argument.reader.values))
    chosen = _spelling(argument, given, values)
    options = [Option(value, _label(argument, value), value == chosen) for value in values]
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
    if not argument.has_default or argument.default is None:
        return "Not given"
    return f"Default: {_label(argument, _spelling(argument, text_of(argument.default), values))}"


def _label(argument: Argument, value: str) -> str:
    """What people see of a choice: what clients send for it, and what its author calls a number."""
    member = value_of(argument, value)
    return f"{member.name} ({value})" if isinstance(member, Enum) and isinstance(member.value, int) else value


def _spelling(argument: Argument, given: str, values: Mapping[str, None]) -> str:
    """How a choice is spelled among *values*; *given* itself if it is none of them."""
    if not given or given in values:
        return given
    meant = value_of(argument, given)
    same = (value for value in values if is_same(value_of(argument, value), meant))
    return given if meant is None else next(same, given)


def _lines(argument: Argument, given: str) -> Control | None:
    if not typeable(given):
        return None
    lines = _by_line(argument, given)
    return Control("area", given if lines is None else lines)


def _by_line(argument: Argument, given: str) -> str | None:
    """A list with an item on each line; None if it is so already, or would be read as another list."""
    item = plain(get_args(plain(argument.annotation, core=True))[0], core=True)
    split = partial(_split, one_a_line=item in SCALARS and SCALARS[item].one_a_line)
    items = split(given)
    is_flat = isinstance(items, list) and all(isinstance(one, str | int | float) for one in items)
    if not (items and is_flat):
        return None
    texts = [one if isinstance(one, str) else msgspec.json.encode(one).decode() for one in items]
    lines = "\n".join(texts)
    if "\n" in given.strip() and items == texts and given.lstrip()[:1] != "[":
        return None
    if not typeable(lines) or split(lines) != texts:
        return None
    meant = value_of(argument, given)
    is_meant = meant is not None and is_same(value_of(argument, lines), meant)
    return lines if items == texts or is_meant else None


def _split(text: str, *, one_a_line: bool) -> Any:
    """The items in the text of a list; None if it cannot be read."""
    with suppress(ConversionError):
        return split_list(text, one_a_line=one_a_line)
    return None


def _is(*kinds: type) -> Callable[[Any], bool]:
    return lambda core: core in kinds


def _is_upload(core: Any) -> bool:
    return core is bytes or (is_list(core) and plain(get_args(core)[0], core=True) is bytes)


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
    (_is(int, float, Decimal), (number_control,)),
    (_is(date), (date_control,)),
    (_is(datetime, time), (moment_control,)),
    (_is_upload, (_file,)),
    (_is_lines, (_lines,)),
    (_has_parts, (_area,)),
)
