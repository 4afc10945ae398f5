"""Snapshots of renderings: one readable Markdown file each, managed by syrupy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from promptkit.catalog.cases import Case
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.distribution import needed_by
from promptkit.files.folder import Folder
from promptkit.files.reading import read_regular_file
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow
from promptkit.language.validation import describe
from promptkit.testing.transcripts import differences, transcript, visible_line_ends

with needed_by("promptkit_snapshot", "syrupy"):
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from syrupy.data import SnapshotCollection

#: The maximum size of a snapshot in bytes.
_MAX_BYTES: Final = 1 << 26


class MarkdownSnapshots(SingleFileSnapshotExtension):
    """
    A syrupy extension that stores each snapshot as a transcript in a separate Markdown file.

    Media appear as their type, size and digest. Files of different workflows differ in a visible character.
    """

    _write_mode = WriteMode.TEXT
    file_extension = "md"

    def serialize(self, data: Any, **_: Any) -> str:
        """
        Return the file contents for a workflow, a message, content or text.

        Args:
            data:
                The rendering.

            **_:
                Options of syrupy for other data.

        Raises:
            TypeError: If *data* has another type.
        """
        if isinstance(data, str):
            text = visible_line_ends(data)
        elif isinstance(data, Workflow | Message | Content):
            text = transcript(data)
        else:
            msg = f"promptkit_snapshot accepts a rendering or text, not {describe(data)}"
            raise TypeError(msg)
        return f"{text}\n"

    def read_snapshot_data_from_location(self, *, snapshot_location: str, **_: Any) -> str | None:
        """Return the text of a snapshot; None if it does not exist. Pipes do not block."""
        try:
            return _read_snapshot(snapshot_location)
        except FileNotFoundError:
            return None

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: "SnapshotCollection", **_: Any) -> None:
        """Write a snapshot. Refuse to write through links and pipes."""
        text = next(iter(snapshot_collection)).data
        file = Path(snapshot_collection.location)
        Folder(file.parent, is_portable=False).write(file.name, str(text).encode())


def _read_snapshot(file: str) -> str:
    """Return the text of a snapshot. Raises OSError if it cannot be read, ValueError if it is not UTF-8."""
    text = read_regular_file(file, _MAX_BYTES).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")  # version control can change line ends


def changes_of(
    prompt: CompiledPrompt, case: Case, rendered: Workflow, snapshot: "SnapshotAssertion"
) -> str | None:
    """
    Return a diff of a case and its snapshot; None if they are equal, or there is no snapshot.

    With ``--snapshot-update``, the snapshot is written. Secrets are redacted.
    """
    file = snapshot.extension.get_location(test_location=snapshot.test_location, index=0)
    if not (snapshot.update_snapshots or Path(file).exists()):
        return None
    text = Redactor.of(prompt.arguments, case.sent()).redacted(transcript(rendered))
    label = f"prompt {prompt.name!r}: the case {case.name!r}"
    try:
        old_text = None if snapshot.update_snapshots else _read_snapshot(file)
        if text == snapshot:
            return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return f"{label} has a snapshot that cannot be read: {file}: {reason}"
    return differences(
        f"{label} renders different text (- snapshot, + current)", old_text or "", visible_line_ends(text)
    )
