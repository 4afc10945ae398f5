"""
Forms: the fields of a prompt's arguments, and the submitted values as a client would send them.

A field is sent under its argument's name. Related fields are sent under that name, a dot and a word, which
cannot be an argument's name: ``notes.file``.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode
from zlib import crc32

import attrs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import InvalidArgument
from promptkit.language.annotations import NO_DEFAULT
from promptkit.preview.controls import (
    Control,
    accepts_file,
    build_control,
    is_choice_list,
    is_line_list,
    is_typeable,
    join_choices,
)
from promptkit.preview.media import Upload, UploadStore, parse_number
from promptkit.types.unstructuring import can_be_sent, text_of, typed_text

#: Controls that show which values are possible, and need no hint.
_SELF_EXPLANATORY: Final = frozenset({"radios", "select", "file"})

#: Controls that contain the digest of a value.
_HIDDEN: Final = frozenset({"file", "stored"})

#: Maximum length of a link's query in characters; longer URLs are rejected by servers and unwieldy.
_MAX_QUERY: Final = 6_000


@attrs.frozen
class Field:
    """
    The field of one argument.

    Args:
        name:
            The argument's name.

        label:
            Its title, or its name.

        key:
            The suffix of the ids of its elements.

        control:
            Its control.

        required:
            Whether a value is required.

        description:
            What to enter.

        examples:
            The author's examples, as a client sends them.

        errors:
            The errors of its value.

        has_completions:
            Whether values are suggested while the user types.

        is_empty_text:
            Whether its value is ``""``; None if the argument does not accept ``""``.

        accepts_file:
            Whether its value can be read from a file.

        accepts_files:
            Whether its value can be read from several files.

        upload:
            The uploaded value, if any, including a value that cannot be sent.

        read_count:
            How often its text was read from a file.

        has_value:
            Whether it has a value, so that its errors are shown immediately.

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
        A checksum that is equal for controls that differ only in the typed value.

        A page keeps a control with the same shape, because replacing it would disturb users while they type.
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
            The values by argument name, as a client would send them.

        uploads:
            The uploads by argument name, including invalid ones.

        read_counts:
            How often text was read from a file, by argument name.
    """

    values: Mapping[str, str]
    uploads: Mapping[str, Upload] = MappingProxyType({})
    read_counts: Mapping[str, int] = MappingProxyType({})

    @property
    def errors(self) -> tuple[InvalidArgument, ...]:
        """The errors of uploads."""
        return tuple(
            InvalidArgument(name, upload.error) for name, upload in self.uploads.items() if upload.error
        )


def build_fields(
    arguments: Arguments, submission: Submission, store: UploadStore, errors: Iterable[InvalidArgument] = ()
) -> tuple[Field, ...]:
    """
    Return the fields of a form: one for each argument, and one for each value without an argument.

    Args:
        arguments:
            The arguments of a prompt.

        submission:
            The submitted values.

        store:
            Stores the values that no control can show.

        errors:
            The errors of the values.
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
        if upload.value is not None and build_control(argument, upload.value).kind not in _HIDDEN:
            # The text is shown as if the user had typed it.
            read_counts[name] = parse_number(form.get(f"{name}.reads")) + 1
        else:
            uploads[name] = upload
    ordered = dict.fromkeys((*arguments.by_name, *values))
    return Submission({name: values[name] for name in ordered if name in values}, uploads, read_counts)


def build_query(arguments: Arguments, values: Mapping[str, str]) -> str:
    """
    Return the query of a link that shows the same page.

    It omits secrets, uploads, texts that browsers would change, and texts that would make the link too long.

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
        if is_typeable(value) and not is_private:
            parameter = (name, value) if value else (f"{name}.empty", "on")
            extended = f"{query}&{urlencode([parameter])}"
            query = extended if len(extended) <= _MAX_QUERY else query
    return query.removeprefix("&")


def _read_value(form: Any, name: str, arguments: Arguments) -> str | None:
    """Return the value of an argument; None if it has none. Checkboxes send one value each."""
    argument, text = arguments.by_name.get(name), form.get(name)
    if argument is not None and is_choice_list(argument):
        text = join_choices(value for value in form.getlist(name) if isinstance(value, str) and value)
    if isinstance(text, str) and text:
        return text.replace("\r\n", "\n")  # browsers send line endings as two characters
    return "" if f"{name}.empty" in form else None


def _build_field(
    argument: Argument, submission: Submission, store: UploadStore, errors: Iterable[InvalidArgument]
) -> Field:
    name, value = argument.name, submission.values.get(argument.name)
    upload = submission.uploads.get(name)
    if upload is not None and upload.value is not None:  # the value need not be examined again
        control = Control("file" if argument.takes_bytes else "stored")
    else:
        control = build_control(argument, value)
    if upload is None and control.kind in _HIDDEN and control.value:
        upload = store.store_value(argument, control.value)
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
        accepts_file=accepts_file(argument, control),
        accepts_files=is_line_list(argument) and argument.takes_bytes,
        upload=upload,
        read_count=submission.read_counts.get(name, 0),
        has_value=bool(value) or upload is not None,
    )


def _build_hint(argument: Argument, control: Control) -> str | None:
    """Return the author's description, and the accepted values if the control does not show them."""
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
    """Return the attribute that shows the default while no value is entered."""
    default = argument.default
    if default is NO_DEFAULT or default is None or argument.arg.secret:
        return {}
    return {"placeholder": typed_text(default)} if can_be_sent(default) else {}
