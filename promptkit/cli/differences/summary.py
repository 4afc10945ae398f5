"""The changes that clients see, as Markdown for the summary of a CI job."""

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import indent
from typing import Final

from promptkit.cli.diagnostics import counted
from promptkit.cli.differences.changes import Difference
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.markdown import code_block
from promptkit.fragments.text import truncate

#: Maximum length of a title, in characters.
_MAX_TITLE: Final = 500


def code_span(text: str) -> str:
    """Return *text* as a Markdown code span on one line, which the text cannot close."""
    line = _one_line(text)
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    return f"{ticks} {line} {ticks}"


def html_code(text: str) -> str:
    """Return *text* as a ``<code>`` element on one line, with all HTML and Markdown escaped."""
    line = "".join(char if char.isalnum() or char == " " else f"&#{ord(char)};" for char in _one_line(text))
    return f"<code>{line}</code>"


def _one_line(text: str) -> str:
    line = escape_invisible(text[: _MAX_TITLE + 1], one_line=True)
    return f"{line[:_MAX_TITLE]}…" if len(line) > _MAX_TITLE else line


#: GitHub drops summaries of more than 1 MiB. A character is at most 4 bytes long.
_MAX_CHARACTERS: Final = 250_000
_MAX_CHANGE_CHARACTERS: Final = 8_000


def as_summary(changes: Sequence[Difference], revision: str) -> str:
    """
    Return the changes as Markdown, short enough for a job summary. All prompt text is formatted as code.

    Args:
        changes:
            The changes.

        revision:
            The revision with which the recipes were compared.
    """
    parts = ["## Prompts", code_span(count_changes(changes, revision))]
    remaining = _MAX_CHARACTERS
    for position, change in enumerate(changes):
        part = _item(change)
        remaining -= len(part)
        if remaining < 0:
            parts.append(f"{len(changes) - position} more are not shown: `promptkit diff` shows them.")
            break
        parts.append(part)
    return "\n\n".join(parts) + "\n"


def _item(change: Difference) -> str:
    line = f"- **{change.effect}**: {code_span(str(change))}"
    if not (lines := change.diff):
        return line
    block = str(code_block(truncate(escape_invisible("\n".join(lines)), _MAX_CHANGE_CHARACTERS), "diff"))
    return f"{line}\n\n{indent(block, '  ', lambda _: True)}"  # blank lines belong to the item as well


def count_changes(changes: Sequence[Difference], revision: str) -> str:
    """Return the numbers of breaking and of harmless changes as text."""
    if not changes:
        return f"nothing that clients see has changed since {revision}"
    effects = Counter(change.effect for change in changes)
    numbers = [counted(effects[effect], f"{effect} change") for effect in sorted(effects)]
    return f"{', '.join(numbers)} since {revision}"
