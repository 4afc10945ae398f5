"""
Forms: the fields for a prompt's arguments, and the submitted values as a client would send them.

A field is sent under its argument's name. Related fields are sent under that name with a dot and a word, such
as ``notes.file``, which cannot be an argument's name.

A table lists the controls for each type. A field uses the first control whose value browsers send back
unchanged. If there is no such control, the value is stored but not shown.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import date
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias, get_args
from urllib.parse import urlencode
from zlib import crc32

import attrs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import InvalidArgument
from promptkit.language.annotations import NO_DEFAULT
from promptkit.preview.media import Upload, UploadStore, parse_number
from promptkit.types.errors import ConversionError
from promptkit.types.kinds import is_enumerable, is_list, members_of, unwrap_type
from promptkit.types.parsing import reader_for
from promptkit.types.unstructuring import can_be_sent, text_as_entered, text_of

#: Controls that show the possible values, and therefore do not need a hint.
_SELF_EXPLANATORY: Final = frozenset({"radios", "select", "file"})

#: Controls that contain the digest of a value instead of the value.
_HIDDEN: Final = frozenset({"file", "stored"})

#: Maximum length of a link's query string, in characters. Servers reject URLs that are too long.
_MAX_QUERY: Final = 6_000

#: Characters that browsers change, because they normalize carriage returns, and because pages cannot contain
#: NUL or surrogates.
_UNTYPEABLE: Final = re.compile("[\r\0\ud800-\udfff]")

#: Maximum number of choices that are shown as radio buttons. More choices are shown as a drop-down list.
_MAX_RADIOS: Final = 4

#: The syntax of numbers that HTML inputs accept.
_NUMBER: Final = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


@attrs.frozen
class Choice:
    """
    One choice of a control.

    Args:
        value:
            The value to send, or ``""`` to send no value.

        label:
            The label for users.

        is_selected:
            Whether the choice is selected.

        represents:
            The value that the choice represents, even if the browser does not send a value for it.
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
            The kind of field, as defined in ``fields.html``.

        value:
            The text in the field.

        attributes:
            Additional HTML attributes.

        choices:
            The choices, if any.
    """

    kind: Literal["line", "area", "radios", "checkboxes", "select", "file", "stored"]
    value: str = ""
    attributes: Mapping[str, str] = MappingProxyType({})
    choices: tuple[Choice, ...] = ()


@attrs.frozen
class Field:
    """
    The field of one argument.

    Args:
        name:
            The argument's name.

        label:
            The argument's title or, if it has none, its name.

        key:
            The suffix of the ids of the field's HTML elements.

        control:
            The control for the value.

        required:
            Whether a value is required.

        description:
            A description of what to enter.

        examples:
            The author's examples, as a client sends them.

        errors:
            The error messages for the value.

        has_completions:
            Whether values are suggested while the user types.

        is_empty_text:
            Whether the value is ``""``, or None if the argument does not accept ``""``.

        accepts_file:
            Whether the value can be read from a file.

        accepts_files:
            Whether the value can be read from several files.

        upload:
            The upload, if any, even if its value cannot be sent.

        read_count:
            How many times the text has been read from a file.

        has_value:
            Whether the field has a value. Its errors are then shown immediately.

        is_unknown:
            Whether the prompt does not have this argument.
    """

    name: str
    label: str
    key: str
    control: Control
    required: bool = False
    description: str | None = None
    examples: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    has_completions: bool = False
    is_empty_text: bool | None = None
    accepts_file: bool = False
    accepts_files: bool = False
    upload: Upload | None = None
    read_count: int = 0
    has_value: bool = False
    is_unknown: bool = False

    @property
    def shape(self) -> str:
        """
        A checksum of the control, excluding the value that the user has typed.

        If the shape of a control has not changed, the page keeps the control, because replacing it would
        disturb users while they type.
        """
        control = self.control
        labels = [choice.label for choice in control.choices]
        appearance = control.kind, dict(control.attributes), labels
        shape = appearance, self.read_count, self.accepts_file, self.upload and self.upload.digest
        return f"{crc32(repr(shape).encode()):08x}"


@attrs.frozen
class Submission:
    """
    The submitted values of a form.

    Args:
        values:
            The values as a client would send them, keyed by argument name.

        uploads:
            The uploads, including invalid ones, keyed by argument name.

        read_counts:
            How many times text has been read from a file, keyed by argument name.
    """

    values: Mapping[str, str]
    uploads: Mapping[str, Upload] = MappingProxyType({})
    read_counts: Mapping[str, int] = MappingProxyType({})

    @property
    def errors(self) -> tuple[InvalidArgument, ...]:
        """The errors for invalid uploads."""
        return tuple(
            InvalidArgument(name, upload.error) for name, upload in self.uploads.items() if upload.error
        )


def build_fields(
    arguments: Arguments, submission: Submission, store: UploadStore, errors: Iterable[InvalidArgument] = ()
) -> tuple[Field, ...]:
    """
    Return the fields of a form: one for each argument, and one for each value of an unknown argument.

    Args:
        arguments:
            The arguments of a prompt.

        submission:
            The submitted values.

        store:
            A store for the values that no control can show.

        errors:
            The errors for the values.
    """
    errors, values = tuple(errors), submission.values
    fields = [_build_field(argument, submission, store, errors) for argument in arguments.ordered]
    names = [*values, *(error.argument for error in errors)]
    unknown = [name for name in dict.fromkeys(names) if name not in arguments.by_name]
    unknown_fields = [
        _build_unknown_field(name, values.get(name, ""), errors, number)
        for number, name in enumerate(unknown, 1)
    ]
    return (*fields, *unknown_fields)


def read_submission(arguments: Arguments, form: Any, store: UploadStore) -> Submission:
    """
    Return the values that a form or a link submits.

    Args:
        arguments:
            The arguments of a prompt.

        form:
            Starlette's ``FormData`` or ``QueryParams``.

        store:
            Stores uploads.
    """
    names = dict.fromkeys(filter(None, (key.partition(".")[0] for key in form)))
    values = {name: value for name in names if (value := _read_value(form, name, arguments)) is not None}
    read_counts = {name: count for name in values if (count := parse_number(form.get(f"{name}.reads")))}
    uploads = {}
    for name, upload in store.collect(arguments, form).items():
        argument = arguments.by_name[name]
        if upload.value is not None:
            values[name] = upload.value
        if upload.value is not None and _build_control(argument, upload.value).kind not in _HIDDEN:
            # The text is shown as if the user had typed it.
            read_counts[name] = parse_number(form.get(f"{name}.reads")) + 1
        else:
            uploads[name] = upload
    ordered = dict.fromkeys((*arguments.by_name, *values))
    return Submission({name: values[name] for name in ordered if name in values}, uploads, read_counts)


def build_query(arguments: Arguments, values: Mapping[str, str]) -> str:
    """
    Return the query string of a link that shows the same page.

    The query string omits secrets, uploads, values that browsers would change, and values that would make the
    link too long.

    Args:
        arguments:
            The arguments of a prompt.

        values:
            The values, as a client sends them.
    """
    query = ""
    for name, value in values.items():
        argument = arguments.by_name.get(name)
        is_private = argument is not None and (argument.arg.secret or argument.takes_bytes)
        if _is_typeable(value) and not is_private:
            parameter = (name, value) if value else (f"{name}.empty", "on")
            extended = f"{query}&{urlencode([parameter])}"
            query = extended if len(extended) <= _MAX_QUERY else query
    return query.removeprefix("&")


def _read_value(form: Any, name: str, arguments: Arguments) -> str | None:
    """Return the submitted value of an argument, or None if there is none. Join the values of checkboxes."""
    argument, text = arguments.by_name.get(name), form.get(name)
    if argument is not None and _is_choice_list(argument):
        text = _join_choices(value for value in form.getlist(name) if isinstance(value, str) and value)
    if isinstance(text, str) and text:
        return text.replace("\r\n", "\n")  # browsers send line endings as two characters
    return "" if f"{name}.empty" in form else None


def _build_field(
    argument: Argument, submission: Submission, store: UploadStore, errors: Iterable[InvalidArgument]
) -> Field:
    name, value = argument.name, submission.values.get(argument.name)
    upload = submission.uploads.get(name)
    if upload is not None and upload.value is not None:  # no other control can show this value
        control = Control("file" if argument.takes_bytes else "stored")
    else:
        control = _build_control(argument, value)
    if upload is None and control.kind in _HIDDEN and control.value:
        upload = store.store_value(control.value)
    is_line = control.kind == "line" and control.attributes.get("type") != "password"
    return Field(
        name,
        argument.title or name,
        name,
        attrs.evolve(control, attributes={**control.attributes, **_build_placeholder(argument)}),
        required=argument.required,
        description=_build_hint(argument, control),
        examples=() if argument.arg.secret else tuple(map(text_of, argument.examples)),
        errors=tuple(str(error) for error in errors if error.argument == name),
        has_completions=argument.completer is not None and is_line,
        is_empty_text=value == "" if argument.blank_is_value and not argument.arg.secret else None,
        accepts_file=_accepts_file(argument, control),
        accepts_files=_is_line_list(argument) and argument.takes_bytes,
        upload=upload,
        read_count=submission.read_counts.get(name, 0),
        has_value=bool(value) or upload is not None,
    )


def _build_hint(argument: Argument, control: Control) -> str | None:
    """Return the author's description, with the accepted values if the control does not show them."""
    arg = argument.arg
    if arg.env:
        return argument.description
    hint = None if control.kind in _SELF_EXPLANATORY else argument.reader.hint
    if not arg.description:
        return hint or None
    return f"{arg.description} ({hint})" if hint else arg.description


def _build_unknown_field(name: str, value: str, errors: Iterable[InvalidArgument], number: int) -> Field:
    return Field(
        name,
        name,
        f"unknown-{number}",
        Control("area", value),
        errors=tuple(str(error) for error in errors if error.argument == name),
        description="This prompt has no such argument. Clear the field to omit it.",
        is_unknown=True,
    )


def _build_placeholder(argument: Argument) -> dict[str, str]:
    """Return the HTML attribute that shows the default until a value is entered."""
    default = argument.default
    if default is NO_DEFAULT or default is None or argument.arg.secret:
        return {}
    return {"placeholder": text_as_entered(default)} if can_be_sent(default) else {}


#: Creates a control for an argument and its value (``""`` for no value). Returns None if the control cannot
#: show the value.
_ControlFactory: TypeAlias = Callable[[Argument, str], Control | None]


def _build_control(argument: Argument, value: str | None) -> Control:
    """
    Return the control for an argument.

    Args:
        argument:
            The argument.

        value:
            The value as a client sends it, or None if there is no value.
    """
    by_type = next((factories for matches, factories in _BY_TYPE if matches(argument)), ())
    factories: tuple[_ControlFactory, ...] = (
        (_password_control,) if argument.arg.secret else (*by_type, _line_control, _area_control)
    )
    controls = (factory(argument, value or "") for factory in factories)
    return next((control for control in controls if control is not None), Control("stored", value or ""))


def _accepts_file(argument: Argument, control: Control) -> bool:
    """Return whether the value can be read from a file."""
    return control.kind in ("area", "file", "stored") or argument.takes_bytes


def _is_line_list(argument: Argument) -> bool:
    """Return whether the value of an argument is a list that users type with one item per line."""
    core = unwrap_type(argument.annotation, core=True)
    reader = reader_for(core) if is_list(core) else None
    return reader is not None and not reader.is_json


def _accepts_json(argument: Argument) -> bool:
    """Return whether the value of an argument can be, or must be, JSON."""
    core = unwrap_type(argument.annotation, core=True)
    readers = map(reader_for, members_of(core) or [core])
    return any(reader is not None and reader.is_json for reader in readers)


def _is_typeable(text: str) -> bool:
    """Return whether browsers send *text* unchanged."""
    return _UNTYPEABLE.search(text) is None


def _parse_value(argument: Argument, text: str) -> Any:
    """Convert text to the value of an argument, or return None if the text is invalid."""
    with suppress(ConversionError):
        return argument.reader.read(text)
    return None


def _line_control(_: Argument, value: str) -> Control | None:
    return _one_line_control(value, {"type": "text"})


def _password_control(_: Argument, value: str) -> Control | None:
    return _one_line_control(value, {"type": "password", "autocomplete": "off"})


def _one_line_control(value: str, attributes: Mapping[str, str]) -> Control | None:
    return Control("line", value, attributes) if "\n" not in value and _is_typeable(value) else None


def _text_control(argument: Argument, value: str) -> Control | None:
    """Return a text area, or None if the argument has completions: such values usually fit on one line."""
    return None if argument.completer is not None else _area_control(argument, value)


def _area_control(_: Argument, value: str) -> Control | None:
    return Control("area", value) if _is_typeable(value) else None


def _file_control(_: Argument, value: str) -> Control | None:
    return Control("file", value)


def _number_control(argument: Argument, value: str) -> Control | None:
    """Return a number input, or None for a value that such an input cannot show."""
    number = value.strip()
    if value and not _is_number(number):
        return None
    step = "1" if unwrap_type(argument.annotation, core=True) is int else "any"
    return Control("line", number, {"type": "number", "step": step})


def _is_number(text: str) -> bool:
    # Browsers drop numbers that are too large for them.
    return _NUMBER.fullmatch(text) is not None and math.isfinite(float(text))


def _date_control(argument: Argument, value: str) -> Control | None:
    is_normalized = str(_parse_value(argument, value) or "") == value
    return Control("line", value, {"type": "date"}) if is_normalized else None


def _choice_control(argument: Argument, value: str) -> Control | None:
    if not _is_typeable(value):
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


def _is_choice_list(argument: Argument) -> bool:
    """Return whether the value is a list of choices, such as ``list[Literal["a", "b"]]``."""
    return _is_line_list(argument) and is_enumerable(_item_type(argument))


def _item_type(argument: Argument) -> Any:
    return get_args(unwrap_type(argument.annotation, core=True))[0]


def _checkbox_control(argument: Argument, value: str) -> Control | None:
    """Return checkboxes, or None for a value that a browser would change or not send at all."""
    reader = reader_for(_item_type(argument))
    spellings = list(filter(None, reader.values)) if reader is not None else []
    if not spellings or any(not _is_typeable(each) or re.search(r"[,\n]", each) for each in spellings):
        return None
    checked = {text.strip() for text in value.split(",")}
    sent = _join_choices(each for each in spellings if each in checked)
    if value and (not sent or _parse_value(argument, sent) != _parse_value(argument, value)):
        return None
    choices = (Choice(each, each, each in checked, each) for each in spellings)
    return Control("checkboxes", choices=tuple(choices))


def _join_choices(values: Iterable[str]) -> str:
    """Return a list of choices as the value that a client sends."""
    return ", ".join(values)


def _build_choice(argument: Argument, value: str, selected: str, default: str) -> Choice:
    """Return one choice. The default sends no value, unless the user has already chosen it explicitly."""
    meaning = argument.reader.meanings.get(value)
    label = f"{value}: {meaning}" if meaning else value
    if value != default:
        return Choice(value, label, value == selected, value)
    return Choice(value if value == selected else "", f"{label} (default)", selected in ("", value), value)


def _find_default(argument: Argument, spellings: Mapping[str, None]) -> str:
    """Return the default as one of *spellings* if possible, or ``""`` if the argument has no default."""
    if argument.required or not argument.has_default or argument.default is None:
        return ""
    return _find_spelling(argument, text_of(argument.default), spellings)


def _find_spelling(argument: Argument, text: str, spellings: Mapping[str, None]) -> str:
    """Return the spelling that represents the same value as *text*, or *text* if there is none."""
    value = _parse_value(argument, text) if text and text not in spellings else None
    if value is None:
        return text
    choices = {spelling: _parse_value(argument, spelling) for spelling in spellings}
    matches = (
        spelling for spelling, choice in choices.items() if type(choice) is type(value) and choice == value
    )
    return next(matches, text)


def _type_matcher(*types: type) -> Callable[[Argument], bool]:
    return lambda argument: unwrap_type(argument.annotation, core=True) in types


#: The controls for each type, in order of preference. For all other types, and for values that none of these
#: controls can show, a line of text or a text area is used.
_BY_TYPE: Final[tuple[tuple[Callable[[Argument], bool], tuple[_ControlFactory, ...]], ...]] = (
    (lambda argument: is_enumerable(unwrap_type(argument.annotation, core=True)), (_choice_control,)),
    (_type_matcher(str), (_text_control,)),
    (_type_matcher(int, float, Decimal), (_number_control,)),
    (_type_matcher(date), (_date_control,)),
    (lambda argument: argument.takes_bytes, (_file_control,)),
    (_is_choice_list, (_checkbox_control, _area_control)),
    (lambda argument: _is_line_list(argument) or _accepts_json(argument), (_area_control,)),
)
