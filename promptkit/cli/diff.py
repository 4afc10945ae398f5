"""``promptkit diff``: show what changed for clients since a git revision."""

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

#: The brackets around unchanged, removed and added words.
_WORDS: Final = {" ": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}

#: The compared revisions; None as the last one means the working tree.
_Ends: TypeAlias = tuple[str, str | None]

_STYLES: Final = {"breaking": "bold red", "harmless": "green", "-": "red", "+": "green", "@": "cyan"}


def run(options: Namespace, output: Output) -> int:
    """
    Print the changes since a revision, or between two, as text, JSON or GitHub annotations.

    Raises:
        LoadError: If the recipes in a revision cannot be loaded.
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
        old, new = _load_sides(repository, ends, options.targets)
        changes, ends_text = changes_between(old, new), _describe_ends(ends)
    except RevisionError as error:
        return fail(_line(error), Exit.USAGE)
    except RecursionError:
        return fail("a schema or _meta is nested too deeply to be compared", Exit.USAGE)
    _report_errors(repository, ends, old, new)
    breaks = any(change.kind.breaking for change in changes)
    locations = {owner: (repository.path(file), line) for owner, (file, line) in new["places"].items()}
    if options.format == "json":
        data = [change.as_data() for change in changes]
        output.print_json({"revision": options.revision, "breaking": breaks, "changes": data})
    elif options.format == "github":
        _print_annotations(changes, locations, output)
    else:
        _print_text(changes, ends_text, output)
    if options.summary is not None:
        is_written = _write(options.summary, as_summary(changes, ends_text), appends=True)
        if not is_written:
            return Exit.USAGE
    return Exit.FAULTY if breaks else Exit.FINE


def _describe_ends(ends: _Ends) -> str:
    """Return the compared revisions, in words that follow "since"."""
    first, last = ends
    return first if last is None else f"{first}, up to {last}"


def _report_errors(
    repository: Repository, ends: _Ends, old: Mapping[str, Any], new: Mapping[str, Any]
) -> None:
    """Print the errors in the recipes of both sides."""
    for side, revision in zip((old, new), ends, strict=True):
        when = "" if revision is None else f" at {revision}"
        for file, line, message in side["faults"]:
            print_error(_line(f"not served{when}: {repository.path(file)}:{line}: {message}"))


def _line(message: object) -> str:
    """Return a message on one line, escaped because the recipes or git wrote a part of it."""
    return escape_invisible(str(message), one_line=True)


def _load_sides(
    repository: Repository, ends: _Ends, targets: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Load both sides, and render the new one for the examples on the old one."""
    sides: list[dict[str, Any]] = []
    for revision in ends:
        with (
            checkout(repository, revision, targets) as (folder, moved, locations),
            loading_from(repository, revision, targets),
        ):
            sides.append(ask_side(folder, moved, sides[0]["examples"] if sides else None, locations))
    old, new = sides
    return old, new


def _compare_texts(options: Namespace, repository: Repository, ends: _Ends, output: Output) -> int:
    """Print how the text of cases differs, word by word, or write it as a comment."""
    try:
        with needed_by("diff --text", "time_machine"):
            import time_machine  # noqa: F401 (the processes of both sides freeze their clocks with it)
    except ModuleNotFoundError as error:
        return fail(str(error), Exit.USAGE)
    print_error(
        f"renders the cases of {' and '.join(filter(None, ends))} too: the code of that revision runs"
    )
    old, new, repeated = compared_renderings(
        repository, ends, options.targets, options.variables, repeats=options.repeat
    )
    _report_errors(repository, ends, old, new)
    changes = list(text_changes(old, new, repeated))
    if options.comment is not None and not _write(options.comment, as_comment(changes, _describe_ends(ends))):
        return Exit.USAGE
    breaks = any(change.breaks for change in changes)
    if options.format == "json":
        data = [change.as_data() for change in changes]
        output.print_json({"revision": options.revision, "breaking": breaks, "changes": data})
    else:
        _print_words(changes, output)
        output.print_lines([summary_of(changes, _describe_ends(ends))])
    return Exit.FAULTY if breaks else Exit.FINE


def _print_words(changes: "Sequence[TextChange]", output: Output) -> None:
    """Print the changed lines of each case, with ``[-removed-]`` and ``{+added+}`` words."""
    from rich.text import Text

    console = console_on(output, output.width)
    for change in changes:
        console.print(Text(escape_invisible(str(change), one_line=True), "bold"), soft_wrap=True)
        for line in changed_words(change.old or "", change.new or ""):
            text = Text("    ")
            for sign, words in line:
                opening, closing = _WORDS[sign]
                text.append(f"{opening}{escape_invisible(words)}{closing}", _STYLES.get(sign, ""))
            console.print(text, soft_wrap=True)


def _write(path: str, text: str, *, appends: bool = False) -> bool:
    """Write a regular file, or append to it; if that fails, print why and return False."""
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
    """Print a line for each change with its differences below, and the number of changes."""
    from rich.text import Text

    console = console_on(output, output.width)
    for change in changes:
        description = f": {escape_invisible(str(change), one_line=True)}"
        console.print(Text.assemble((change.effect, _STYLES[change.effect]), description), soft_wrap=True)
        for line in change.diff:
            escaped = escape_invisible(f"    {line}")
            # Trailing blanks matter only in changed lines.
            text = Text(escaped if line[0] in "-+" else escaped.rstrip(), _STYLES.get(line[0], ""))
            console.print(text, soft_wrap=True)
    output.print_lines([count_changes(changes, revision)])


def _print_annotations(
    changes: Sequence[Difference], locations: Mapping[str, tuple[str, int]], output: Output
) -> None:
    """Print an annotation for each change, at its location if that still exists."""
    for change in changes:
        file, line = locations.get(change.owner, ("", 0))
        where = {"file": file, "line": line, "title": f"promptkit diff: {change.effect}"}
        level = "error" if change.kind.breaking else "notice"
        print_annotation(level, "\n".join([str(change), *change.diff]), output, where)
