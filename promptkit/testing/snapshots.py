"""Snapshots of what was rendered: a readable Markdown file for each, by syrupy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from promptkit.catalog.cases import Case
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.distribution import needed_by
from promptkit.files.reading import read_regular_file, replace_regular_file
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow
from promptkit.language.validation import describe
from promptkit.testing.transcripts import differences, transcript, visible_line_ends

with needed_by("promptkit_snapshot", "syrupy"):
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion
    from syrupy.data import SnapshotCollection

#: A larger file is not a snapshot.
_MAX_BYTES: Final = 1 << 26


class MarkdownSnapshots(SingleFileSnapshotExtension):
    """
    Keeps each snapshot in a file of its own, as a transcript: media by their type, size and digest.

    Workflows that differ have files that differ, in at least one visible character.
    """

    _write_mode = WriteMode.TEXT
    file_extension = "md"

    def serialize(self, data: Any, **_: Any) -> str:
        """
        Return what the file holds of a workflow, a message, content or text.

        Args:
            data:
                What was rendered.

            **_:
                What syrupy leaves out of other data.

        Raises:
            TypeError: If it is something else.
        """
        if isinstance(data, str):
            text = visible_line_ends(data)
        elif isinstance(data, Workflow | Message | Content):
            text = transcript(data)
        else:
            msg = f"promptkit_snapshot takes what a prompt renders to, or text, not {describe(data)}"
            raise TypeError(msg)
        return f"{text}\n"

    def read_snapshot_data_from_location(self, *, snapshot_location: str, **_: Any) -> str | None:
        """Return the text of a snapshot; None if there is none. A pipe is not waited for."""
        try:
            return _text_of(snapshot_location)
        except FileNotFoundError:
            return None

    @classmethod
    def write_snapshot_collection(cls, *, snapshot_collection: "SnapshotCollection", **_: Any) -> None:
        """Write a snapshot. Links and pipes in its place are refused."""
        text = next(iter(snapshot_collection)).data
        replace_regular_file(snapshot_collection.location, str(text).encode())


def _text_of(file: str) -> str:
    """Return the text of a snapshot. Raises OSError if it cannot be read, ValueError if it is not UTF-8."""
    text = read_regular_file(file, _MAX_BYTES).decode()
    return text.replace("\r\n", "\n").replace("\r", "\n")  # as version control may write it


def changes_of(
    prompt: CompiledPrompt, case: Case, rendered: Workflow, snapshot: "SnapshotAssertion"
) -> str | None:
    """
    Return how a case differs from its snapshot; None if it is equal, or has none.

    With ``--snapshot-update`` it gets one. Secrets are hidden in it.
    """
    file = snapshot.extension.get_location(test_location=snapshot.test_location, index=0)
    if not (snapshot.update_snapshots or Path(file).exists()):
        return None
    text = Redactor.of(prompt.arguments, case.sent()).redacted(transcript(rendered))
    which = f"prompt {prompt.name!r}: the case {case.name!r}"
    try:
        before = None if snapshot.update_snapshots else _text_of(file)
        if text == snapshot:
            return None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        return f"{which} has a snapshot that cannot be used: {file}: {reason}"
    return differences(
        f"{which} says something else (- snapshot, + now)", before or "", visible_line_ends(text)
    )
