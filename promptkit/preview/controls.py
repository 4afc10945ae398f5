"""
Controls: the form fields of arguments, chosen by type in one table.

A control is used only if the browser sends its value back unchanged. Otherwise the next control for the type
is tried. If none works, the value is stored but not shown.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args

import attrs

from promptkit.catalog.arguments import Argument, alternative_of
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_closed, is_list, members_of, plain
from promptkit.types.parsing import reader_of
from promptkit.types.unstructuring import text_of

#: Characters that browsers change: they normalize carriage returns, and pages cannot contain NUL or
#: surrogates.
_UNTYPEABLE: Final = re.compile("[\r\0\ud800-\udfff]")

#: Maximum number of choices as radio buttons; more are a drop-down list.
_MAX_RADIOS: Final = 4

#: Numbers as HTML inputs accept them.
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@attrs.frozen
class Choice:
    """
    One choice of a control.

    Args:
        value:
            The value to send; ``""`` for none.

        label:
            The label for users.

        is_selected:
            Whether it is selected.

        represents:
            The value that it represents, even if nothing is sent for it.
    """

    value: str
    label: str
    is_selected: bool = False
    represents: str = ""


@attrs.frozen
class Control:
    """
    The form field of an argument.

    Args:
        kind:
            The kind of field in ``fields.html``.

        value:
            Its text.

        attributes:
            Further HTML attributes.

        choices:
            The choices, if any.
    """

    kind: Literal["line", "area", "radios", "checkboxes", "select", "file", "stored"]
    value: str = ""
    attributes: Mapping[str, str] = MappingProxyType({})
    choices: tuple[Choice, ...] = ()


#: Takes an argument and its value (``""`` for none). Returns None if the control cannot show the value.
_ControlFactory: TypeAlias = Callable[[Argument, str], Control | None]


def build_control(argument: Argument, value: str | None) -> Control:
    """
    Return the control of an argument.

    Args:
        argument:
            The argument.

        value:
            Its value, as a client sends it; None if it is not given.
    """
    by_type = next((factories for matches, factories in _BY_TYPE if matches(argument)), ())
    factories: tuple[_ControlFactory, ...] = (_password,) if argument.arg.secret else (*by_type, _line, _area)
    controls = (factory(argument, value or "") for factory in factories)
    return next((control for control in controls if control is not None), Control("stored", value or ""))


def accepts_file(argument: Argument, control: Control) -> bool:
    """Return whether the value can be read from a file."""
    return control.kind in ("area", "file", "stored") or argument.takes_bytes


def is_line_list(argument: Argument) -> bool:
    """Return whether the value is a list with one item per line."""
    core = plain(argument.annotation, core=True)
    reader = reader_of(core) if is_list(core) else None
    return reader is not None and not reader.is_json


def accepts_json(argument: Argument) -> bool:
    """Return whether the value is JSON, or can be."""
    core = plain(argument.annotation, core=True)
    readers = map(reader_of, members_of(core) or [core])
    return any(reader is not None and reader.is_json for reader in readers)


def is_typeable(text: str) -> bool:
    """Return whether browsers send a text unchanged."""
    return _UNTYPEABLE.search(text) is None


def parse_value(argument: Argument, text: str) -> Any:
    """Return the converted value of an argument; None if the text is invalid."""
    with suppress(ConversionError):
        return argument.reader.read(text)
    return None


def _line(_: Argument, value: str) -> Control | None:
    return _single_line(value, {"type": "text"})


def _password(_: Argument, value: str) -> Control | None:
    return _single_line(value, {"type": "password", "autocomplete": "off"})


def _single_line(value: str, attributes: Mapping[str, str]) -> Control | None:
    return Control("line", value, attributes) if "\n" not in value and is_typeable(value) else None


def _text(argument: Argument, value: str) -> Control | None:
    """Return a text area, or None for completed text, which is usually a one-line name."""
    return None if argument.completer is not None else _area(argument, value)


def _area(_: Argument, value: str) -> Control | None:
    return Control("area", value) if is_typeable(value) else None


def _file(_: Argument, value: str) -> Control | None:
    return Control("file", value)


def _number(argument: Argument, value: str) -> Control | None:
    """Return a number input with its bounds."""
    number = value.strip()
    if value and not _is_number(number):
        return None
    schema = alternative_of(argument)
    is_integer = schema.get("type") == "integer"
    bounds = {
        "min": _bound(schema, "minimum", "exclusiveMinimum", +is_integer),
        "max": _bound(schema, "maximum", "exclusiveMaximum", -is_integer),
        "step": 1 if is_integer else "any",
    }
    attributes = {name: str(bound) for name, bound in bounds.items() if bound is not None}
    return Control("line", number, {"type": "number", **attributes})


def _is_number(text: str) -> bool:
    # Browsers drop numbers that are too large for them.
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _bound(schema: Mapping[str, Any], inclusive: str, exclusive: str, inwards: int) -> Decimal | None:
    if exclusive in schema:
        return Decimal(str(schema[exclusive])) + inwards
    return Decimal(str(schema[inclusive])) if inclusive in schema else None


def _date(argument: Argument, value: str) -> Control | None:
    is_normalized = str(parse_value(argument, value) or "") == value
    return Control("line", value, {"type": "date"}) if is_normalized else None


def _choice(argument: Argument, value: str) -> Control | None:
    if not is_typeable(value):
        return None
    spellings = dict.fromkeys(filter(None, argument.reader.values))
    selected, default = _find_spelling(argument, value, spellings), _find_default(argument, spellings)
    choices = [_build_choice(argument, spelling, selected, default) for spelling in spellings]
    if selected and selected not in spellings:
        choices.append(Choice(selected, f"{selected} (invalid choice)", is_selected=True))
    is_drop_down = len(spellings) > _MAX_RADIOS
    if default not in spellings and (not argument.required or is_drop_down):
        label = "Choose…" if argument.required else "Not set"
        choices.insert(0, Choice("", f"{label} (default: {default})" if default else label, not selected))
    return Control("select" if is_drop_down else "radios", choices=tuple(choices))


def is_choice_list(argument: Argument) -> bool:
    """Return whether the value is a list of choices, such as ``list[Literal["a", "b"]]``."""
    return is_line_list(argument) and is_closed(_item_type(argument))


def _item_type(argument: Argument) -> Any:
    return get_args(plain(argument.annotation, core=True))[0]


def _checkboxes(argument: Argument, value: str) -> Control | None:
    """Return checkboxes, or None for a value that a browser would send in another order or not at all."""
    reader = reader_of(_item_type(argument))
    spellings = list(filter(None, reader.values)) if reader is not None else []
    if not spellings or any(not is_typeable(each) or re.search(r"[,\n]", each) for each in spellings):
        return None
    checked = {text.strip() for text in value.split(",")}
    sent = join_choices(each for each in spellings if each in checked)
    if value and (not sent or parse_value(argument, sent) != parse_value(argument, value)):
        return None
    choices = (Choice(each, each, each in checked, each) for each in spellings)
    return Control("checkboxes", choices=tuple(choices))


def join_choices(values: Iterable[str]) -> str:
    """Return the value of a list of choices, as a client sends it."""
    return ", ".join(values)


def _build_choice(argument: Argument, value: str, selected: str, default: str) -> Choice:
    """Return one choice. The default also represents no value, unless it was given."""
    label = _format_label(argument, value)
    if value != default:
        return Choice(value, label, value == selected, value)
    return Choice(value if value == selected else "", f"{label} (default)", selected in ("", value), value)


def _find_default(argument: Argument, spellings: Mapping[str, None]) -> str:
    """Return the spelling of the default among *spellings*; ``""`` if there is none."""
    if argument.required or not argument.has_default or argument.default is None:
        return ""
    return _find_spelling(argument, text_of(argument.default), spellings)


def _format_label(argument: Argument, value: str) -> str:
    """Return the label of a choice: the value that clients send, with its meaning if it has one."""
    meaning = argument.reader.meanings.get(value)
    return f"{value}: {meaning}" if meaning else value


def _find_spelling(argument: Argument, text: str, spellings: Mapping[str, None]) -> str:
    """Return the spelling of a choice among *spellings*; *text* itself if it is not a choice."""
    value = parse_value(argument, text) if text and text not in spellings else None
    if value is None:
        return text
    choices = {spelling: parse_value(argument, spelling) for spelling in spellings}
    matches = (
        spelling for spelling, choice in choices.items() if type(choice) is type(value) and choice == value
    )
    return next(matches, text)


def _has_type(*kinds: type) -> Callable[[Argument], bool]:
    return lambda argument: plain(argument.annotation, core=True) in kinds


#: The controls of each type, in order of preference. Other types, and values that none of the controls can
#: show, are a line of text.
_BY_TYPE: Final[tuple[tuple[Callable[[Argument], bool], tuple[_ControlFactory, ...]], ...]] = (
    (lambda argument: is_closed(plain(argument.annotation, core=True)), (_choice,)),
    (_has_type(str), (_text,)),
    (_has_type(int, float, Decimal), (_number,)),
    (_has_type(date), (_date,)),
    (lambda argument: argument.takes_bytes, (_file,)),
    (is_choice_list, (_checkboxes, _area)),
    (lambda argument: is_line_list(argument) or accepts_json(argument), (_area,)),
)
