"""Word diffs between the texts of cases on two sides."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.cli.diagnostics import counted
from promptkit.cli.differences.summary import code_span, html_code
from promptkit.files.folder import Folder
from promptkit.files.scratch import scratch_folder
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.markdown import code_block
from promptkit.fragments.text import truncate

#: Prefix of the transcript of a case that raised an unexpected error.
FAILS: Final = "[fails] "

#: Identifies the comment, so that it can be updated.
_MARK: Final = "<!-- promptkit diff -->"

#: GitHub accepts at most 65,536 characters in a comment. Limits for a comment and for one case.
_MAX_CHARACTERS: Final = 60_000
_MAX_CASE_CHARACTERS: Final = 8_000

#: The words of a diff: a role in brackets, letters and digits, or a punctuation mark.
_WORD: Final = r"\[[a-z]+\]|[[:alnum:]_]+|[^[:space:][:alnum:]_]"

#: The parts of a line: ``" "`` marks unchanged, ``"-"`` removed and ``"+"`` added text.
Line = list[tuple[str, str]]


class TextChange(Struct, frozen=True):
    """
    A case whose text has changed.

    Args:
        owner:
            The prompt or resource.

        case:
            The name of the case.

        old:
            The old text; None if the case is new.

        new:
            The new text; None if the case was removed.

        is_unsteady:
            Whether the text differs each time on one of the sides.
    """

    owner: str
    case: str
    old: str | None
    new: str | None
    is_unsteady: bool = False

    def __str__(self) -> str:
        what = "is new" if self.old is None else "is gone" if self.new is None else "renders another text"
        return f"{self.owner}: {self.case!r} {what}{', each time' if self.is_unsteady else ''}"

    @property
    def breaks(self) -> bool:
        """Whether the case fails now, and did not fail before."""
        return (self.new or "").startswith(FAILS) and not (self.old or FAILS).startswith(FAILS)

    @property
    def diff(self) -> list[str]:
        """The changed lines with one line of context. Each starts with ``-``, ``+`` or a space."""
        return [row for line in changed_words(self.old or "", self.new or "") for row in _rows(line)]

    def as_data(self) -> dict[str, Any]:
        """Return the change as JSON-compatible data, from which a CI job can write the comment."""
        return {
            "of": self.owner,
            "case": self.case,
            "breaking": self.breaks,
            "unsteady": self.is_unsteady,
            "message": str(self),
            "before": self.old,
            "after": self.new,
            "diff": self.diff,
        }


def text_changes(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    again: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]],
) -> Iterator[TextChange]:
    """
    Yield each changed case, in the order of the new side; removed cases come last.

    Args:
        old:
            The answer of the old side, see `renderings_side`.

        new:
            The answer of the new side.

        again:
            Pairs of the first and the repeated answer of each side.
    """
    unsteady = {
        (owner, case)
        for first, second in again
        for owner, texts in first["said"].items()
        for case, text in texts.items()
        if second["said"].get(owner, {}).get(case) != text
    }
    for owner, texts in new["said"].items():
        before = old["said"].get(owner, {})
        for case, text in texts.items():
            if before.get(case) != text:
                yield TextChange(owner, case, before.get(case), text, (owner, case) in unsteady)
    for owner, cases in old["cases"].items():
        for case in cases.keys() - new["cases"].get(owner, {}).keys():
            yield TextChange(owner, case, "", None)


def changed_words(old: str, new: str) -> list[Line]:
    """
    Return the changed lines and one line of context around them.

    Each line is split into unchanged, removed and added parts.

    Args:
        old:
            The old text.

        new:
            The new text.
    """
    with scratch_folder("promptkit-words-") as scratch:
        folder = os.path.realpath(scratch)
        for name, text in (("old", old), ("new", new)):
            Folder(folder).write(name, f"{text}\n".encode(errors="surrogatepass"))
        process = subprocess.run(  # noqa: S603 (git, with trusted arguments)
            [
                *("git", "--no-pager", "diff", "--no-index", "--no-ext-diff", "--no-textconv", "--no-color"),
                *("--text", "--unified=1", "--word-diff=porcelain", f"--word-diff-regex={_WORD}"),
                *("--", "old", "new"),
            ],
            cwd=folder,
            env=_environment(folder),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    return list(_lines(process.stdout.decode(errors="replace").split("\n")))


def _environment(folder: str) -> dict[str, str]:
    """Return variables with which git reads no configuration, because TMPDIR might be in a repository."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    overrides = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    return {**inherited, **overrides, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}


def _lines(output_lines: Iterable[str]) -> Iterator[Line]:
    """Parse git's word diff: one part per line, and ``~`` at the end of a line of text."""
    line: Line = []
    is_header = True
    for part in output_lines:
        if part.startswith("@@"):
            if not is_header:
                yield [(" ", "...")]
            is_header = False
        elif is_header or part.startswith("\\"):
            continue
        elif part == "~":
            yield line
            line = []
        elif part:
            line.append((part[0], part[1:]))


def summary_of(changes: Iterable[TextChange], revision: str) -> str:
    """Return the number of changed cases as text."""
    changed = [change for change in changes if not change.is_unsteady]
    if not changed:
        return f"no case says anything else than at {revision}"
    fails = sum(change.breaks for change in changed)
    failing = f", of which {fails} fail" if fails else ""
    return f"{counted(len(changed), 'case')} changed since {revision}{failing}"


def as_comment(changes: Iterable[TextChange], revision: str) -> str:
    """
    Return the changes as Markdown for a comment on a pull request: folded, and short enough.

    All prompt text is formatted as code, so that it contains no links, images, mentions or HTML.

    Args:
        changes:
            The changes.

        revision:
            The revision with which the recipes were compared.
    """
    changes = list(changes)
    parts = [_MARK, "## What prompts say", code_span(f"{summary_of(changes, revision)}.")]
    remaining = _MAX_CHARACTERS - sum(map(len, parts))
    shown_count = 0
    for change in changes:
        part = _folded(change)
        if len(part) > remaining:
            break
        parts.append(part)
        remaining -= len(part) + 2
        shown_count += 1
    if shown_count < len(changes):
        parts.append(f"{len(changes) - shown_count} more are not shown: `promptkit diff --text` shows them.")
    return "\n\n".join(parts) + "\n"


def _folded(change: TextChange) -> str:
    rows = change.diff
    if not rows:
        return f"- {code_span(str(change))}"
    block = code_block(truncate(escape_invisible("\n".join(rows)), _MAX_CASE_CHARACTERS), "diff")
    # No blank line before the end of the summary: up to it, GitHub parses only HTML.
    return f"<details><summary>{html_code(str(change))}</summary>\n\n{block}\n\n</details>"


def _rows(line: Line) -> Iterator[str]:
    """Yield the old and the new version of a line, or the line once if it is unchanged."""
    for sign in ("-", "+") if any(sign != " " for sign, _ in line) else (" ",):
        if text := "".join(part for part_sign, part in line if part_sign in {" ", sign}):
            yield sign + text
