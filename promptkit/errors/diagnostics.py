"""Diagnostics: what is wrong with an author's code, where, and what to do about it."""

from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from promptkit.errors.rules import IGNORABLE, Rule
from promptkit.errors.sources import span_of, span_of_part

if TYPE_CHECKING:
    import ast

#: Spaces that are safe to print, although `str.isprintable` says no.
_SPACES: Final = "\u00a0\u2002\u2003\u2009\u202f\u3000"


def printable(text: str) -> str:
    """
    Return *text* on one line. Control characters, and those that cannot be encoded, are escaped.
    """
    return "".join(
        c if c.isprintable() or c in _SPACES else c.encode("unicode_escape").decode() for c in text
    )


class Severity(Enum):
    """
    How serious a diagnostic is. With a warning, the prompt or recipe may be what its author means.
    """

    ERROR = "error"
    WARNING = "warning"


class Location(Struct, frozen=True, order=True):
    """
    A line of an author's file.

    Args:
        file:
            The file's absolute path, ``""`` if the code has none; it is shown as ``<string>`` then.

        line:
            Counts from 1; 0 is the whole file.

        column:
            The first character, counted from 1; 0 is the whole line.

        end:
            The column after the last character.
    """

    file: str
    line: int = 0
    column: int = 0
    end: int = 0

    def __str__(self) -> str:
        # As in recipes/review.py:12, relative to the current folder if the file is below it.
        path = Path(self.file or "<string>")
        with suppress(OSError, ValueError):  # the current folder is gone, or the file is not below it
            here = Path.cwd()
            path = path.relative_to(here) if here.name else path  # everything is below the root
        return f"{printable(str(path))}:{self.line}" if self.line else printable(str(path))

    def part(self, name: str) -> "Location":
        """
        Return the location of a part of the function that begins here, or this location if not found.

        *name* is a parameter, ``"return"`` for the return annotation, or ``"def"`` for the name.
        """
        span = span_of_part(self.file, self.line, name)
        return self if span is None else Location(self.file, *span)


class Diagnostic(Struct, frozen=True):
    """
    One fault in an author's code.

    Args:
        rule:
            The kind of fault.

        message:
            What is wrong: one sentence that starts in lower case and has no full stop.

        hint:
            What to do about it.

        location:
            Where it is.
    """

    rule: Rule
    message: str
    hint: str
    location: Location

    @property
    def severity(self) -> Severity:
        """
        An error if something cannot be served, or would fail whenever it is; else a warning.
        """
        return Severity(self.rule.severity)

    @property
    def is_ignorable(self) -> bool:
        """
        Whether it keeps nothing from being served.
        """
        return self.rule in IGNORABLE

    def __str__(self) -> str:
        head = f"{self.location}: {self.severity.value} {self.rule.value}: {self.message}"
        return f"{head}\n    {self.hint}"

    def as_data(self) -> dict[str, Any]:
        """
        Return the diagnostic as JSON-compatible data.
        """
        return {
            "code": self.rule.value,
            "rule": self.rule.name.lower().replace("_", "-"),
            "severity": self.severity.value,
            "message": self.message,
            "hint": self.hint,
            "file": self.location.file.encode(errors="backslashreplace").decode(),
            "line": self.location.line,
            "column": self.location.column,
            "end_column": self.location.end,
        }


class Report(Struct, frozen=True):
    """
    Collects the diagnostics of one function from all stages of the compiler.

    Args:
        subject:
            What is compiled. Each message begins with it: ``prompt 'review'``.

        location:
            Where it is defined.

        found:
            The diagnostics so far.
    """

    subject: str
    location: Location
    found: list[Diagnostic] = field(default_factory=list)

    def add(
        self,
        rule: Rule,
        message: str,
        hint: str,
        place: "Location | ast.expr | ast.stmt | str | None" = None,
    ) -> None:
        """
        Add a diagnostic; *message* follows the subject.

        *place* is a location, a node of the file's syntax, or a name for `Location.part`; left out, it is the
        subject's location.
        """
        self.found.append(Diagnostic(rule, f"{self.subject}: {message}", hint, self._location(place)))

    def _location(self, place: "Location | ast.expr | ast.stmt | str | None") -> Location:
        if isinstance(place, str):
            return self.location.part(place)
        if place is None or isinstance(place, Location):
            return place or self.location

        return Location(self.location.file, *span_of(self.location.file, place))

    def without_duplicates(self) -> list[Diagnostic]:
        """
        Return what was found, without repetitions of a message for the same place.
        """
        first: dict[tuple[str, Location], Diagnostic] = {}
        for one in self.found:
            first.setdefault((one.message, one.location), one)
        return list(first.values())
