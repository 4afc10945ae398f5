"""``promptkit diff``: show what changed for clients since a git revision."""

import os
import re
from argparse import Namespace
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.calls import saved_calls
from promptkit.cli.diagnostics import fail, format_count, print_annotation, print_error
from promptkit.cli.diff_changes import (
    Changes,
    Difference,
    Line,
    TextChange,
    changed_words,
    changes_between,
    effect_of,
    find_uncomparable,
    text_changes,
)
from promptkit.cli.diff_sides import (
    Answer,
    Calls,
    ItemState,
    SentCall,
    answers_of_sides,
    build_answer,
    key_of,
)
from promptkit.cli.loading import open_named_server
from promptkit.cli.output import Output, make_console
from promptkit.cli.repository import Repository, RevisionError
from promptkit.errors.exceptions import LoadError
from promptkit.files.folder import Folder
from promptkit.files.reading import read_named_file
from promptkit.foreign.catalog import catalog_of
from promptkit.foreign.listing import SERVER_LOCATION, parse_listing
from promptkit.fragments.invisible import escape_invisible
from promptkit.fragments.markdown import code_block
from promptkit.fragments.text import truncate
from promptkit.server.lookup import name_of

if TYPE_CHECKING:
    from rich.text import Text

#: The revision to compare with by default.
_HEAD: Final = "HEAD"

#: The brackets around unchanged, removed and added words.
_BRACKETS: Final = {" ": ("", ""), "-": ("[-", "-]"), "+": ("{+", "+}")}

_STYLES: Final = {"breaking": "bold red", "harmless": "green", "-": "red", "+": "green", "@": "cyan"}

#: Maximum number of characters in the summary, in one change and in one title, to keep the summary readable.
_MAX_CHARACTERS: Final = 60_000
_MAX_CHANGE_CHARACTERS: Final = 8_000
_MAX_TITLE: Final = 500

#: Maximum number of prompts that the summary lists as not compared.
_MAX_NAMED: Final = 20

#: Maximum size of a file with a server's answer, in bytes.
_MAX_FILE_BYTES: Final = 64 * 1024 * 1024

#: The hint for prompts and resources that were not compared.
_ADD_CASE: Final = "add a case to compare its text"


def run(options: Namespace, output: Output) -> int:
    """
    Print the changes since a revision, or between two revisions, as text, JSON or GitHub annotations.

    Raises:
        LoadError: If the recipes in a revision cannot be loaded.
    """
    if not (options.text or options.servers) and (options.repeat or options.variables):
        options.error("--repeat and --env require --text")
    if options.servers:
        return _run_on_servers(options, output)
    try:
        repository = Repository()
        ends = repository.resolve_range(options.revision)
        if options.text:
            revisions = " and ".join(filter(None, ends))
            print_error(f"rendering the cases at {revisions}: this runs the code that was committed there")
        sides = answers_of_sides(
            repository,
            ends,
            options.targets,
            by_cases=options.text,
            repeats=options.repeat,
            variables=options.variables,
        )
    except RevisionError as error:
        return fail(_escape_line(error), Exit.USAGE)
    for (answer, *_), revision in zip(sides, ends, strict=True):
        when = "" if revision is None else f" at {revision}"
        for file, line, message in answer.errors:
            print_error(_escape_line(f"not served{when}: {repository.relative_path(file)}:{line}: {message}"))
    since = ends[0] if ends[1] is None else f"{ends[0]}, up to {ends[1]}"
    return _report(options, output, sides, since, repository.relative_path)


def _run_on_servers(options: Namespace, output: Output) -> int:
    """Print the changes between two servers, or between a file and a server."""
    if options.repeat:
        options.error("--repeat cannot be combined with --server")
    if len(options.servers) == 1 and options.revision == _HEAD:
        options.error("name a second --server, or a file that promptkit list --json --texts wrote")
    if len(options.servers) > 2 or (options.servers[1:] and options.revision != _HEAD):
        options.error("too many sides to compare: name two servers, or one file and one server")
    sides = _answers_of_servers(options)
    for answer in (*sides[0], *sides[1]):
        for *_, message in answer.errors:
            print_error(_escape_line(message))
    since = options.servers[0] if options.servers[1:] else options.revision
    return _report(options, output, sides, since, str)


class _RecordedTexts(Struct):
    """The text of each case in a file with a server's answer, keyed by prompt and then by case."""

    texts: dict[str, dict[str, str]] = {}


def _answers_of_servers(options: Namespace) -> tuple[list[Answer], list[Answer]]:
    """
    Return the answers of the old and of the new side, for the cases in ``cases.toml``.

    Args:
        options:
            The options, which name either two servers, or one server and the file of the old side.

    Raises:
        LoadError: If a server cannot be reached, or the file cannot be read.
    """
    has_two = len(options.servers) > 1
    with open_named_server(options, len(options.servers) - 1) as new:
        calls: Calls = {
            key_of(item): {call.case_name: SentCall(call.sent, "case") for call in saved_calls(item)}
            for item in new.catalog.declared
        }
        new_answer = _build_server_answer(new.catalog, calls)
    if has_two:
        with open_named_server(options, 0) as old:
            return [_build_server_answer(old.catalog, calls)], [new_answer]
    for key, state in new_answer.items.items():
        if key.startswith("skill "):  # the file contains only digests
            state.files = {path: (digest, None) for path, (digest, _) in state.files.items()}
    return [_read_answer(options.revision)], [new_answer]


def _build_server_answer(catalog: Catalog, calls: Calls) -> Answer:
    answer = build_answer(catalog, calls)
    answer.calls = {key: cases for key, cases in calls.items() if cases}
    answer.outcomes = {key: texts for key, texts in answer.outcomes.items() if texts}
    return answer


def _read_answer(path: str) -> Answer:
    """Return the answer of a server, as recorded in a file."""
    try:
        data: Any = msgspec.json.decode(read_named_file(path, _MAX_FILE_BYTES))
        texts = msgspec.convert(data, _RecordedTexts).texts
        listing = parse_listing(data)
    except OSError as error:
        raise LoadError(path, error.strerror or str(error)) from None
    except (ValueError, RecursionError) as error:
        reason = f"it was not written by promptkit list --json --texts: {error}"
        raise LoadError(path, reason) from None
    catalog = catalog_of(listing)
    answer = _build_server_answer(catalog, {})
    for item in catalog.declared:
        if cases := texts.get(name_of(item)):
            answer.outcomes[key_of(item)] = cases
            answer.calls[key_of(item)] = {name: SentCall("", "case") for name in cases}
    for skill in listing.skills:
        folder = skill.uri.rpartition("/")[0]
        files = skill.resources if isinstance(skill.resources, list) else []
        digests = {
            file.uri.removeprefix(f"{folder}/"): (file.digest.removeprefix("sha256:"), None) for file in files
        }
        state = ItemState((SERVER_LOCATION.file, 0), {}, [], {}, dict(digests))
        answer.items[f"skill {skill.uri!r}"] = state
    return answer


def _report(
    options: Namespace,
    output: Output,
    sides: tuple[list[Answer], list[Answer]],
    since: str,
    path_of: Callable[[str], str],
) -> int:
    """Print the changes between two sides, append them to the summary file, and return the exit code."""
    old, new = sides
    changes: Changes
    skipped = find_uncomparable(old[0], new[0])
    if options.text:
        changes = text_changes(old, new)
        summary = summarize_cases(changes, since, skipped)
        heading, command = "## Rendered text", "promptkit diff --text"
    else:
        changes = changes_between(old[0], new[0])
        summary = summarize_changes(changes, since, skipped)
        heading, command = "## Prompts", "promptkit diff"
    breaks = any(change.breaking for change in changes)
    if options.format == "json":
        data = [change.as_data() for change in changes]
        result = {"revision": options.revision, "breaking": breaks, "changes": data, "not_compared": skipped}
        output.print_json(result)
    elif options.format == "github":
        _print_annotations(changes, path_of, new[0], output)
        where = {"title": "promptkit diff"}
        for owner in skipped:
            print_annotation("notice", f"{owner} was not compared: {_ADD_CASE}", output, where)
    else:
        _print_text(changes, output)
        lines = [f"not compared: {owner}: {_ADD_CASE}" for owner in skipped]
        output.print_lines([summary, *map(_escape_line, lines)])
    markdown = format_as_markdown(heading, summary, changes, command, skipped)
    if options.summary is not None and not _append(options.summary, markdown):
        return Exit.USAGE
    return Exit.FAILED if breaks else Exit.OK


def _escape_line(message: object) -> str:
    """Return a message on one line, with escapes, because parts of it come from the recipes or from git."""
    return escape_invisible(str(message), one_line=True)


def _append(path: str, text: str) -> bool:
    """Append *text* to a regular file. If that fails, print the reason and return False."""
    folder, name = Folder.named(Path(path).parent), Path(path).name
    try:
        with folder.open_for_update(name) as file:
            file.seek(0, os.SEEK_END)
            file.write(text.encode())
    except OSError as error:
        print_error(f"cannot write to {path!r}: {error.strerror}")
        return False
    return True


def _print_text(changes: Changes, output: Output) -> None:
    """Print each change on a line, with the differing lines or words below it."""
    from rich.text import Text

    console = make_console(output, output.width)
    for change in changes:
        if isinstance(change, TextChange):
            head = Text(_escape_line(change), "bold")
            lines = map(_style_words, changed_words(change.before or "", change.after or ""))
        else:
            effect = effect_of(change)
            head = Text.assemble((effect, _STYLES[effect]), f": {_escape_line(change)}")
            lines = map(_style_line, change.diff)
        for text in (head, *lines):
            console.print(text, soft_wrap=True)


def _style_line(line: str) -> "Text":
    """Return a line of a diff, in the colour for its sign."""
    from rich.text import Text

    escaped = escape_invisible(f"    {line}")
    # Trailing whitespace matters only in changed lines.
    return Text(escaped if line[0] in "-+" else escaped.rstrip(), _STYLES.get(line[0], ""))


def _style_words(line: Line) -> "Text":
    """Return a line in which words are marked as ``[-removed-]`` and ``{+added+}``."""
    from rich.text import Text

    text = Text("    ")
    for sign, words in line:
        opening, closing = _BRACKETS[sign]
        text.append(f"{opening}{escape_invisible(words)}{closing}", _STYLES.get(sign, ""))
    return text


def _print_annotations(
    changes: Changes,
    path_of: Callable[[str], str],
    new: Answer,
    output: Output,
) -> None:
    """Print an annotation for each change, at the location of the changed item if the item still exists."""
    for change in changes:
        file, line = new.items[change.owner].location if change.owner in new.items else ("", 0)
        where = {"file": path_of(file), "line": line, "title": f"promptkit diff: {effect_of(change)}"}
        level = "error" if change.breaking else "notice"
        print_annotation(level, "\n".join([str(change), *change.diff]), output, where)


def format_as_markdown(
    heading: str, summary: str, changes: Changes, command: str, skipped: Sequence[str] = ()
) -> str:
    """
    Return changes as Markdown for the summary of a workflow.

    All prompt text is formatted as code, so that it contains no links, images, mentions or HTML.

    Args:
        heading:
            The Markdown to start with.

        summary:
            A sentence that summarizes the changes.

        changes:
            The changes.

        command:
            The command that shows all changes.

        skipped:
            The prompts and resources that were not compared.
    """
    parts = [heading, _code_span(summary)]
    if skipped:
        names = ", ".join(map(_code_span, skipped[:_MAX_NAMED]))
        more = f", and {len(skipped) - _MAX_NAMED} more" if len(skipped) > _MAX_NAMED else ""
        parts.append(f"Not compared: {names}{more}")
    remaining = _MAX_CHARACTERS - sum(map(len, parts))
    for position, change in enumerate(changes):
        part = _format_change(change)
        remaining -= len(part) + 2
        if remaining < 0:
            parts.append(f"{len(changes) - position} more changes are not shown: run `{command}` to see all.")
            break
        parts.append(part)
    return "\n\n".join(parts) + "\n"


def _format_change(change: Difference | TextChange) -> str:
    line = f"- **{effect_of(change)}**: {_code_span(str(change))}"
    if not (lines := change.diff):
        return line
    block = str(code_block(truncate(escape_invisible("\n".join(lines)), _MAX_CHANGE_CHARACTERS), "diff"))
    return f"{line}\n\n{indent(block, '  ', lambda _: True)}"  # blank lines belong to the item as well


def _code_span(text: str) -> str:
    """Return *text* as a Markdown code span on one line, with delimiters that do not occur in the text."""
    line = escape_invisible(text[: _MAX_TITLE + 1], one_line=True)
    line = f"{line[:_MAX_TITLE]}…" if len(line) > _MAX_TITLE else line
    ticks = "`" * (max(map(len, re.findall("`+", line)), default=0) + 1)
    return f"{ticks} {line} {ticks}"


def summarize_changes(changes: Sequence[Difference], revision: str, skipped: Collection[str] = ()) -> str:
    """Return a summary with the numbers of breaking and of harmless changes."""
    if not changes and skipped:
        return f"no changes since {revision}, but {format_count(len(skipped), 'item')} could not be compared"
    if not changes:
        return f"nothing that clients see has changed since {revision}"
    effects = Counter(map(effect_of, changes))
    numbers = [format_count(effects[effect], f"{effect} change") for effect in sorted(effects)]
    return f"{', '.join(numbers)} since {revision}"


def summarize_cases(changes: Sequence[TextChange], revision: str, skipped: Collection[str] = ()) -> str:
    """Return a summary with the number of changed renderings, not counting those that differ each time."""
    changed = [change for change in changes if not change.is_unsteady]
    if not changed and skipped:
        uncompared = format_count(len(skipped), "item")
        return f"no changed text since {revision}, but {uncompared} could not be compared"
    if not changed:
        return f"all text is the same as at {revision}"
    fails = sum(change.breaking for change in changed)
    failing = f", of which {fails} fail" if fails else ""
    return f"{format_count(len(changed), 'rendering')} changed since {revision}{failing}"
