"""``promptkit diff``: show what clients would see differently from a git revision."""

import errno
import os
from argparse import Namespace
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from promptkit.cli import Exit
from promptkit.cli.diagnostics import console_on, fail, print_annotation, print_error
from promptkit.cli.differences.changes import Difference, changes_between
from promptkit.cli.differences.renderings import compared_renderings
from promptkit.cli.differences.revisions import Repository, RevisionError, checkout, loading_from
from promptkit.cli.differences.sides import ask_side
from promptkit.cli.differences.summary import as_summary, count_changes
from promptkit.cli.differences.word_diff import as_comment, changed_words, summary_of, text_changes
from promptkit.cli.output import Output
from promptkit.errors.distribution import needed_by
from promptkit.files.folder import Folder
from promptkit.fragments.invisible import escape_invisible

if TYPE_CHECKING:
    from promptkit.cli.differences.word_diff import TextChange

#: What stands around words that were, and those that are.
_WORDS: Final = {" ": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}

#: What is compared: a revision, and another one, or None for the files as they are.
_Ends: TypeAlias = tuple[str, str | None]

_STYLES: Final = {"breaking": "bold red", "harmless": "green", "-": "red", "+": "green", "@": "cyan"}


def run(options: Namespace, output: Output) -> int:
    """
    Print what has changed since a revision, or between two, as text, as JSON, or as GitHub's annotations.

    Raises:
        LoadError: If there is nothing at the target, now or then.
    """
    wants_texts = options.text or options.comment is not None
    if wants_texts and (options.format == "github" or options.summary is not None):
        options.refuse("--text has no annotations, and no summary: --comment writes Markdown")
    if not wants_texts and (options.repeat or options.variables):
        options.refuse("--repeat and --env are for --text")
    try:
        repository = Repository()
        ends = repository.ends(options.revision)
        if wants_texts:
            return _compare_texts(options, repository, ends, output)
        old, new = _sides(repository, ends, options.targets)
        changes, named = changes_between(old, new), _named(ends)
    except RevisionError as error:
        return fail(_line(error), Exit.USAGE)
    except RecursionError:
        return fail("a schema or _meta is nested too deeply to be compared", Exit.USAGE)
    _report_faults(repository, ends, old, new)
    breaks = any(change.kind.breaking for change in changes)
    places = {owner: (repository.path(file), line) for owner, (file, line) in new["places"].items()}
    if options.format == "json":
        data = [change.as_data() for change in changes]
        output.print_json({"revision": options.revision, "breaking": breaks, "changes": data})
    elif options.format == "github":
        _print_annotations(changes, places, output)
    else:
        _print_text(changes, named, output)
    if options.summary is not None:
        is_written = _write(options.summary, as_summary(changes, named), appends=True)
        if not is_written:
            return Exit.USAGE
    return Exit.FAULTY if breaks else Exit.FINE


def _named(ends: _Ends) -> str:
    """What is compared, as words that follow "since"."""
    first, last = ends
    return first if last is None else f"{first}, up to {last}"


def _report_faults(
    repository: Repository, ends: _Ends, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Print what a side cannot serve."""
    for side, revision in zip((old, new), ends, strict=True):
        when = "" if revision is None else f" at {revision}"
        for file, line, message in side["faults"]:
            print_error(_line(f"not served{when}: {repository.path(file)}:{line}: {message}"))


def _line(message: object) -> str:
    """A message on one line: a side or git may have written a part of it."""
    return escape_invisible(str(message), one_line=True)


def _sides(
    repository: Repository, ends: _Ends, targets: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was served, and what is served since, for the examples that there were."""
    found: list[dict[str, Any]] = []
    for revision in ends:
        with (
            checkout(repository, revision, targets) as (folder, moved, places),
            loading_from(repository, revision, targets),
        ):
            found.append(ask_side(folder, moved, found[0]["examples"] if found else None, places))
    old, new = found
    return old, new


def _compare_texts(options: Namespace, repository: Repository, ends: _Ends, output: Output) -> int:
    """Print what cases say differently, word by word, or write it as a comment."""
    try:
        with needed_by("diff --text", "time_machine"):
            import time_machine  # noqa: F401 (the processes of both sides stop their clock by it)
    except ModuleNotFoundError as error:
        return fail(str(error), Exit.USAGE)
    print_error(
        f"renders the cases of {' and '.join(filter(None, ends))} too: the code of that revision runs"
    )
    old, new, again = compared_renderings(
        repository, ends, options.targets, options.variables, repeats=options.repeat
    )
    _report_faults(repository, ends, old, new)
    changes = list(text_changes(old, new, again))
    if options.comment is not None and not _write(options.comment, as_comment(changes, _named(ends))):
        return Exit.USAGE
    breaks = any(change.breaks for change in changes)
    if options.format == "json":
        data = [change.as_data() for change in changes]
        output.print_json({"revision": options.revision, "breaking": breaks, "changes": data})
    else:
        _print_words(changes, output)
        output.print_lines([summary_of(changes, _named(ends))])
    return Exit.FAULTY if breaks else Exit.FINE


def _print_words(changes: "Sequence[TextChange]", output: Output) -> None:
    """Print the lines that differ of each case: what was in ``[-...-]``, what is in ``{+...+}``."""
    from rich.text import Text

    console = console_on(output, output.width)
    for change in changes:
        console.print(Text(escape_invisible(str(change), one_line=True), "bold"), soft_wrap=True)
        for line in changed_words(change.old or "", change.new or ""):
            shown = Text("    ")
            for sign, words in line:
                opening, closing = _WORDS[sign]
                shown.append(f"{opening}{escape_invisible(words)}{closing}", _STYLES.get(sign, ""))
            console.print(shown, soft_wrap=True)


def _write(path: str, text: str, *, appends: bool = False) -> bool:
    """Write a regular file, or append to it. If that fails, print why and return False."""
    folder, name = Folder.named(Path(path).parent), Path(path).name
    data = text.encode()
    try:
        if not folder.exists():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
        if not appends:
            folder.write(name, data)
            return True
        with folder.open_for_update(name) as file:
            file.seek(0, os.SEEK_END)
            file.write(data)
    except OSError as error:
        print_error(f"cannot write to {path!r}: {error.strerror}")
        return False
    return True


def _print_text(changes: Sequence[Difference], revision: str, output: Output) -> None:
    """Print a line for each change, what differs below it, and how many there are."""
    from rich.text import Text

    console = console_on(output, output.width)
    for change in changes:
        shown = f": {escape_invisible(str(change), one_line=True)}"
        console.print(Text.assemble((change.effect, _STYLES[change.effect]), shown), soft_wrap=True)
        for line in change.diff:
            shown = escape_invisible(f"    {line}")
            # Blanks at the end of a line count only where it differs.
            text = Text(shown if line[0] in "-+" else shown.rstrip(), _STYLES.get(line[0], ""))
            console.print(text, soft_wrap=True)
    output.print_lines([count_changes(changes, revision)])


def _print_annotations(
    changes: Sequence[Difference], places: Mapping[str, tuple[str, int]], output: Output
) -> None:
    """Print an annotation for each change, beside what it is about if that still exists."""
    for change in changes:
        file, line = places.get(change.owner, ("", 0))
        where = {"file": file, "line": line, "title": f"promptkit diff: {change.effect}"}
        level = "error" if change.kind.breaking else "notice"
        print_annotation(level, "\n".join([str(change), *change.diff]), output, where)
