"""
How diagnostics are printed: two lines each, and on a terminal in colour, above their source.

What is piped has no source lines, so that one fault is one line that ``grep`` finds and editors
can jump to, and one line of advice.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TextIO

from promptkit.cli.output import width_of
from promptkit.errors.diagnostics import Diagnostic, Location, Severity
from promptkit.errors.standard_error import say, stderr_stream
from promptkit.fragments.invisible import escape_invisible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

__all__ = ["complain_of", "console_on", "print_diagnostics", "print_error", "print_text"]

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}


def print_error(text: str) -> None:
    """
    Say on standard error what went wrong; a terminal obeys nothing in it.
    """
    say(escape_invisible(text))


def print_text(text: str) -> None:
    """
    Print lines on standard error; a terminal obeys nothing in them.
    """
    with suppress(Exception):  # an author may have replaced it, and nobody may be reading
        print(escape_invisible(text), end="", file=stderr_stream(), flush=True)


def complain_of(diagnostics: Iterable[Diagnostic]) -> None:
    """
    Print *diagnostics* on standard error.
    """
    with suppress(Exception):  # an author may have replaced it
        print_diagnostics(diagnostics, stderr_stream())


def print_diagnostics(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """
    Print *diagnostics* on *stream*, for whoever reads there.
    """
    diagnostics = tuple(diagnostics)
    if not diagnostics:
        return
    if stream.isatty() or os.environ.get("FORCE_COLOR"):
        _print_for_people(diagnostics, stream)
    else:
        for diagnostic in diagnostics:
            head, remedy = _lines(diagnostic)
            print(f"{''.join(head)}\n{remedy}", file=stream)


def console_on(stream: TextIO, width: int | None) -> "Console":
    """
    Return what prints on *stream* in colour, unless that is unwanted.

    ``NO_COLOR`` and ``FORCE_COLOR`` do what https://no-color.org and https://force-color.org say.
    """
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))  # rich leaves out colours then, but neither bold nor dim
    return Console(file=stream, color_system=None if plain else "auto", highlight=False, width=width)


def _lines(diagnostic: Diagnostic) -> tuple[tuple[str, str, str, str], str]:
    """
    Return the parts of the line that says what is wrong, and the line that says what to do.
    """
    severity, rule = diagnostic.severity.value, diagnostic.rule.value
    place, message, remedy = (
        escape_invisible(text, one_line=True)
        for text in (str(diagnostic.location), diagnostic.message, diagnostic.remedy)
    )
    return (f"{place}: ", severity, f" {rule}", f": {message}"), f"    {remedy}"


def _print_for_people(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """
    Print *diagnostics* with the lines that they are about, in colour unless that is unwanted.
    """
    from rich.text import Text

    console = console_on(stream, width_of(stream))
    for diagnostic in diagnostics:
        (place, severity, rule, message), remedy = _lines(diagnostic)
        style = _STYLES[diagnostic.severity]
        head = Text.assemble((place, "bold"), (severity, style), (rule, "dim"), message)
        for line in (head, *_excerpt(diagnostic, console.width), Text(remedy)):
            console.print(line, soft_wrap=True)


def _excerpt(diagnostic: Diagnostic, width: int) -> Iterator["Text"]:
    """
    Return the line that is at fault, and below it carets; nothing if it cannot be read.
    """
    from rich.cells import cell_len
    from rich.text import Text

    # Of a function as a whole its name is shown, and no decorator.
    place = diagnostic.location if diagnostic.location.column else diagnostic.location.part("def")
    gutter = f"{place.line:>5} | "
    source, begin, end = _window(place, width - len(gutter))
    if source:
        line = Text.assemble((gutter, "blue"), source)
        line.truncate(width, overflow="ellipsis")
        yield line
        # Some characters are two columns wide.
        indent, carets = cell_len(source[:begin]), max(cell_len(source[begin:end]), 1)
        style = _STYLES[diagnostic.severity]
        line = Text.assemble((f"{'| ':>{len(gutter)}}", "blue"), " " * indent, ("^" * carets, style))
        line.truncate(width, overflow="crop")
        yield line


def _window(place: Location, width: int) -> tuple[str, int, int]:
    """
    Return the line at *place*, and from where to where to mark it; of a long line what is around that.
    """
    from rich.cells import cell_len

    from promptkit.errors.sources import line_of

    # Each invisible character becomes one space, so that columns stay what they are.
    line = line_of(place.file, place.line)
    source = "".join(c if c.isprintable() else " " for c in line).rstrip()
    begin, end = place.column - 1, place.end - 1
    if begin < 0:
        begin, end = len(source) - len(source.lstrip()), len(source)
    if cell_len(source[:end]) <= width:
        return source, begin, end
    cut = max(begin - width // 3, 0)
    return f"…{source[cut + 1 :]}", begin - cut, end - cut
