"""``promptkit diff``: show what clients would see differently from a git revision."""

from argparse import Namespace
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final, TextIO, TypeAlias

from promptkit.cli import Exit
from promptkit.cli.diagnostics import console_on, counted, fail, print_annotation, print_error
from promptkit.cli.differences.changes import Difference, changes_between
from promptkit.cli.differences.checkouts import loading_from, written
from promptkit.cli.differences.revisions import Repository, RevisionError
from promptkit.cli.differences.sides import ask_side
from promptkit.cli.output import Output
from promptkit.errors.distribution import needed_by
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.markdown import code_block

if TYPE_CHECKING:
    from promptkit.cli.differences.texts import TextChange

__all__ = ["run"]

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
    if wants_texts and (options.format != "text" or options.summary is not None):
        options.refuse("--text has no other format, and no summary: --comment writes Markdown")
    if not wants_texts and (options.repeat or options.variables):
        options.refuse("--repeat and --env are for --text")
    try:
        repository = Repository()
        ends = repository.ends(options.revision)
        if wants_texts:
            return _compare_texts(options, repository, ends, output)
        old, new = _sides(repository, ends, options.targets)
    except RevisionError as error:
        return fail(str(error), Exit.USAGE)
    _report_faults(repository, ends, old, new)
    changes, named = changes_between(old, new), _named(ends)
    breaks = any(change.kind.breaking for change in changes)
    places = {owner: (repository.path(file), line) for owner, (file, line) in new["places"].items()}
    if options.format == "json":
        data = [change.as_data() for change in changes]
        output.print_json({"revision": options.revision, "breaking": breaks, "changes": data})
    elif options.format == "github":
        _print_annotations(changes, places, output)
    else:
        _print_text(changes, named, output)
    if options.summary is not None and not _write_summary(options.summary, _as_markdown(changes, named)):
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
            print_error(f"not served{when}: {repository.path(file)}:{line}: {message}")


def _sides(
    repository: Repository, ends: _Ends, targets: Sequence[str]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """What was served, and what is served since, for the examples that there were."""
    found: list[dict[str, Any]] = []
    for revision in ends:
        with (
            written(repository, revision, targets) as (folder, moved, places),
            loading_from(repository, revision, targets),
        ):
            found.append(ask_side(folder, moved, found[0]["examples"] if found else None, places))
    old, new = found
    return old, new


def _compare_texts(options: Namespace, repository: Repository, ends: _Ends, output: Output) -> int:
    """Print what cases say differently, word by word, or write it as a comment."""
    from promptkit.cli.differences.renderings import compared_renderings
    from promptkit.cli.differences.texts import as_comment, summary_of, text_changes

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
    if options.comment is not None:
        try:
            Path(options.comment).write_text(as_comment(changes, _named(ends)), encoding="utf-8")
        except OSError as error:
            return fail(f"cannot write to {options.comment!r}: {error.strerror}", Exit.USAGE)
    _print_words(changes, output)
    output.print_lines([summary_of(changes, _named(ends))])
    return Exit.FAULTY if any(change.breaks for change in changes) else Exit.FINE


def _print_words(changes: "Sequence[TextChange]", output: Output) -> None:
    """Print the lines that differ of each case: what was in ``[-...-]``, what is in ``{+...+}``."""
    from rich.text import Text

    from promptkit.cli.differences.texts import changed_words

    console = console_on(output, output.width)
    for change in changes:
        console.print(Text(escape_invisible(str(change), one_line=True), "bold"), soft_wrap=True)
        for line in changed_words(change.old or "", change.new or ""):
            shown = Text("    ")
            for sign, words in line:
                opening, closing = _WORDS[sign]
                shown.append(f"{opening}{escape_invisible(words)}{closing}", _STYLES.get(sign, ""))
            console.print(shown, soft_wrap=True)


def _write_summary(place: str, text: str) -> bool:
    """Append the summary to its file, and tell whether that could be done."""
    try:
        with open(place, "a", encoding="utf-8") as file:  # noqa: PTH123 (it may be a device)
            file.write(text)
    except OSError as error:
        print_error(f"cannot write to {place!r}: {error.strerror}")
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
    output.print_lines([_summary(changes, revision)])


def _print_annotations(
    changes: Sequence[Difference], places: Mapping[str, tuple[str, int]], stream: TextIO
) -> None:
    """Print an annotation for each change, beside what it is about if that still exists."""
    for change in changes:
        file, line = places.get(change.owner, ("", 0))
        where = {"file": file, "line": line, "title": f"promptkit diff: {change.effect}"}
        level = "error" if change.kind.breaking else "notice"
        print_annotation(level, "\n".join([str(change), *change.diff]), stream, where)


def _as_markdown(changes: Sequence[Difference], revision: str) -> str:
    """The changes as a page of Markdown, for the summary of a job."""
    parts = ["## Prompts", _summary(changes, revision)]
    for change in changes:
        parts.append(f"- **{change.effect}**: {_inline(str(change))}")
        if change.diff:
            block = str(code_block("\n".join(change.diff), "diff"))
            parts.append(indent(block, "  ", lambda _: True))  # blank lines, too, belong to the item
    return escape_invisible("\n\n".join(parts)) + "\n"


def _summary(changes: Sequence[Difference], revision: str) -> str:
    if not changes:
        return f"nothing that clients see has changed since {revision}"
    effects = Counter(change.effect for change in changes)
    shown = [counted(effects[one], f"{one} change") for one in ("breaking", "harmless") if effects[one]]
    return f"{', '.join(shown)} since {revision}"


def _inline(text: str) -> str:
    """*text* on one line, in which nothing is a mark of Markdown or HTML."""
    return "".join(f"\\{char}" if char in "\\`*_[]<>|#" else char for char in " ".join(text.split()))
