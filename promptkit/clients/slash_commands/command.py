"""A model of slash commands for all clients: the parts of their text, and what a conversion loses."""

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from keyword import iskeyword
from typing import Final, NamedTuple, TypeAlias

import attrs

from promptkit.declarations.markdown_yaml import Field, MarkdownError, read_fields
from promptkit.declarations.options import name_slug
from promptkit.language.files import split_front_matter
from promptkit.loader.discovery import is_recipe, may_enter

#: Maximum length of text that a message quotes from a file, in characters.
_MAX_EXCERPT: Final = 200


class CommandSyntaxError(Exception):
    """
    A file is not a valid slash command.

    Args:
        reason:
            The message.

        line:
            The number of the line, starting at 1.
    """

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


class LineNumbers:
    """
    A precomputed index of line numbers in text.

    Args:
        text:
            The text.

        first:
            The number of the first line.
    """

    def __init__(self, text: str, first: int = 1) -> None:
        self._first = first
        self._ends = [match.start() for match in re.finditer("\n", text)]

    def at(self, position: int) -> int:
        """Return the number of the line that contains the character at *position*."""
        return self._first + bisect_left(self._ends, position)


@attrs.frozen
class TextPart:
    """Literal text."""

    text: str


@attrs.frozen
class ArgumentPart:
    """
    A placeholder for an argument.

    Args:
        name:
            The name of the parameter.

        is_appended:
            Whether the client appends a line with the argument to the text if the argument is given.
    """

    name: str
    is_appended: bool = False


@attrs.frozen
class CommandPart:
    """
    A placeholder for a program's output.

    Args:
        words:
            The program and its arguments, which can run without a shell.
    """

    words: tuple[str, ...]


@attrs.frozen
class FilePart:
    """
    A reference to a file in the workspace.

    Args:
        path:
            The path of the file, relative to the workspace.

        source:
            The reference as written, if it stays in the text and the file's content follows the text. None if
            the content of the file replaces the reference.
    """

    path: str
    source: str | None = None


Part: TypeAlias = TextPart | ArgumentPart | CommandPart | FilePart


@attrs.frozen
class CommandParameter:
    """
    A parameter of a command.

    Args:
        name:
            The name, which is a Python identifier.

        description:
            The description for users.

        default:
            The default, or None if the parameter is required.
    """

    name: str
    description: str | None = None
    default: str | None = ""


@attrs.frozen
class Loss:
    """A part of a file that cannot be converted, and its line number, starting at 1."""

    description: str
    line: int = 1


@attrs.frozen
class SlashCommand:
    """
    A slash command.

    Args:
        name:
            The name, preceded by the folders of the file and a ``/`` after each of them.

        parts:
            The parts of the text.

        parameters:
            The parameters, in order.

        description:
            The description, on one line.

        losses:
            The parts of the file that cannot be converted.
    """

    name: str
    parts: tuple[Part, ...]
    parameters: tuple[CommandParameter, ...] = ()
    description: str | None = None
    losses: tuple[Loss, ...] = attrs.field(default=(), eq=False)


def make_excerpt(text: str) -> str:
    """Return *text*, truncated for a message."""
    return text if len(text) <= _MAX_EXCERPT else f"{text[:_MAX_EXCERPT]}..."


def sort_losses(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """Return the distinct losses, sorted by line."""
    return tuple(sorted(dict.fromkeys(losses), key=lambda loss: loss.line))


def split_parts(text: str, spans: Iterable[tuple[int, int, Sequence[Part]]]) -> tuple[Part, ...]:
    """
    Split *text* into parts.

    Args:
        text:
            The text.

        spans:
            The start, end and parts of each placeholder, in order.
    """
    parts, end = list[Part](), 0
    for start, stop, inner in spans:
        parts += (TextPart(text[end:start]), *inner)
        end = stop
    parts.append(TextPart(text[end:]))
    return join_texts(parts)


def join_texts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return *parts* with adjacent text parts joined and empty text parts removed."""
    joined = list[Part]()
    for is_text, run in groupby(parts, lambda part: isinstance(part, TextPart)):
        if not is_text:
            joined += run
        elif text := "".join(part.text for part in run if isinstance(part, TextPart)):
            joined.append(TextPart(text))
    return tuple(joined)


#: A word: text in single quotes, text in double quotes without special characters, or plain characters.
_WORD: Final = r"""(?:'[^']*'|"[^"$`\\!]*"|[\w@%+:,./^=-]|(?<=[\w.^@-])~)+"""
_WORDS: Final = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*")

#: Commands that the shell itself implements.
_BUILT_IN: Final = re.compile(
    r"\.|alias|bg|bind|builtin|caller|case|cd|command|compgen|declare|dirs|eval|exec|exit|export|fg|for|function"
    r"|hash|help|history|if|jobs|let|local|popd|pushd|read|return|select|set|shift|shopt|source|trap|type|typeset"
    r"|ulimit|umask|unalias|unset|until|wait|while"
)


def split_command(command: str) -> tuple[str, ...] | None:
    """
    Return the words of a command, or None if the command needs a shell.

    Without a shell, a command cannot contain expansions, pipes or redirections, or run a shell builtin.
    """
    return None if shell_reason(command) else tuple(shlex.split(command))


def shell_reason(command: str) -> str | None:
    """Return why a command cannot run without a shell, or None if it can."""
    if not command.strip():
        return "it is empty"
    if _WORDS.fullmatch(command) is None:
        return "it needs a shell"
    first = shlex.split(command)[0]
    if _BUILT_IN.fullmatch(first):
        return f"{first!r} is a shell builtin"
    return "it starts by setting a variable" if "=" in first or not first else None


#: Names that generated recipes use, so that arguments cannot have them.
_RESERVED: Final = frozenset(
    {"Annotated", "Arg", "EmbeddedResource", "Text", "None", "prompt", "run", "str", "user", "workspace"}
)

#: A file with this name would make its folder a skill, and recipes are not discovered in skills.
_SKILL: Final = "skill"


def to_identifier(text: str) -> str | None:
    """Convert a string to a Python identifier, or return None if it has no usable characters."""
    slug = re.sub(r"[_-]+", "_", name_slug(text)).strip("_").lower()
    if not slug:
        return None
    if slug[0].isdigit():
        slug = f"n{slug}"
    return f"{slug}_" if iskeyword(slug) or slug in _RESERVED else slug


def markdown_path(name: str) -> str:
    """Return the path of a command's Markdown prompt, without the file extension."""
    *folders, stem = (name_slug(part).lstrip("_") or "command" for part in name.split("/"))
    return "/".join([*(folder if may_enter(folder) else f"{folder}-commands" for folder in folders), stem])


def python_path(name: str) -> str:
    """Return the path of a command's Python recipe, without the file extension."""
    *folders, stem = name.split("/")
    return "/".join([*map(_folder_name, folders), _file_stem(stem)])


def _file_stem(name: str) -> str:
    stem = to_identifier(name) or "command"
    for candidate in (stem, f"{stem}_command", f"command_{stem}", f"command_{stem}_command"):
        if is_recipe(f"{candidate}.py") and candidate != _SKILL:
            return candidate
    return "command"


def _folder_name(name: str) -> str:
    folder = to_identifier(name) or "commands"
    return folder if may_enter(folder) else f"{folder}_commands"


class UniqueNames:
    """
    A registry of names that are unique regardless of case.

    Args:
        separator:
            The separator between a name and its number.

        reserved:
            The names that are reserved from the start.
    """

    def __init__(self, separator: str, reserved: Iterable[str] = ()) -> None:
        self._separator = separator
        self._reserved = {name.casefold() for name in reserved}
        self._numbers = dict[str, int]()  # the last reserved number of each name

    def reserve(self, name: str) -> str:
        """Reserve *name*, or *name* with a number if it is already reserved. Return the reserved name."""
        number = self._numbers.get(name, 1)
        while (
            candidate := f"{name}{self._separator}{number}" if number > 1 else name
        ).casefold() in self._reserved:
            number += 1
        self._numbers[name] = number
        self._reserved.add(candidate.casefold())
        return candidate


class CommandFile(NamedTuple):
    """
    A command in a Markdown file.

    Args:
        text:
            The text of the file.

        fields:
            The fields of the front matter.

        body:
            The text after the front matter.

        line:
            The number of the body's first line.
    """

    text: str
    fields: Mapping[str, Field]
    body: str
    line: int

    def get_text(self, key: str) -> str | None:
        """Return a field as text on one line, or None if the field is missing or empty."""
        if (field := self.fields.get(key)) is None:
            return None
        if isinstance(field.value, str):
            return one_line(field.value) or None
        line = self.text.split("\n")[field.location.line - 1]  # for example, [issue] is a list in YAML
        return one_line(line.partition(":")[2]) or None

    def find_losses(self, *known: str) -> Iterator[Loss]:
        """Yield a loss for each field whose key is not one of *known*."""
        for key, field in self.fields.items():
            if key not in known:
                yield Loss(f"the field {make_excerpt(key)!r} is not imported", field.location.line)


def one_line(text: str) -> str:
    """Return *text* on one line, without invisible characters."""
    # In YAML, an emoji can be written as two escapes, as in JSON.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def read_markdown(text: str) -> CommandFile:
    """
    Parse a Markdown file with front matter.

    Raises:
        CommandSyntaxError: If the front matter is invalid, or if no text follows it.
    """
    front_matter, body, line = split_front_matter(text)
    try:
        fields = read_fields(front_matter, "")
    except MarkdownError as error:
        raise CommandSyntaxError(one_line(str(error)), error.location.line) from None
    if not body.strip():
        msg = "it has no text"
        raise CommandSyntaxError(msg, line)
    return CommandFile(text, fields, body.rstrip(), line)
