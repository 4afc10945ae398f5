"""
How diagnostics are printed: two lines each, and on a terminal in colour, above their source.

What is piped has no source lines, so that one fault is one line that ``grep`` finds and editors
can jump to, and one line of advice.
"""

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, TextIO

from promptkit.diagnostics import Diagnostic, Location, Severity

if TYPE_CHECKING:
    from rich.text import Text

__all__ = ["print_diagnostics"]

_STYLES: Final = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow"}


def print_diagnostics(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """
    Print *diagnostics* on *stream*, for whoever reads there.

    ``NO_COLOR`` and ``FORCE_COLOR`` do what https://no-color.org and https://force-color.org say.
    """
    diagnostics = tuple(diagnostics)
    if not diagnostics:
        return
    if stream.isatty() or os.environ.get("FORCE_COLOR"):
        _print_for_people(diagnostics, stream)
    else:
        for diagnostic in diagnostics:
            print(diagnostic, file=stream)


def _print_for_people(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """
    Print *diagnostics* with the lines that they are about, in colour unless that is unwanted.
    """
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR"))
    console = Console(file=stream, color_system=None if plain else "auto", highlight=False)
    for diagnostic in diagnostics:
        for line in (_head(diagnostic), *_excerpt(diagnostic, console.width)):
            console.print(line, soft_wrap=True)
        console.print(f"    {diagnostic.remedy}", markup=False, emoji=False, soft_wrap=True)


def _head(diagnostic: Diagnostic) -> "Text":
    """
    Return where it is and what is wrong.
    """
    from rich.text import Text

    severity = diagnostic.severity
    return Text.assemble(
        (f"{diagnostic.location}: ", "bold"),
        (severity.value, _STYLES[severity]),
        (f" {diagnostic.rule.value}", "dim"),
        f": {diagnostic.message}",
    )


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

    from promptkit.sources import line_of

    source = "".join(c if c.isprintable() else " " for c in line_of(place.file, place.line)).rstrip()
    begin, end = place.column - 1, place.end - 1
    if begin < 0:
        begin, end = len(source) - len(source.lstrip()), len(source)
    if cell_len(source[:end]) <= width:
        return source, begin, end
    cut = max(begin - width // 3, 0)
    return f"…{source[cut + 1 :]}", begin - cut, end - cut
