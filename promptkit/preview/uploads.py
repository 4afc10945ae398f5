"""Uploads: files that fill an argument as a client would send them, base64 for bytes and else text."""

from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

import attrs
from starlette.datastructures import UploadFile

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.errors.exceptions import Fault
from promptkit.preview.controls import is_upload

__all__ = ["FORM_LIMITS", "MAX_UPLOAD_SIZE", "Upload", "uploads_in"]

#: Bytes of one file. A page sends it again whenever something is typed.
MAX_UPLOAD_SIZE: Final = 4 * 1024 * 1024

#: What ``request.form`` takes. What was uploaded comes back in base64.
FORM_LIMITS: Final[Mapping[str, int]] = {
    "max_files": 64,
    "max_fields": 4096,
    "max_part_size": 4 * MAX_UPLOAD_SIZE,
}


@attrs.frozen
class Upload:
    """
    What the files of one field come to.

    Args:
        value:
            What a client would send; None if it cannot be sent.

        filename:
            What the files are called.

        faults:
            Why they cannot be sent.
    """

    value: str | None
    filename: str
    faults: tuple[Fault, ...] = ()


def uploads_in(arguments: Arguments, form: Any) -> dict[str, Upload]:
    """
    Return the files that a form sent, by the argument that they fill.

    Args:
        arguments:
            The arguments of a prompt.

        form:
            Starlette's ``FormData`` or ``QueryParams``.
    """
    sent = ((argument, _files(form, argument.name)) for argument in arguments.ordered)
    return {argument.name: _upload(argument, files) for argument, files in sent if files}


def _files(form: Any, name: str) -> list[UploadFile]:
    # A field without a file is sent as a file without a name.
    sent = form.getlist(f"{name}.file")
    return [file for file in sent if isinstance(file, UploadFile) and file.filename]


def _upload(argument: Argument, files: Sequence[UploadFile]) -> Upload:
    filename = ", ".join(str(file.filename) for file in files)
    data = [file.file.read(MAX_UPLOAD_SIZE + 1) for file in files]
    if sum(map(len, data)) > MAX_UPLOAD_SIZE:
        reason = f"is too large: the preview takes files of at most {MAX_UPLOAD_SIZE // 1024**2} MiB"
        return Upload(None, filename, (Fault(argument.name, reason),))
    if is_upload(argument):
        return Upload("\n".join(b64encode(each).decode() for each in data), filename)
    try:
        text = "\n".join(each.decode() for each in data)
    except UnicodeDecodeError as error:
        reason = f"cannot be read from {filename!r}: it is no UTF-8 text (byte {error.start + 1})"
        return Upload(None, filename, (Fault(argument.name, reason),))
    return Upload(text.replace("\r\n", "\n").replace("\r", "\n"), filename)
