"""
Forms: the fields of a prompt's arguments, and what people entered as a client would send it.

A field is sent under its argument's name. What belongs to it is sent under that name, a dot and a word, which
no argument is called: ``when.offset``.
"""

from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode
from zlib import crc32

import attrs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import InvalidArgument
from promptkit.language.annotations import NO_DEFAULT
from promptkit.preview.controls import Control, control_of, is_by_line, takes_file, typeable
from promptkit.preview.media import Upload, Uploads, number_in
from promptkit.types.unstructuring import can_be_sent, text_of, typed_text

#: Controls in which people see what they can enter.
_PLAIN: Final = frozenset({"radios", "select", "switch", "moment", "file"})

#: Controls that hold the digest of a value.
_HIDDEN: Final = frozenset({"file", "kept"})

#: In characters: neither servers nor people take a longer one.
_LONGEST_QUERY: Final = 6_000


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

        upload:
            What is sent in place of what is typed, or cannot be sent.

        reads:
            How often its text was read from a file.

        is_given:
            Whether it has a value: then it is said at once what is wrong with it.

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
    upload: Upload | None = None
    reads: int = 0
    is_given: bool = False
    is_unknown: bool = False

    @property
    def shape(self) -> str:
        """
        Equal for controls that differ in what people typed alone.

        A page keeps such a control as it is: to write it anew would disturb who types.
        """
        control = self.control
        labels = [choice.label for choice in control.choices]
        of_control = control.kind, dict(control.attributes), labels, control.offset is not None
        shape = of_control, self.reads, self.takes_file, self.upload and self.upload.digest
        return f"{crc32(repr(shape).encode()):08x}"


@attrs.frozen
class Submission:
    """
    What a form sent.

    Args:
        given:
            The values by argument name, as a client would send them.

        uploads:
            Those that are sent, or cannot be sent, by argument name.

        reads:
            How often text was read from a file, by argument name.
    """

    given: Mapping[str, str]
    uploads: Mapping[str, Upload] = MappingProxyType({})
    reads: Mapping[str, int] = MappingProxyType({})

    @property
    def faults(self) -> tuple[InvalidArgument, ...]:
        """What is wrong with uploads."""
        return tuple(InvalidArgument(name, one.refusal) for name, one in self.uploads.items() if one.refusal)


def fields_of(
    arguments: Arguments, submission: Submission, kept: Uploads, faults: Iterable[InvalidArgument] = ()
) -> tuple[Field, ...]:
    """
    Return the fields of a form: one for each argument, and one for each value that has no argument.

    Args:
        arguments:
            The arguments of a prompt.

        submission:
            What the form holds.

        kept:
            Keeps the values that no control can show.

        faults:
            What is wrong with the values.
    """
    faults, given = tuple(faults), submission.given
    known = [_field(argument, submission, kept, faults) for argument in arguments.ordered]
    names = [*given, *(fault.argument for fault in faults)]
    unknown = [name for name in dict.fromkeys(names) if name not in arguments.by_name]
    others = [_unknown_field(name, given.get(name, ""), faults, at) for at, name in enumerate(unknown, 1)]
    return (*known, *others)


def submission_of(arguments: Arguments, form: Any, kept: Uploads) -> Submission:
    """
    Return all that a form, or a link, says.

    Args:
        arguments:
            The arguments of a prompt.

        form:
            Starlette's ``FormData`` or ``QueryParams``.

        kept:
            Keeps what was uploaded.
    """
    names = dict.fromkeys(filter(None, (key.partition(".")[0] for key in form)))
    given = {name: value for name in names if (value := _value(form, name)) is not None}
    reads = {name: count for name in given if (count := number_in(form.get(f"{name}.reads")))}
    uploads = {}
    for name, upload in kept.of(arguments, form).items():
        argument = arguments.by_name[name]
        if upload.value is not None:
            given[name] = upload.value
        if upload.value is not None and control_of(argument, upload.value).kind not in _HIDDEN:
            reads[name] = number_in(form.get(f"{name}.reads")) + 1  # shown as if people had typed it
        else:
            uploads[name] = upload
    ordered = dict.fromkeys((*arguments.by_name, *given))
    return Submission({name: given[name] for name in ordered if name in given}, uploads, reads)


def query_of(arguments: Arguments, given: Mapping[str, str]) -> str:
    """
    Return the query of a link that shows the same page.

    Secrets are left out, and so are uploads, and texts that would make the link too long.

    Args:
        arguments:
            The arguments of a prompt.

        given:
            The values, as a client sends them.
    """
    query = ""
    for name, value in given.items():
        argument = arguments.by_name.get(name)
        if argument is None or not (argument.arg.secret or argument.takes_bytes):
            longer = f"{query}&{urlencode([_linked(name, value)])}"
            query = longer if len(longer) <= _LONGEST_QUERY else query
    return query.removeprefix("&")


def _linked(name: str, value: str) -> tuple[str, str]:
    if not value:
        return f"{name}.empty", "on"
    if typeable(value):
        return name, value
    return f"{name}.base64", b64encode(value.encode(errors="surrogatepass")).decode()


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


def _decoded(kept: str) -> str | None:
    try:
        return b64decode(kept, validate=True).decode(errors="surrogatepass")
    except ValueError:  # somebody has written the link by hand
        return None


def _field(
    argument: Argument, submission: Submission, kept: Uploads, faults: Iterable[InvalidArgument]
) -> Field:
    name, given = argument.name, submission.given.get(argument.name)
    upload = submission.uploads.get(name)
    if upload is not None and upload.value is not None:  # nobody looks through its value again
        control = Control("file" if argument.takes_bytes else "kept")
    else:
        control = control_of(argument, given)
    if upload is None and control.kind in _HIDDEN and control.value:
        upload = kept.keep_value(argument, control.value)
    is_line = control.kind == "line" and control.attributes.get("type") != "password"
    return Field(
        name,
        argument.title or name,
        name,
        attrs.evolve(control, attributes={**control.attributes, **_placeholder(argument)}),
        required=argument.required,
        description=_hint(argument, control),
        examples=() if argument.arg.secret else tuple(map(text_of, argument.examples)),
        faults=tuple(_described(argument, fault, given) for fault in faults if fault.argument == name),
        completes=argument.completer is not None and is_line,
        may_be_empty=given == "" if argument.blank_is_value and not argument.arg.secret else None,
        takes_file=takes_file(argument, control),
        takes_files=is_by_line(argument) and argument.takes_bytes,
        upload=upload,
        reads=submission.reads.get(name, 0),
        is_given=bool(given) or upload is not None,
    )


def _described(argument: Argument, fault: InvalidArgument, given: str | None) -> str:
    """What is wrong with an argument, and in which line of a list."""
    where = None
    if given and not argument.arg.secret and is_by_line(argument):
        where = _line_of(given, fault.path)
    return f"{fault} ({where})" if where else str(fault)


def _line_of(text: str, path: str) -> str | None:
    """The line of an item of a list that has a line for each."""
    number = path[1:-1]
    lines = [at for at, line in enumerate(text.splitlines(), 1) if line.strip()]
    is_item = number.isdecimal() and len(lines) > 1 and int(number) < len(lines)
    return f"line {lines[int(number)]}" if is_item else None


def _hint(argument: Argument, control: Control) -> str | None:
    """The author's words, and what to enter if the control does not show that. Examples have buttons."""
    arg = argument.arg
    if arg.env:
        return argument.description
    hint = None if control.kind in _PLAIN else argument.reader.hint
    if not arg.description:
        return hint or None
    return f"{arg.description} ({hint})" if hint else arg.description


def _unknown_field(name: str, given: str, faults: Iterable[InvalidArgument], number: int) -> Field:
    return Field(
        name,
        name,
        f"unknown-{number}",
        Control("area", given),
        faults=tuple(str(fault) for fault in faults if fault.argument == name),
        description="The prompt has no such argument: empty the field to leave it out.",
        is_unknown=True,
    )


def _placeholder(argument: Argument) -> dict[str, str]:
    """The default, in the place of a value that is not given."""
    default = argument.default
    if default is NO_DEFAULT or default is None or argument.arg.secret:
        return {}
    return {"placeholder": typed_text(default)} if can_be_sent(default) else {}
