"""
Functions that print diagnostics as text, or as annotations for GitHub.

On a terminal, the text is in colour, and includes source lines. Elsewhere, each diagnostic is printed on two
lines: the location with the message, in a form that ``grep`` and editors can parse, and the hint.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

from promptkit.cli.output import Output, escape_commands, make_console, width_of
from promptkit.errors.diagnostics import Diagnostic, Location, Severity
from promptkit.errors.sources import read_line
from promptkit.fragments.invisible import escape_invisible
from promptkit.standard_error import say, stderr_stream

if TYPE_CHECKING:
    from rich.text import Text

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}


def print_error(text: str) -> None:
    """Print one line on standard error, with control characters and workflow commands escaped."""
    say(escape_commands(escape_invisible(text)))


def fail(text: str, code: int) -> int:
    """Print *text*, the reason why a command fails, and return *code*, its exit code."""
    print_error(text)
    return code


def format_count(number: int, noun: str) -> str:
    """Return a number with its noun, such as ``2 prompts``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def print_text(text: str) -> None:
    """Print one or more lines on standard error, with control characters and workflow commands escaped."""
    with suppress(Exception):  # a recipe can replace the stream, and its reader can disappear
        print(escape_commands(escape_invisible(text)), end="", file=stderr_stream(), flush=True)


def report_diagnostics(diagnostics: Iterable[Diagnostic]) -> None:
    """Print *diagnostics* on standard error."""
    with suppress(Exception):  # a recipe can replace the stream
        print_diagnostics(diagnostics, stderr_stream())


def print_diagnostics(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """Print *diagnostics*, with source lines and colour if *stream* is a terminal."""
    diagnostics = tuple(diagnostics)
    if not diagnostics:
        return
    if stream.isatty() or os.environ.get("FORCE_COLOR"):
        _print_with_source(diagnostics, stream)
    else:
        for diagnostic in diagnostics:
            head, hint = _format_lines(diagnostic)
            print(escape_commands(f"{''.join(head)}\n{hint}"), file=stream)


def _format_lines(diagnostic: Diagnostic) -> tuple[tuple[str, str, str, str], str]:
    """Return the parts of a diagnostic's first line; and the second line, which contains the hint."""
    severity, rule = diagnostic.severity.value, diagnostic.rule.value
    location, message, hint = (
        escape_invisible(text, one_line=True)
        for text in (str(diagnostic.location), diagnostic.message, diagnostic.hint)
    )
    return (f"{location}: ", severity, f" {rule}", f": {message}"), f"    {hint}"


def _print_with_source(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    from rich.text import Text

    console = make_console(stream, width_of(stream))
    for diagnostic in diagnostics:
        (location, severity, rule, message), hint = _format_lines(diagnostic)
        style = _STYLES[diagnostic.severity]
        head = Text.assemble((location, "bold"), (severity, style), (rule, "dim"), message)
        for line in (head, *_excerpt(diagnostic, console.width), Text(hint)):
            escaped = escape_commands(line.plain)
            console.print(line if escaped == line.plain else Text(escaped), soft_wrap=True)


def _excerpt(diagnostic: Diagnostic, width: int) -> Iterator["Text"]:
    """Yield the source line and carets below it, if the source can be read."""
    from rich.cells import cell_len
    from rich.text import Text

    # A diagnostic about a whole function is shown at its name, below the decorators.
    location = diagnostic.location if diagnostic.location.column else diagnostic.location.part("def")
    gutter = f"{location.line:>5} | "
    source, start, end = _find_source_window(location, width - len(gutter))
    if source:
        line = Text.assemble((gutter, "blue"), source)
        line.truncate(width, overflow="ellipsis")
        yield line
        # Some characters are two columns wide.
        indent, carets = cell_len(source[:start]), max(cell_len(source[start:end]), 1)
        style = _STYLES[diagnostic.severity]
        line = Text.assemble((f"{'| ':>{len(gutter)}}", "blue"), " " * indent, ("^" * carets, style))
        line.truncate(width, overflow="crop")
        yield line


def _find_source_window(location: Location, width: int) -> tuple[str, int, int]:
    """
    Return the source line at *location*, and the start and end of the range to mark in it.

    A line that is longer than *width* is truncated around this range.
    """
    from rich.cells import cell_len

    # Each invisible character becomes one space, so that the columns stay the same.
    line = read_line(location.file, location.line)
    source = "".join(c if c.isprintable() else " " for c in line).rstrip()
    start, end = location.column - 1, location.end - 1
    if start < 0:
        start, end = len(source) - len(source.lstrip()), len(source)
    if cell_len(source[:end]) <= width:
        return source, start, end
    cut = max(start - width // 3, 0)
    return f"…{source[cut + 1 :]}", start - cut, end - cut


def print_annotations(diagnostics: Iterable[Diagnostic], output: Output) -> None:
    """
    Print each of *diagnostics* as an annotation, which is a workflow command of GitHub Actions.

    See Also:
        https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    for diagnostic in diagnostics:
        location, title = diagnostic.location, f"promptkit {diagnostic.rule.value}"
        columns = {"col": location.column, "endColumn": location.end - 1} if location.column else {}
        where = {"file": _relative_path(location), "line": location.line, **columns, "title": title}
        print_annotation(diagnostic.severity.value, f"{diagnostic.message}\n{diagnostic.hint}", output, where)


def print_annotation(
    level: str, text: str, output: Output, properties: Mapping[str, Any] | None = None
) -> None:
    """
    Print one annotation as a workflow command.

    Args:
        level:
            ``error``, ``warning`` or ``notice``.

        text:
            The message.

        output:
            The output to print to.

        properties:
            The file, line, columns and title of the annotation; empty values are omitted. Pass None if the
            message does not belong to a line.
    """
    known = {name: str(value) for name, value in (properties or {"title": "promptkit"}).items() if value}
    pairs = ",".join(f"{name}={_escape(value, ':,')}" for name, value in known.items())
    output.print_command(f"::{level} {pairs}::{_escape(escape_invisible(text))}")


def _relative_path(location: Location) -> str:
    """
    Return the path of a location's file, relative to the repository or the current folder.

    If the file is in neither of them, return its path unchanged.
    """
    for root in filter(None, (os.environ.get("GITHUB_WORKSPACE"), os.curdir)):
        with suppress(OSError, ValueError):  # the file is not in this folder
            return Path(location.file).relative_to(Path(root).absolute()).as_posix()
    return location.file


def _escape(text: str, extra: str = "") -> str:
    """Escape the characters that are special in every part of a workflow command, and those in *extra*."""
    for character in f"%\r\n{extra}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
