"""Snapshots of renderings, each stored as a readable Markdown file and managed by syrupy."""

import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from unicodedata import normalize

from promptkit.catalog.cases import Case
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.distribution import needed_by
from promptkit.files.folder import Folder
from promptkit.files.reading import read_regular_file
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow
from promptkit.language.validation import describe
from promptkit.testing.transcripts import format_differences, transcript, visible_whitespace

with needed_by("promptkit_snapshot", "syrupy"):
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from syrupy.data import SnapshotCollection
    from syrupy.location import PyTestLocation
    from syrupy.types import SnapshotIndex

#: The maximum size of a snapshot in bytes.
_MAX_BYTES: Final = 1 << 26

#: The maximum length of a file name without its extension, in bytes. File systems allow 255 bytes in total.
_MAX_STEM: Final = 200


class RedactedTranscript(str):
    """A transcript without secrets. Unlike other text, it is stored without being escaped again."""

    __slots__ = ()


class MarkdownSnapshots(SingleFileSnapshotExtension):
    """
    A syrupy extension that stores each snapshot as a transcript in a separate Markdown file.

    Media are shown by type, size and digest. The files of different workflows differ visibly.
    """

    _write_mode = WriteMode.TEXT
    file_extension = "md"

    def serialize(self, data: Any, **_: Any) -> str:
        """
        Return the content of the file for a workflow, a message, content or text.

        Args:
            data:
                The rendering or text.

            **_:
                syrupy's options for other kinds of data.

        Raises:
            TypeError: If *data* has a different type.
        """
        text: str
        if isinstance(data, RedactedTranscript):
            text = data
        elif isinstance(data, str):
            text = visible_whitespace(data)
        elif isinstance(data, Workflow | Message | Content):
            text = transcript(data)
        else:
            msg = f"promptkit_snapshot accepts a rendering or text, not {describe(data)}"
            raise TypeError(msg)
        return f"{text}\n" if text else ""

    @classmethod
    def get_snapshot_name(cls, *, test_location: "PyTestLocation", index: "SnapshotIndex" = 0) -> str:
        """
        Return the name of a snapshot's file, without its extension.

        A digest is added if the name contains characters that file names cannot contain, is too long, or
        might differ from that of another test only in case.
        """
        stem = super().get_snapshot_name(test_location=test_location, index=index)
        name = super(SingleFileSnapshotExtension, cls).get_snapshot_name(
            test_location=test_location, index=index
        )
        parameters = name.partition("[")[2]
        is_unique = stem == name and parameters == normalize("NFC", parameters.casefold())
        if is_unique and len(name.encode()) <= _MAX_STEM:
            return name
        digest = sha256(name.encode(errors="surrogatepass")).hexdigest()[:8]
        return f"{stem.encode()[:_MAX_STEM].decode(errors='ignore')}.{digest}"

    @classmethod
    def matches_test_location(cls, *, test_location: "PyTestLocation", snapshot_location: str) -> bool:
        """Return whether a file is a snapshot of a test. Its name can contain a digest."""
        default_location = cls.get_location(test_location=test_location, index=0)
        return snapshot_location == default_location or super().matches_test_location(
            test_location=test_location, snapshot_location=snapshot_location
        )

    def read_snapshot_data_from_location(self, *, snapshot_location: str, **_: Any) -> str | None:
        """Return the text of a snapshot; None if it does not exist. Never block, even if it is a pipe."""
        try:
            return _read_snapshot(snapshot_location)
        except FileNotFoundError:
            return None

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: "SnapshotCollection", **_: Any) -> None:
        """Write a snapshot. Raises OSError instead of writing to a symbolic link or a pipe."""
        text = next(iter(snapshot_collection)).data
        file = Path(snapshot_collection.location)
        Folder(file.parent, is_portable=False).write(file.name, str(text).encode())


def _read_snapshot(file: str) -> str:
    """Return the text of a snapshot. Raises OSError if it cannot be read, ValueError if it is not UTF-8."""
    text = read_regular_file(file, _MAX_BYTES).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")  # version control can change line endings


def compare_with_snapshot(
    prompt: CompiledPrompt, case: Case, rendered: Workflow, snapshot: "SnapshotAssertion"
) -> str | None:
    """
    Return an error message if the rendering of a case differs from its snapshot; otherwise None.

    With ``--snapshot-update``, the snapshot is written, with secrets redacted. A case without a snapshot is
    not compared. In continuous integration (``CI`` is set), it is an error if other cases in its file have
    snapshots.
    """
    file = Path(snapshot.extension.get_location(test_location=snapshot.test_location, index=0))
    label = f"prompt {prompt.name!r}: the case {case.name!r}"
    if not (snapshot.update_snapshots or os.path.lexists(file)):
        if "CI" in os.environ and any(file.parent.glob("*.md")):
            advice = f"write it with --snapshot-update, and commit {file}"
            return f"{label} has no snapshot, but other cases in its file have one: {advice}"
        return None
    text = RedactedTranscript(Redactor.of(prompt.arguments, case.sent()).redacted(transcript(rendered)))
    try:
        old_text = None if snapshot.update_snapshots else _read_snapshot(str(file))
        if text == snapshot:
            return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return f"{label} has a snapshot that cannot be read: {file}: {reason}"
    return format_differences(f"{label} renders different text (- snapshot, + current)", old_text or "", text)
