"""Diagnostics: what is wrong with an author's code, as data with an address and a remedy."""

from contextlib import suppress
from enum import Enum, unique
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct, field

__all__ = ["Diagnostic", "Location", "Report", "Rule", "Severity", "printable"]

#: What prints as a space, though Python does not call it printable.
_SPACES: Final = "\u00a0\u2002\u2003\u2009\u202f\u3000"


def printable(text: str) -> str:
    """
    Return *text* on one line, with escapes in place of what would steer a terminal or is no text.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in _SPACES else c.encode("unicode_escape").decode() for c in text
    )


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
    resource. The README lists them all.

    Attributes:
        title:
            What is wrong, in a few words, as Markdown.
    """

    IMPORT_FAILED = "PK101", "a recipe cannot be imported"
    NO_PROMPTS = "PK102", "there is no prompt in the recipes"
    UNDEFINED_NAME = "PK103", "a name in a function that nothing defines"
    FAILING_IMPORT = "PK104", "an import in a function that would fail"
    RELATIVE_PATH = "PK105", "a file that is looked for in the current folder"
    BAD_NAME = "PK201", "a name that some client could not show, or let people type"
    DUPLICATE_NAME = "PK202", "two prompts of one name"
    BAD_METADATA = "PK203", "a title, description, tags or meta that cannot be sent"
    BAD_RETURN = "PK204", "a return annotation that no message can hold"
    SAYS_NOTHING = "PK205", "a function that never returns or yields anything"
    UNSENDABLE_VALUE = "PK206", "a value returned or yielded that no message can hold"
    FORGOTTEN_F = "PK207", "an f-string without its `f`"
    TEMPLATE_SYNTAX = "PK208", "a template in text or a docstring, which nothing fills in"
    OBJECT_IN_TEXT = "PK209", "an object in an f-string, where its text was meant"
    MISSING_ANNOTATION = "PK301", "a parameter without an annotation"
    VARIADIC_PARAMETER = "PK302", "`*args` or `**kwargs`"
    POSITIONAL_ONLY = "PK303", "a positional-only parameter"
    UNSUPPORTED_TYPE = "PK304", "a type that no client can fill"
    DEFAULT_MISFIT = "PK305", "a default that is not of its parameter's type"
    UNRESOLVED_ANNOTATION = "PK306", "an annotation whose names cannot be found"
    SECOND_CONTEXT = "PK307", "two parameters for the `Context`"
    BAD_COMPLETION = "PK308", "a source of completions that cannot be asked"
    BARE_ARG = "PK309", "`Arg` in an annotation without being called"
    SECOND_ARG = "PK310", "two `Arg(...)` for one parameter"
    STRAY_DESCRIPTION = "PK311", "a docstring that describes a parameter that does not exist"
    FOREIGN_NOTE = "PK312", "a note in `Annotated` that is for another framework"
    BAD_EXAMPLE = "PK313", "an example or completion that the parameter would refuse"
    BAD_TIMEZONE = "PK320", "a time zone that does not exist, or that is for no `datetime`"
    BAD_TEMPLATE = "PK401", "a URI template that is not valid"
    TEMPLATE_MISMATCH = "PK402", "a URI template and a function that do not agree"
    DUPLICATE_TEMPLATE = "PK403", "two resources of one URI template"

    title: str

    def __new__(cls, code: str, title: str) -> Self:
        """
        Make a member whose value is its code alone.
        """
        rule = object.__new__(cls)
        rule._value_, rule.title = code, title
        return rule


#: These leave every prompt as it is; all others keep something from being served.
WARNINGS: Final = frozenset(
    {
        Rule.NO_PROMPTS,
        Rule.UNDEFINED_NAME,
        Rule.FAILING_IMPORT,
        Rule.RELATIVE_PATH,
        Rule.SAYS_NOTHING,
        Rule.UNSENDABLE_VALUE,
        Rule.FORGOTTEN_F,
        Rule.TEMPLATE_SYNTAX,
        Rule.OBJECT_IN_TEXT,
        Rule.STRAY_DESCRIPTION,
        Rule.FOREIGN_NOTE,
        Rule.BAD_EXAMPLE,
    },
)


class Location(Struct, frozen=True, order=True):
    """
    A line of an author's file.

    Args:
        file:
            The file's absolute path, ``""`` if the code has none.

        line:
            Counted from 1; 0 stands for the file as a whole.

        column:
            Where in the line it begins, in characters, counted from 1; 0 stands for the line
            as a whole.

        end:
            The column behind it.
    """

    file: str
    line: int = 0
    column: int = 0
    end: int = 0

    def __str__(self) -> str:
        """
        Return ``recipes/review.py:12``, the path relative to the current folder if below it.
        """
        path = Path(self.file)
        with suppress(OSError, ValueError):  # the current folder is gone, or not above it
            path = path.relative_to(Path.cwd())
        return f"{printable(str(path))}:{self.line}" if self.line else printable(str(path))

    def part(self, name: str) -> "Location":
        """
        Return where the function that begins here has one of its parts, if that can be found.

        Args:
            name:
                A parameter, ``"return"`` for the return annotation, or ``"def"`` for its name.
        """
        from promptkit.errors.sources import span_of_part

        span = span_of_part(self.file, self.line, name)
        return self if span is None else Location(self.file, *span)


class Diagnostic(Struct, frozen=True):
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
            "file": self.location.file.encode(errors="backslashreplace").decode(),
            "line": self.location.line,
            "column": self.location.column,
            "end_column": self.location.end,
        }


class Report(Struct, frozen=True):
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
    found: list[Diagnostic] = field(default_factory=list)

    def add(self, rule: Rule, message: str, remedy: str, at: Location | str | None = None) -> None:
        """
        Note one fault of the subject.

        Args:
            rule:
                Which kind of fault it is.

            message:
                What is wrong, to be read after the subject.

            remedy:
                What to do about it.

            at:
                Where: a location, or what `Location.part` finds; the subject as a whole if
                left out.
        """
        location = self.location.part(at) if isinstance(at, str) else at or self.location
        self.found.append(Diagnostic(rule, f"{self.subject}: {message}", remedy, location))

    def without_duplicates(self) -> list[Diagnostic]:
        """
        Return what was found, but only once what would be said twice of a line.
        """
        told = {(one.message, one.location.file, one.location.line): one for one in reversed(self.found)}
        return list(reversed(told.values()))
