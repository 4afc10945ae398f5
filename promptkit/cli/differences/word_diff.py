"""How what is said for a case differs between two sides, word by word."""

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

#: How a transcript begins of a case that can be neither rendered nor refused.
FAILS: Final = "[fails] "

#: By this, the comment is found again that is to be edited.
_MARK: Final = "<!-- promptkit diff -->"

#: GitHub takes at most 65,536 characters in a comment. So many are used at most, and so many for one case.
_MOST_CHARACTERS: Final = 60_000
_MOST_OF_CASE: Final = 8_000

#: A word is what git sees as one: a role in brackets, letters and digits, or a mark of punctuation.
_WORD: Final = r"\[[a-z]+\]|[[:alnum:]_]+|[^[:space:][:alnum:]_]"

#: Parts of one line: ``" "`` for what both sides have, ``"-"`` for what was, ``"+"`` for what is.
Line = list[tuple[str, str]]


class TextChange(Struct, frozen=True):
    """
    A case that says something else.

    Args:
        owner:
            The prompt or the resource.

        case:
            The name of the case.

        old:
            What was said; None if it is new.

        new:
            What is said; None if it is gone.

        is_unsteady:
            Whether one of the sides says something else each time.
    """

    owner: str
    case: str
    old: str | None
    new: str | None
    is_unsteady: bool = False

    def __str__(self) -> str:
        what = "is new" if self.old is None else "is gone" if self.new is None else "says something else"
        return f"{self.owner}: {self.case!r} {what}{', each time' if self.is_unsteady else ''}"

    @property
    def breaks(self) -> bool:
        """Whether it fails, and did not before."""
        return (self.new or "").startswith(FAILS) and not (self.old or FAILS).startswith(FAILS)

    @property
    def diff(self) -> list[str]:
        """The lines that differ, and one next to them: each begins with ``-``, ``+`` or a blank."""
        return [row for line in changed_words(self.old or "", self.new or "") for row in _rows(line)]

    def as_data(self) -> dict[str, Any]:
        """Return the change as JSON-compatible data, from which an action writes the comment."""
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
    Yield each case that says something else, in the order of today's cases; those that are gone come last.

    Args:
        old:
            What was said, as `renderings_side` answers it.

        new:
            What is said.

        again:
            Pairs of what one side said at first, and when it was asked once more.
    """
    unsteady = {
        (owner, case)
        for first, second in again
        for owner, said in first["said"].items()
        for case, text in said.items()
        if second["said"].get(owner, {}).get(case) != text
    }
    for owner, said in new["said"].items():
        before = old["said"].get(owner, {})
        for case, text in said.items():
            if before.get(case) != text:
                yield TextChange(owner, case, before.get(case), text, (owner, case) in unsteady)
    for owner, cases in old["cases"].items():
        for case in cases.keys() - new["cases"].get(owner, {}).keys():
            yield TextChange(owner, case, "", None)


def changed_words(old: str, new: str) -> list[Line]:
    """
    Return the lines that differ, and one beside them, in parts that both have, or one. Git compares them.

    Args:
        old:
            What was said.

        new:
            What is said.
    """
    with scratch_folder("promptkit-words-") as scratch:
        folder = os.path.realpath(scratch)
        for name, text in (("old", old), ("new", new)):
            Folder(folder).write(name, f"{text}\n".encode(errors="surrogatepass"))
        ran = subprocess.run(  # noqa: S603 (git, with arguments of our own)
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
    return list(_lines(ran.stdout.decode(errors="replace").split("\n")))


def _environment(folder: str) -> dict[str, str]:
    """The variables with which git reads no configuration, as TMPDIR may be within a repository."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    own = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "LC_ALL": "C.UTF-8"}
    return {**kept, **own, "GIT_CEILING_DIRECTORIES": str(Path(folder).parent)}


def _lines(printed: Iterable[str]) -> Iterator[Line]:
    """Read what git prints for words: one part a line, and ``~`` where a line ends."""
    line: Line = []
    is_head = True
    for part in printed:
        if part.startswith("@@"):
            if not is_head:
                yield [(" ", "...")]
            is_head = False
        elif is_head or part.startswith("\\"):
            continue
        elif part == "~":
            yield line
            line = []
        elif part:
            line.append((part[0], part[1:]))


def summary_of(changes: Iterable[TextChange], revision: str) -> str:
    """Return how many cases say something else."""
    changed = [one for one in changes if not one.is_unsteady]
    if not changed:
        return f"no case says anything else than at {revision}"
    fails = sum(one.breaks for one in changed)
    failing = f", of which {fails} fail" if fails else ""
    return f"{counted(len(changed), 'case')} not as at {revision}{failing}"


def as_comment(changes: Iterable[TextChange], revision: str) -> str:
    """
    Return what has changed as Markdown, for a comment at a pull request: folded, and short enough for it.

    All text of prompts is code, so that it holds no link, no image, no mention and no HTML.

    Args:
        changes:
            The changes.

        revision:
            What was compared with.
    """
    changes = list(changes)
    parts = [_MARK, "## What prompts say", code_span(f"{summary_of(changes, revision)}.")]
    left = _MOST_CHARACTERS - sum(map(len, parts))
    shown = 0
    for change in changes:
        part = _folded(change)
        if len(part) > left:
            break
        parts.append(part)
        left -= len(part) + 2
        shown += 1
    if shown < len(changes):
        parts.append(f"{len(changes) - shown} more are not shown: `promptkit diff --text` shows them.")
    return "\n\n".join(parts) + "\n"


def _folded(change: TextChange) -> str:
    rows = change.diff
    if not rows:
        return f"- {code_span(str(change))}"
    block = code_block(truncate(escape_invisible("\n".join(rows)), _MOST_OF_CASE), "diff")
    # No blank line before the end of the summary: up to there, GitHub takes the lines for HTML alone.
    return f"<details><summary>{html_code(str(change))}</summary>\n\n{block}\n\n</details>"


def _rows(line: Line) -> Iterator[str]:
    """A line as it was and as it is, or once if it is the same."""
    for sign in ("-", "+") if any(sign != " " for sign, _ in line) else (" ",):
        if text := "".join(part for one, part in line if one in {" ", sign}):
            yield sign + text
