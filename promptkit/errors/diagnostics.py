"""Diagnostics: problems in an author's code, with location and hint."""

from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct, field

from promptkit.errors.rules import Rule
from promptkit.errors.sources import span_of, span_of_part

if TYPE_CHECKING:
    import ast

#: Spaces that are safe to print, although `str.isprintable` rejects them.
_SPACES: Final = "\u00a0\u2002\u2003\u2009\u202f\u3000"


def printable(text: str) -> str:
    """Return *text* on one line, with control characters and unencodable characters escaped."""
    return "".join(
        c if c.isprintable() or c in _SPACES else c.encode("unicode_escape").decode() for c in text
    )


class Severity(Enum):
    """The severity of a diagnostic. A warning can be about code that the author intended."""

    ERROR = "error"
    WARNING = "warning"


class Location(Struct, frozen=True, order=True):
    """
    A location in an author's file.

    Args:
        file:
            The absolute path of the file. If the code does not come from a file, this is ``""``, which is
            shown as ``<string>``.

        line:
            The line, counted from 1; 0 means the whole file.

        column:
            The column of the first character, counted from 1; 0 means the whole line.

        end:
            The column after the last character.
    """

    file: str
    line: int = 0
    column: int = 0
    end: int = 0

    def __str__(self) -> str:
        # Such as recipes/review.py:12, relative to the current folder if the file is below that folder.
        path = Path(self.file or "<string>")
        with suppress(OSError, ValueError):  # the current folder does not exist, or the file is not below it
            folder = Path.cwd()
            path = path.relative_to(folder) if folder.name else path  # every file is below the root
        return f"{printable(str(path))}:{self.line}" if self.line else printable(str(path))

    def part(self, name: str) -> "Location":
        """
        Return the location of a part of the function that starts here.

        If there is no such part, return this location. *name* is the name of a parameter, ``"return"`` for
        the return annotation, or ``"def"`` for the function's own name.
        """
        span = span_of_part(self.file, self.line, name)
        return self if span is None else Location(self.file, *span)


#: A location, a node in the file's syntax tree, or a name to pass to `Location.part`.
LocationLike: TypeAlias = "Location | ast.expr | ast.stmt | str"


class Owner(Struct, frozen=True):
    """
    The prompt, resource, skill or file that a diagnostic is about.

    Args:
        subject:
            The kind and name of the owner, such as ``prompt 'review'``, or the name of a file. Each message
            starts with it.

        location:
            The location of its definition.
    """

    subject: str
    location: Location

    def diagnostic(
        self, rule: Rule, message: str, hint: str, location: "LocationLike | None" = None
    ) -> "Diagnostic":
        """
        Return a diagnostic about this owner. Its message consists of the subject and *message*.

        If no location is given, the diagnostic has the location of the owner.
        """
        return Diagnostic(rule, f"{self.subject}: {message}", hint, self._location(location), self)

    def _location(self, location: "LocationLike | None") -> Location:
        if isinstance(location, str):
            return self.location.part(location)
        if location is None or isinstance(location, Location):
            return location or self.location

        return Location(self.location.file, *span_of(self.location.file, location))


class Diagnostic(Struct, frozen=True):
    """
    One problem in an author's code.

    Args:
        rule:
            The rule that the code violates.

        message:
            One sentence that starts in lower case and has no full stop.

        hint:
            How to fix the problem.

        location:
            The location of the problem.

        owner:
            The prompt, resource, skill or file that the diagnostic is about; None if it is only about the
            location.
    """

    rule: Rule
    message: str
    hint: str
    location: Location
    owner: Owner | None = None

    @property
    def severity(self) -> Severity:
        """An error if something cannot be served or would always fail; otherwise a warning."""
        return Severity(self.rule.severity)

    @property
    def is_ignorable(self) -> bool:
        """Whether the diagnostic can be ignored, because it does not prevent serving."""
        return self.rule.is_ignorable

    def __str__(self) -> str:
        head = f"{self.location}: {self.severity.value} {self.rule.value}: {self.message}"
        return f"{head}\n    {self.hint}"

    def as_data(self) -> dict[str, Any]:
        """Return the diagnostic as JSON-compatible data."""
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
    The collected diagnostics of one prompt, resource, skill or file, from the compiler and from lints.

    Args:
        subject:
            The kind and name of the object, such as ``prompt 'review'``. Each message starts with it.

        location:
            The location of its definition.

        diagnostics:
            The diagnostics added so far.

        parameter_locations:
            The locations of parameters that are not declared in Python, keyed by parameter name.
    """

    subject: str
    location: Location
    diagnostics: list[Diagnostic] = field(default_factory=list)
    parameter_locations: Mapping[str, Location] = {}

    @property
    def owner(self) -> Owner:
        """The prompt, resource, skill or file that the diagnostics are about."""
        return Owner(self.subject, self.location)

    def add(self, rule: Rule, message: str, hint: str, location: "LocationLike | None" = None) -> None:
        """Add a diagnostic. The arguments are the same as for `Owner.diagnostic`."""
        if isinstance(location, str):
            location = self.parameter_locations.get(location, location)
        self.diagnostics.append(self.owner.diagnostic(rule, message, hint, location))

    def without_duplicates(self) -> list[Diagnostic]:
        """Return the diagnostics without those that repeat an earlier message at the same location."""
        first: dict[tuple[str, Location], Diagnostic] = {}
        for diagnostic in self.diagnostics:
            first.setdefault((diagnostic.message, diagnostic.location), diagnostic)
        return list(first.values())
