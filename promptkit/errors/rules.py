"""The rules of diagnostics, and their severities."""

from enum import Enum, unique
from typing import Final, Self

from promptkit.errors.suggestions import nearest

_WARNING: Final = "warning"

#: Marks an error that does not prevent serving.
_IGNORABLE: Final = "ignorable error"


#: The codes of rules that were removed. These codes are never reused.
RETIRED: Final = frozenset(
    (
        *("PK104", "PK204", "PK210", "PK221", "PK222", "PK227", "PK240", "PK241", "PK311", "PK314"),
        *("PK315", "PK316", "PK320", "PK322", "PK340", "PK505", "PK616"),
    )
)


@unique
class Rule(Enum):
    """
    The rules of diagnostics. The meaning of a code never changes.

    ``PK1xx`` are about loading, ``PK2xx`` about a prompt, ``PK3xx`` about its parameters, ``PK4xx`` about a
    resource, ``PK5xx`` about a prompt in one client, ``PK6xx`` about a skill, ``PK7xx`` about a Markdown
    prompt, ``PK8xx`` about another MCP server. docs/diagnostics.md explains each rule.

    Attributes:
        title:
            A short description in Markdown.

        severity:
            ``"error"`` or ``"warning"``.

        is_ignorable:
            Whether the diagnostic can be ignored, because it does not prevent serving.
    """

    IMPORT_FAILED = "PK101", "a recipe cannot be imported"
    NO_PROMPTS = "PK102", "recipes without a prompt", _IGNORABLE
    UNDEFINED_NAME = "PK103", "an undefined name in a function", _IGNORABLE
    RELATIVE_PATH = "PK105", "a file that is looked up in the current folder", _WARNING
    BAD_SUPPRESSION = "PK106", "an `ignore` comment that has no effect", _WARNING
    NOT_SERVED = "PK107", "prompts that are not served because their file or folder is not searched", _WARNING
    TYPING_TEXT = "PK108", "`typing.Text` in place of promptkit's `Text`", _IGNORABLE
    BAD_NAME = "PK201", "a name that some clients cannot show or users cannot type"
    DUPLICATE_NAME = "PK202", "two prompts with the same name"
    BAD_METADATA = "PK203", "a title, description, tags or meta that cannot be sent"
    NO_MESSAGE = (
        "PK205",
        "a function that returns or yields nothing, or only a system part",
        _IGNORABLE,
    )
    UNSENDABLE_VALUE = "PK206", "a returned or yielded value that cannot become a message", _IGNORABLE
    MISSING_F_PREFIX = "PK207", "a string with placeholders but without the `f` of an f-string", _WARNING
    TEMPLATE_SYNTAX = "PK208", "template syntax in a text or docstring that is never filled in", _WARNING
    OBJECT_IN_TEXT = (
        "PK209",
        "an object inserted into text although its string form is not meant for readers",
        _WARNING,
    )
    FIRST_MESSAGE = "PK211", "a first message that is not user text", _WARNING
    UNSENDABLE_FILE = "PK212", "a media file that cannot be read or is too large for clients", _WARNING
    BAD_SCOPE = "PK213", "scopes that cannot be granted"
    BLOCK_IN_LINE = "PK214", "a block of Markdown, such as a code fence, in the middle of a line", _WARNING
    BAD_ANSWER = "PK215", "an answer type that promptkit cannot parse"
    MISSING_TEXT = "PK216", "a text file that is missing or not UTF-8", _IGNORABLE
    UNKNOWN_PLACEHOLDER = "PK217", "a value for which the text has no placeholder", _IGNORABLE
    UNFILLED_PLACEHOLDER = "PK218", "a placeholder in a text that gets no value", _WARNING
    SHIFTED_LINES = "PK219", "`dedent` of an f-string with a value that may have several lines", _WARNING
    EXAMPLE_FAILS = "PK220", "a prompt that fails for its examples"
    MISPLACED_MARK = (
        "PK223",
        "a mark for optional lines that shares its line or has no counterpart",
        _IGNORABLE,
    )
    ABSENT_VALUE = "PK224", "a value that can be None or a bool, inserted into a text", _WARNING
    INDENTED_TEXT = "PK225", "a text that is sent with the indentation of the code around it", _WARNING
    TOO_MANY_TOKENS = "PK226", "a rendering with more tokens than `--max-tokens` allows", _IGNORABLE
    FORMAT_FIELDS = "PK228", "`str.format` with a value or a field that has no counterpart", _IGNORABLE
    LONG_TEXT = "PK229", "a description, or server instructions, that hosts truncate", _WARNING
    BAD_CASE = "PK230", "a case that no client can send, or that has the same name as another", _IGNORABLE
    CASE_FAILS = "PK231", "a case that fails, or that should be rejected but renders"
    MISSING_ANNOTATION = "PK301", "a parameter without an annotation"
    VARIADIC_PARAMETER = "PK302", "`*args` or `**kwargs`"
    POSITIONAL_ONLY = "PK303", "a positional-only parameter"
    UNSUPPORTED_TYPE = "PK304", "a parameter type that clients cannot send"
    INVALID_DEFAULT = "PK305", "a default that does not match its parameter's type"
    UNRESOLVED_ANNOTATION = "PK306", "an annotation with an undefined name"
    SECOND_CONTEXT = "PK307", "two parameters for the `Context`"
    BAD_COMPLETION = "PK308", "invalid completions"
    BARE_ARG = "PK309", "`Arg` in an annotation without being called"
    SECOND_ARG = "PK310", "two `Arg(...)` for one parameter"
    FOREIGN_METADATA = "PK312", "metadata for another framework in `Annotated`", _WARNING
    BAD_EXAMPLE = "PK313", "an example or completion that is invalid for the parameter", _WARNING
    BAD_VARIABLE = "PK321", "an environment variable that cannot be a parameter's default"
    READ_AS_OPTION = "PK330", "a parameter's value that a command can parse as an option", _WARNING
    CALLERS_PATH = "PK331", "a file whose path comes from a caller and is not confined to a folder", _WARNING
    BAD_TEMPLATE = "PK401", "an invalid URI template"
    TEMPLATE_MISMATCH = "PK402", "a URI template that does not match its function"
    DUPLICATE_TEMPLATE = "PK403", "two resources with the same URI template"
    ANSWERED_WITHOUT_SCOPES = (
        "PK404",
        "a resource whose URI matches a template that does not require its scopes",
        _WARNING,
    )
    RESOURCE_FAILS = "PK420", "a resource that fails when it is read"
    HIDDEN_PROMPT = "PK501", "a prompt that a client does not show", _WARNING
    UNSUPPORTED_CONTENT = "PK502", "a message or content that a client does not support", _WARNING
    SPLIT_TEXT = "PK503", "an argument whose words a client drops or passes to other arguments", _WARNING
    UNFILLED_ARGUMENT = "PK504", "an argument that a client fills differently than intended", _WARNING
    BAD_SKILL = "PK601", "a skill that violates the format"
    SKILL_FILES = "PK602", "skill files that cannot be served"
    SKILL_FAILS = "PK603", "a skill whose function fails or does not return text"
    DUPLICATE_SKILL = "PK604", "two skills with the same URI"
    UNSTABLE_SKILL = "PK605", "a skill that differs from one start to the next", _IGNORABLE
    MISSING_REFERENCE = "PK606", "a link to a file that the skill does not have", _IGNORABLE
    LONG_SKILL = "PK607", "a `SKILL.md` that is too long for models to read as a whole", _WARNING
    UNUSED_FILE = "PK608", "a skill file that is not referenced", _WARNING
    SAME_SKILL_NAME = "PK609", "two skills with the same name and different prefixes", _WARNING
    NO_TRIGGER = "PK610", "a skill whose description does not say when to use it", _WARNING
    SIMILAR_SKILLS = "PK611", "two skills whose descriptions overlap", _WARNING
    LONG_LISTING = "PK612", "skill names and descriptions that exceed a budget", _WARNING
    SKILL_CASE_FAILS = "PK613", "a skill case for which another skill ranks first", _WARNING
    MISSING_PATH = "PK614", "a path in a skill's text to a file that does not exist", _WARNING
    SKILL_FIELDS = (
        "PK615",
        "skill fields that violate the format, or that hosts read differently",
        _WARNING,
    )

    BAD_FRONT_MATTER = "PK701", "invalid front matter in a Markdown prompt"
    BAD_MARKDOWN = "PK702", "a Markdown prompt that cannot be read"
    FOREIGN_KEY = "PK703", "front matter keys that are for other tools", _WARNING
    UNUSED_ARGUMENT = "PK704", "a Markdown prompt's argument that has no placeholder", _WARNING
    MARK_SENT_AS_TEXT = "PK705", "a line that looks like front matter or a turn but is sent as text", _WARNING
    INVALID_REPLY = "PK801", "server output that violates the protocol", _IGNORABLE
    BROKEN_PAGES = "PK802", "a list with repeated pages, or too many pages", _IGNORABLE
    DUPLICATE_ITEM = "PK803", "two items of a server with the same name or URI", _IGNORABLE
    WRONG_ERROR = (
        "PK804",
        "an invalid request that a server answers without an error, or with the wrong one",
        _WARNING,
    )
    NO_DESCRIPTION = (
        "PK805",
        "a server's prompt, argument, resource or tool without a description",
        _WARNING,
    )
    LONG_DESCRIPTION = "PK806", "a server's description, or instructions, that hosts truncate", _WARNING
    LOSSY_SCHEMA = "PK807", "a tool schema that some clients cannot convert", _WARNING
    JSON_ARGUMENT = "PK808", "an argument for which users must write JSON", _WARNING

    title: str
    severity: str
    is_ignorable: bool

    def __new__(cls, code: str, title: str, severity: str = "error") -> Self:
        """Create a member with the code as its value."""
        rule = object.__new__(cls)
        rule._value_, rule.title = code, title
        rule.severity, rule.is_ignorable = severity.removeprefix("ignorable "), severity != "error"
        return rule


#: The rules that are warnings: they do not prevent serving, and can be about code that the author intended.
WARNINGS: Final = frozenset(rule for rule in Rule if rule.severity == _WARNING)

#: The rules that do not prevent serving. Authors can ignore them, because static analysis can be wrong.
IGNORABLE: Final = frozenset(rule for rule in Rule if rule.is_ignorable)


def find_ignorable_rule(code: str) -> Rule:
    """
    Return the rule with the code that an author wants to ignore.

    Args:
        code:
            The code, such as ``PK207``.

    Raises:
        ValueError: If no rule has this code, or the rule is an error that prevents serving.
    """
    rule = next((rule for rule in Rule if rule.value == code), None)
    if rule is None:
        suggestion = nearest(code, sorted(rule.value for rule in IGNORABLE))
        hint = (
            f"; did you mean {suggestion!r}?" if suggestion else ": use a code that 'promptkit check' prints"
        )
        msg = f"unknown code {code!r}{hint}"
        raise ValueError(msg)
    if rule not in IGNORABLE:
        msg = f"{code} is an error that cannot be ignored: fix its cause"
        raise ValueError(msg)
    return rule
