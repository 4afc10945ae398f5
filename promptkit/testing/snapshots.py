"""Snapshots of what was rendered: a readable Markdown file for each, by syrupy."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from promptkit.catalog.cases import Case
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.errors.distribution import needed_by
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow
from promptkit.language.validation import describe
from promptkit.testing.comparisons import differences
from promptkit.testing.transcripts import transcript, visible_line_ends

with needed_by("promptkit_snapshot", "syrupy"):
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

__all__ = ["MarkdownSnapshots", "changes_of"]


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
    if text == snapshot:
        return None
    head = f"prompt {prompt.name!r}: the case {case.name!r} says something else (- snapshot, + now)"
    return differences(head, Path(file).read_text(encoding="utf-8"), visible_line_ends(text))
