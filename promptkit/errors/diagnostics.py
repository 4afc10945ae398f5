"""Diagnostics: what is wrong with an author's code, where, and what to do about it."""

from contextlib import suppress
from enum import Enum, unique
from pathlib import Path
from typing import Any, Final, Self

from msgspec import Struct, field

__all__ = ["Diagnostic", "Location", "Report", "Rule", "Severity", "printable"]

#: Spaces that are safe to print, although `str.isprintable` says no.
_SPACES: Final = "\u00a0\u2002\u2003\u2009\u202f\u3000"


def printable(text: str) -> str:
    """
    Return *text* on one line. Control characters, and those that cannot be encoded, are escaped.
    """
    if text.isprintable():
        return text
    return "".join(
        c if c.isprintable() or c in _SPACES else c.encode("unicode_escape").decode() for c in text
    )


class Severity(Enum):
    """
    How serious a diagnostic is. With a warning, the prompt or recipe can still be served.
    """

    ERROR = "error"
    WARNING = "warning"


@unique
class Rule(Enum):
    """
    The kinds of diagnostics. A code never changes its meaning.

    ``PK1xx`` are about loading, ``PK2xx`` about a prompt, ``PK3xx`` about its parameters,
    ``PK4xx`` about a resource, ``PK5xx`` about a prompt in one client. docs/diagnostics.md explains each.

    Attributes:
        title:
            What is wrong, in a few words of Markdown.
    """

    IMPORT_FAILED = "PK101", "a recipe cannot be imported"
    NO_PROMPTS = "PK102", "there is no prompt in the recipes"
    UNDEFINED_NAME = "PK103", "a name in a function that nothing defines"
    FAILING_IMPORT = "PK104", "an import in a function that would fail"
    RELATIVE_PATH = "PK105", "a file that is looked for in the current folder"
    BAD_SUPPRESSION = "PK106", "a comment that is to ignore a finding, and ignores none"
    BAD_NAME = "PK201", "a name that some clients cannot show, or that people cannot type there"
    DUPLICATE_NAME = "PK202", "two prompts with the same name"
    BAD_METADATA = "PK203", "a title, description, tags or meta that cannot be sent"
    BAD_RETURN = "PK204", "a return annotation that no message can hold"
    SAYS_NOTHING = "PK205", "a function that never returns or yields anything"
    UNSENDABLE_VALUE = "PK206", "a value returned or yielded that no message can hold"
    FORGOTTEN_F = "PK207", "an f-string without its `f`"
    TEMPLATE_SYNTAX = "PK208", "a template in text or a docstring, which nothing fills in"
    OBJECT_IN_TEXT = "PK209", "an object in an f-string, where its text was meant"
    NAMES_DIFFER_IN_CASE = "PK210", "two prompts whose names differ in case alone"
    FIRST_MESSAGE = "PK211", "a first message that is no text of the user"
    UNSENDABLE_FILE = "PK212", "an image or recording that cannot be read, or is larger than clients take"
    BAD_SCOPE = "PK213", "scopes that no caller can have"
    EXAMPLE_FAILS = "PK220", "a prompt that fails for its author's examples"
    MISSING_ANNOTATION = "PK301", "a parameter without an annotation"
    VARIADIC_PARAMETER = "PK302", "`*args` or `**kwargs`"
    POSITIONAL_ONLY = "PK303", "a positional-only parameter"
    UNSUPPORTED_TYPE = "PK304", "a type that no client can fill"
    DEFAULT_MISFIT = "PK305", "a default that is not of its parameter's type"
    UNRESOLVED_ANNOTATION = "PK306", "an annotation whose names cannot be found"
    SECOND_CONTEXT = "PK307", "two parameters for the `Context`"
    BAD_COMPLETION = "PK308", "completions that cannot be offered"
    BARE_ARG = "PK309", "`Arg` in an annotation without being called"
    SECOND_ARG = "PK310", "two `Arg(...)` for one parameter"
    STRAY_DESCRIPTION = "PK311", "a docstring that describes a parameter that does not exist"
    FOREIGN_NOTE = "PK312", "a note in `Annotated` for another framework"
    BAD_EXAMPLE = "PK313", "an example or completion that the parameter would refuse"
    BAD_TIMEZONE = "PK320", "a time zone that does not exist, or for a parameter without a `datetime`"
    BAD_VARIABLE = "PK321", "an environment variable that no parameter can have as its default"
    BAD_TEMPLATE = "PK401", "a URI template that is not valid"
    TEMPLATE_MISMATCH = "PK402", "a URI template and a function that do not agree"
    DUPLICATE_TEMPLATE = "PK403", "two resources with the same URI template"
    ANSWERED_WITHOUT_SCOPES = "PK404", "a resource that needs scopes, and a template at its URI that does not"
    RESOURCE_FAILS = "PK420", "a resource that fails when it is read"
    HIDDEN_PROMPT = "PK501", "a prompt that a client does not show"
    LOST_CONTENT = "PK502", "a message, or content, that a client does not take or show"
    SPLIT_TEXT = "PK503", "an argument whose words a client gives to others"
    UNFILLED_ARGUMENT = "PK504", "an argument that a client does not fill as its author means"
    TITLE_AS_COMMAND = "PK505", "a title that people cannot type as a command"

    title: str

    def __new__(cls, code: str, title: str) -> Self:
        """Make a member whose value is its code alone."""
        rule = object.__new__(cls)
        rule._value_, rule.title = code, title
        return rule


#: The rules that are warnings: everything can still be served.
WARNINGS: Final = frozenset(
    {
        Rule.NO_PROMPTS,
        Rule.UNDEFINED_NAME,
        Rule.FAILING_IMPORT,
        Rule.RELATIVE_PATH,
        Rule.BAD_SUPPRESSION,
        Rule.SAYS_NOTHING,
        Rule.UNSENDABLE_VALUE,
        Rule.FORGOTTEN_F,
        Rule.TEMPLATE_SYNTAX,
        Rule.OBJECT_IN_TEXT,
        Rule.NAMES_DIFFER_IN_CASE,
        Rule.FIRST_MESSAGE,
        Rule.UNSENDABLE_FILE,
        Rule.STRAY_DESCRIPTION,
        Rule.FOREIGN_NOTE,
        Rule.BAD_EXAMPLE,
        Rule.ANSWERED_WITHOUT_SCOPES,
        Rule.HIDDEN_PROMPT,
        Rule.LOST_CONTENT,
        Rule.SPLIT_TEXT,
        Rule.UNFILLED_ARGUMENT,
        Rule.TITLE_AS_COMMAND,
    },
)


class Location(Struct, frozen=True, order=True):
    """
    A line of an author's file.

    Args:
        file:
            The file's absolute path, ``""`` if the code has none.

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
        path = Path(self.file)
        with suppress(OSError, ValueError):  # the current folder is gone, or the file is not below it
            path = path.relative_to(Path.cwd())
        return f"{printable(str(path))}:{self.line}" if self.line else printable(str(path))

    def part(self, name: str) -> "Location":
        """
        Return the location of a part of the function that begins here, or this location if not found.

        *name* is a parameter, ``"return"`` for the return annotation, or ``"def"`` for the name.
        """
        from promptkit.errors.sources import span_of_part

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

        remedy:
            What to do about it.

        location:
            Where it is.
    """

    rule: Rule
    message: str
    remedy: str
    location: Location

    @property
    def severity(self) -> Severity:
        """
        An error if something cannot be served, else a warning.
        """
        return Severity.WARNING if self.rule in WARNINGS else Severity.ERROR

    def __str__(self) -> str:
        head = f"{self.location}: {self.severity.value} {self.rule.value}: {self.message}"
        return f"{head}\n    {self.remedy}"

    def as_data(self) -> dict[str, Any]:
        """
        Return the diagnostic as JSON-compatible data.
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

    def add(self, rule: Rule, message: str, remedy: str, at: Location | str | None = None) -> None:
        """
        Add a diagnostic; *message* follows the subject.

        *at* is a location, or a name for `Location.part`; left out, it is the subject's location.
        """
        location = self.location.part(at) if isinstance(at, str) else at or self.location
        self.found.append(Diagnostic(rule, f"{self.subject}: {message}", remedy, location))

    def without_duplicates(self) -> list[Diagnostic]:
        """
        Return what was found, without repetitions of a message for the same line.
        """
        told = {(one.message, one.location.file, one.location.line): one for one in reversed(self.found)}
        return list(reversed(told.values()))
