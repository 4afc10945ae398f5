"""Diagnostics: what is wrong with an author's code, as data with an address and a remedy."""

from enum import Enum, unique
from pathlib import Path
from typing import Any, Final

import attrs

__all__ = ["Diagnostic", "Location", "Report", "Rule", "Severity"]


class Severity(Enum):
    """
    Whether a prompt can be served in spite of it.
    """

    ERROR = "error"
    WARNING = "warning"


@unique
class Rule(Enum):
    """
    What can be wrong, each with a code that never changes its meaning.

    ``PK1xx`` concern loading, ``PK2xx`` a prompt, ``PK3xx`` its parameters, ``PK4xx`` a
    resource.
    """

    IMPORT_FAILED = "PK101"
    NO_PROMPTS = "PK102"
    BAD_NAME = "PK201"
    DUPLICATE_NAME = "PK202"
    BAD_METADATA = "PK203"
    MISSING_ANNOTATION = "PK301"
    VARIADIC_PARAMETER = "PK302"
    POSITIONAL_ONLY = "PK303"
    UNSUPPORTED_TYPE = "PK304"
    DEFAULT_MISFIT = "PK305"
    UNRESOLVED_ANNOTATION = "PK306"
    SECOND_CONTEXT = "PK307"
    BAD_COMPLETION = "PK308"
    BAD_TEMPLATE = "PK401"
    TEMPLATE_MISMATCH = "PK402"


#: These leave every prompt as it is; all others keep something from being served.
WARNINGS: Final = frozenset({Rule.NO_PROMPTS})


@attrs.frozen(order=True)
class Location:
    """
    A line of an author's file.

    Args:
        file:
            The file's absolute path, ``""`` if the code has none.

        line:
            Counted from 1; 0 stands for the file as a whole.
    """

    file: str
    line: int = 0

    def __str__(self) -> str:
        """
        Return ``recipes/review.py:12``, the path relative to the current folder if below it.
        """
        file, here = Path(self.file), Path.cwd()
        path = file.relative_to(here) if file.is_relative_to(here) else file
        return f"{path}:{self.line}" if self.line else str(path)


@attrs.frozen
class Diagnostic:
    """
    One fault in an author's code.

    Args:
        rule:
            Which kind of fault it is.

        message:
            What is wrong, in one lower-case sentence.

        remedy:
            What to do about it.

        location:
            The line that is at fault.
    """

    rule: Rule
    message: str
    remedy: str
    location: Location

    @property
    def severity(self) -> Severity:
        """
        Whether it keeps something from being served.
        """
        return Severity.WARNING if self.rule in WARNINGS else Severity.ERROR

    def __str__(self) -> str:
        """
        Return two lines, as a compiler prints them.
        """
        head = f"{self.location}: {self.severity.value} {self.rule.value}: {self.message}"
        return f"{head}\n    {self.remedy}"

    def as_data(self) -> dict[str, Any]:
        """
        Return the diagnostic for machines, as plain values.
        """
        return {
            "code": self.rule.value,
            "rule": self.rule.name.lower().replace("_", "-"),
            "severity": self.severity.value,
            "message": self.message,
            "remedy": self.remedy,
            "file": self.location.file,
            "line": self.location.line,
        }


@attrs.frozen
class Report:
    """
    Where the stages of the compiler put what they find about one function.

    Args:
        subject:
            What is compiled, to begin each message with: ``prompt 'review'``.

        location:
            Where it is defined.
    """

    subject: str
    location: Location
    found: list[Diagnostic] = attrs.field(factory=list)

    def add(self, rule: Rule, message: str, remedy: str) -> None:
        """
        Note one fault of the subject.
        """
        self.found.append(Diagnostic(rule, f"{self.subject}: {message}", remedy, self.location))
