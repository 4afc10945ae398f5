"""
Forms: the fields of a prompt's arguments, and what people entered as a client would send it.

A field is sent under its argument's name. What belongs to it is sent under that name, a dot and a word, which
no argument is called: ``when.offset``.
"""

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import urlencode
from zlib import crc32

import attrs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.conversion.unstructuring import text_of
from promptkit.errors.exceptions import Fault
from promptkit.language.arg import NO_DEFAULT
from promptkit.preview.control import Control, typeable, value_of
from promptkit.preview.controls import control_of, is_by_line, is_upload, takes_file
from promptkit.preview.fault_places import told
from promptkit.preview.uploads import uploads_in

__all__ = ["Field", "Files", "Submission", "fields_of", "query_of", "read", "submission_of"]

#: By argument name: what the file was called that it was read from, and how many there were so far.
Files: TypeAlias = Mapping[str, tuple[str, int]]

#: Controls in which people see what they can enter.
_PLAIN: Final = frozenset({"radios", "select", "moment", "file"})

#: Characters of a value that a link still holds.
_MAX_LINKED: Final = 4_000


@attrs.frozen
class Field:
    """
    The field of one argument.

    Args:
        name:
            The argument.

        label:
            Its title, or its name.

        key:
            What the ids of its elements end with.

        control:
            What is drawn.

        required:
            Whether it has to be given.

        description:
            What to enter.

        examples:
            Values that its author gives, as a client sends them.

        faults:
            What is wrong with its value.

        completes:
            Whether values are offered while people type.

        may_be_empty:
            Whether ``""`` is a value, too, and whether it is the value.

        takes_file:
            Whether its value may be read from a file.

        takes_files:
            Whether it may be read from several.

        filename:
            The name of the file that was uploaded.

        uploads:
            How often a file was uploaded.

        size:
            The bytes of a value that is not shown.

        is_unknown:
            Whether the prompt has no such argument.
    """

    name: str
    label: str
    key: str
    control: Control
    required: bool = False
    description: str | None = None
    examples: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()
    completes: bool = False
    may_be_empty: bool | None = None
    takes_file: bool = False
    takes_files: bool = False
    filename: str | None = None
    uploads: int = 0
    size: int = 0
    is_unknown: bool = False

    @property
    def shape(self) -> str:
        """
        Equal for controls that differ in what people typed alone.

        A page keeps such a control as it is: to write it anew would disturb who types.
        """
        control = self.control
        is_hidden = control.kind in ("file", "kept")
        values = [option.value for option in control.options]
        has_offset = control.offset is not None
        shape = (control.kind, dict(control.attributes), values, has_offset, self.uploads, self.takes_file)
        return f"{crc32(repr((shape, control.value if is_hidden else None)).encode()):08x}"


@attrs.frozen
class Submission:
    """
    What a form sent.

    Args:
        given:
            The values by argument name, as a client would send them.

        faults:
            What is wrong with files that were uploaded.

        files:
            The name of the last file, and the number of uploads, by argument name.
    """

    given: Mapping[str, str]
    faults: tuple[Fault, ...] = ()
    files: Files = MappingProxyType({})


def fields_of(
    arguments: Arguments,
    given: Mapping[str, str],
    faults: Iterable[Fault] = (),
    files: Files = MappingProxyType({}),
) -> tuple[Field, ...]:
    """
    Return the fields of a form: one for each argument, and one for each value that has no argument.

    Args:
        arguments:
            The arguments of a prompt.

        given:
            The values, as a client sends them.

        faults:
            What is wrong with them.

        files:
            The files that values were read from, as in a `Submission`.
    """
    faults = tuple(faults)
    known = [
        _field(argument, given.get(argument.name), faults, files.get(argument.name, ("", 0)))
        for argument in arguments.ordered
    ]
    names = [*given, *(fault.argument for fault in faults)]
    unknown = [name for name in dict.fromkeys(names) if name not in arguments.by_name]
    others = [_unknown_field(name, given.get(name, ""), faults, at) for at, name in enumerate(unknown, 1)]
    return (*known, *others)


def read(arguments: Arguments, form: Any) -> dict[str, str]:
    """
    Return the values of a form, or of a link, as a client would send them.

    Args:
        arguments:
            The arguments of a prompt.

        form:
            Starlette's ``FormData`` or ``QueryParams``.
    """
    return dict(submission_of(arguments, form).given)


def submission_of(arguments: Arguments, form: Any) -> Submission:
    """
    Return all that a form, or a link, says.

    Args:
        arguments:
            The arguments of a prompt.

        form:
            Starlette's ``FormData`` or ``QueryParams``.
    """
    given = {name: value for name in _names(form) if (value := _value(form, name)) is not None}
    files = {name: (str(form.get(f"{name}.filename", "")), _uploads(form, name)) for name in given}
    faults: list[Fault] = []
    for name, upload in uploads_in(arguments, form).items():
        faults += upload.faults
        if upload.value is not None:
            given[name] = upload.value
            files[name] = (upload.filename, _uploads(form, name) + 1)
    order = {argument.name: number for number, argument in enumerate(arguments.ordered)}
    names = sorted(given, key=lambda name: order.get(name, len(order)))
    return Submission({name: given[name] for name in names}, tuple(faults), files)


def query_of(arguments: Arguments, given: Mapping[str, str]) -> str:
    """
    Return the query of a link that shows the same page.

    Secrets are left out, and so are uploads and long texts, which no address holds.

    Args:
        arguments:
            The arguments of a prompt.

        given:
            The values, as a client sends them.
    """
    linked = [(name, value) for name, value in given.items() if _is_linked(arguments, name, value)]
    return urlencode([_linked(name, value) for name, value in linked])


def _is_linked(arguments: Arguments, name: str, value: str) -> bool:
    argument = arguments.by_name.get(name)
    is_left_out = argument is not None and (argument.arg.secret or is_upload(argument))
    return not is_left_out and len(value) <= _MAX_LINKED


def _linked(name: str, value: str) -> tuple[str, str]:
    if not value:
        return f"{name}.empty", "on"
    if typeable(value):
        return name, value
    return f"{name}.base64", b64encode(value.encode(errors="surrogatepass")).decode()


def _names(form: Any) -> list[str]:
    """The arguments that a form says something about."""
    return list(dict.fromkeys(key.partition(".")[0] for key in form if key.partition(".")[0]))


def _value(form: Any, name: str) -> str | None:
    """The value of an argument; None if it is not given."""
    if isinstance(kept := form.get(f"{name}.base64"), str):
        return _decoded(kept)
    text = form.get(name)
    if isinstance(text, str) and text:
        offset = form.get(f"{name}.offset")
        # Browsers send line ends as two characters.
        return text.replace("\r\n", "\n") + (offset if isinstance(offset, str) else "").strip()
    return "" if f"{name}.empty" in form else None


def _uploads(form: Any, name: str) -> int:
    count = str(form.get(f"{name}.uploads", ""))
    return int(count) if re.fullmatch("[0-9]{1,6}", count) else 0


def _decoded(kept: str) -> str | None:
    try:
        return b64decode(kept, validate=True).decode(errors="surrogatepass")
    except ValueError:  # somebody has written the link by hand
        return None


def _field(argument: Argument, given: str | None, faults: Iterable[Fault], file: tuple[str, int]) -> Field:
    control = control_of(argument, given)
    is_line = control.kind == "line" and control.attributes.get("type") != "password"
    return Field(
        argument.name,
        argument.title or argument.name,
        argument.name,
        attrs.evolve(control, attributes={**control.attributes, **_placeholder(argument)}),
        required=argument.required,
        description=_described(argument, control),
        examples=_examples(argument),
        faults=tuple(told(argument, fault, given) for fault in faults if fault.argument == argument.name),
        completes=argument.completer is not None and is_line,
        may_be_empty=given == "" if argument.blank_is_value and not argument.arg.secret else None,
        takes_file=takes_file(argument, control),
        takes_files=is_by_line(argument) and is_upload(argument),
        filename=file[0] or None,
        uploads=file[1],
        size=_size(argument, control),
    )


def _described(argument: Argument, control: Control) -> str | None:
    """The author's words, and what to enter if the control does not show that. Examples have buttons."""
    arg = argument.arg
    if arg.env:
        return argument.description
    hint = None if control.kind in _PLAIN else argument.reader.hint
    if not arg.description:
        return hint or None
    return f"{arg.description} ({hint})" if hint else arg.description


def _size(argument: Argument, control: Control) -> int:
    """The bytes of a value that is not shown, as it is read."""
    if control.kind == "kept":
        return len(b64decode(control.value))
    found = value_of(argument, control.value) if control.kind == "file" else None
    return len(found) if isinstance(found, bytes) else len(control.value)


def _unknown_field(name: str, given: str, faults: Iterable[Fault], number: int) -> Field:
    return Field(
        name,
        name,
        f"unknown-{number}",
        Control("area" if "\n" in given else "line", given, {} if "\n" in given else {"type": "text"}),
        faults=tuple(str(fault) for fault in faults if fault.argument == name),
        description="The prompt has no such argument: empty the field to leave it out.",
        is_unknown=True,
    )


def _placeholder(argument: Argument) -> dict[str, str]:
    """The default, in the place of a value that is not given."""
    default = argument.default
    if default is NO_DEFAULT or default is None or argument.arg.secret:
        return {}
    try:
        return {"placeholder": text_of(default)}
    except TypeError:  # a type of the author's that cannot be written
        return {}


def _examples(argument: Argument) -> tuple[str, ...]:
    found = []
    for example in () if argument.arg.secret else argument.arg.examples:
        try:
            found.append(text_of(example))
        except TypeError:  # as above
            continue
    return tuple(found)
