"""Changes as Markdown, for the summary of a CI job and for a comment on a pull request."""

import re
from collections import Counter
from collections.abc import Sequence
from textwrap import indent
from typing import Final

from promptkit.cli.diagnostics import counted
from promptkit.cli.diff_changes import Changes, Difference, TextChange, effect_of
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.markdown import code_block
from promptkit.fragments.text import truncate

#: GitHub accepts at most 65,536 characters in a comment. Limits for the text, one change and one title.
_MAX_CHARACTERS: Final = 60_000
_MAX_CHANGE_CHARACTERS: Final = 8_000
_MAX_TITLE: Final = 500


def as_markdown(heading: str, summary: str, changes: Changes, command: str) -> str:
    """
    Return changes as Markdown that is short enough for a comment on GitHub.

    All prompt text is formatted as code, so that it contains no links, images, mentions or HTML.

    Args:
        heading:
            The Markdown to start with.

        summary:
            The numbers of changes as text.

        changes:
            The changes.

        command:
            The command that shows all changes.
    """
    parts = [heading, _code_span(summary)]
    remaining = _MAX_CHARACTERS - sum(map(len, parts))
    for position, change in enumerate(changes):
        part = _item(change)
        remaining -= len(part) + 2
        if remaining < 0:
            parts.append(f"{len(changes) - position} more are not shown: `{command}` shows them.")
            break
        parts.append(part)
    return "\n\n".join(parts) + "\n"


def _item(change: Difference | TextChange) -> str:
    line = f"- **{effect_of(change)}**: {_code_span(str(change))}"
    if not (lines := change.diff):
        return line
    block = str(code_block(truncate(escape_invisible("\n".join(lines)), _MAX_CHANGE_CHARACTERS), "diff"))
    return f"{line}\n\n{indent(block, '  ', lambda _: True)}"  # blank lines belong to the item as well


def _code_span(text: str) -> str:
    """Return *text* as a Markdown code span on one line, which the text cannot close."""
    line = escape_invisible(text[: _MAX_TITLE + 1], one_line=True)
    line = f"{line[:_MAX_TITLE]}…" if len(line) > _MAX_TITLE else line
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    return f"{ticks} {line} {ticks}"


def count_changes(changes: Sequence[Difference], revision: str) -> str:
    """Return the numbers of breaking and of harmless changes as text."""
    if not changes:
        return f"nothing that clients see has changed since {revision}"
    effects = Counter(map(effect_of, changes))
    numbers = [counted(effects[effect], f"{effect} change") for effect in sorted(effects)]
    return f"{', '.join(numbers)} since {revision}"


def count_cases(changes: Sequence[TextChange], revision: str) -> str:
    """Return the number of changed cases as text."""
    changed = [change for change in changes if not change.is_unsteady]
    if not changed:
        return f"no case says anything else than at {revision}"
    fails = sum(change.breaking for change in changed)
    failing = f", of which {fails} fail" if fails else ""
    return f"{counted(len(changed), 'case')} changed since {revision}{failing}"
