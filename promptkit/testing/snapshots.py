"""Snapshots of what was rendered: a readable Markdown file for each, by syrupy."""

from typing import Any

from promptkit.errors.distribution import needed_by
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow
from promptkit.language.validation import describe
from promptkit.testing.transcripts import transcript, visible_line_ends

with needed_by("promptkit_snapshot", "syrupy"):
    from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

__all__ = ["MarkdownSnapshots"]


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
