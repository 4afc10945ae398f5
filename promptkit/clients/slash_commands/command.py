"""A slash command, whatever client it is of: its text in parts, and what of its file no recipe says."""

import re
import shlex
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from keyword import iskeyword
from typing import Final, TypeAlias
from unicodedata import combining, normalize

import attrs

from promptkit.loader.discovery import is_recipe, may_enter

#: How many characters of a file's text a message shows.
_SHOWN: Final = 200


class CommandSyntaxError(Exception):
    """
    A file is no slash command of its client.

    Args:
        reason:
            Why not.

        line:
            Where, counted from 1.
    """

    def __init__(self, reason: str, line: int = 1) -> None:
        super().__init__(reason)
        self.line = line


class LineNumbers:
    """
    The line numbers of a text. The text is read once, however often they are asked for.

    Args:
        text:
            The text.

        first:
            The number of its first line.
    """

    def __init__(self, text: str, first: int = 1) -> None:
        self._first = first
        self._ends = [found.start() for found in re.finditer("\n", text)]

    def at(self, place: int) -> int:
        """Return the number of the line that *place*, an index of the text, is in."""
        return self._first + bisect_left(self._ends, place)


@attrs.frozen
class TextPart:
    """
    Text that the model gets as it stands.
    """

    text: str
    line: int = attrs.field(default=1, eq=False)


@attrs.frozen
class ArgumentPart:
    """
    A place where an argument is put.

    Args:
        name:
            The parameter.

        line:
            Where it is in the file, counted from 1.

        is_appended:
            Whether the client appends its line to the text, and only for somebody who gives the argument.
    """

    name: str
    line: int = attrs.field(default=1, eq=False)
    is_appended: bool = False


@attrs.frozen
class CommandPart:
    """
    A program that is run, and whose output stands in its place.

    Args:
        words:
            The program and its arguments, as no shell has to read them.

        line:
            Where it is in the file, counted from 1.
    """

    words: tuple[str, ...]
    line: int = attrs.field(default=1, eq=False)


@attrs.frozen
class FilePart:
    """
    A file of the workspace.

    Args:
        path:
            The file, relative to the workspace.

        line:
            Where it is in the file, counted from 1.

        source:
            What of its mention stays in the text; the file comes behind the text then. None if the file
            takes its place.
    """

    path: str
    line: int = attrs.field(default=1, eq=False)
    source: str | None = None


Part: TypeAlias = TextPart | ArgumentPart | CommandPart | FilePart


@attrs.frozen
class CommandParameter:
    """
    What somebody may say to a command.

    Args:
        name:
            Its name, an identifier of Python.

        description:
            What people are told of it.

        default:
            What stands for it if it is not given; None if it has to be.

        word:
            If all arguments are one parameter, which word of these it is, counted from 0.
    """

    name: str
    description: str | None = None
    default: str | None = ""
    word: int | None = None


@attrs.frozen
class Loss:
    """
    What of a file does not come along, and the line where it stands, counted from 1.
    """

    what: str
    line: int = 1


@attrs.frozen
class SlashCommand:
    """
    A slash command.

    Args:
        name:
            Its name; what stands before a ``/`` is the folder of its file.

        description:
            What it does, on one line.

        argument_hint:
            What people are told of its arguments.

        parts:
            Its text.

        parameters:
            What may be said to it, in order.

        losses:
            What its file says besides.
    """

    name: str
    parts: tuple[Part, ...]
    parameters: tuple[CommandParameter, ...] = ()
    description: str | None = None
    argument_hint: str | None = None
    losses: tuple[Loss, ...] = attrs.field(default=(), eq=False)


def brief(text: str) -> str:
    """
    Return *text* for a message, without the end of a long one.
    """
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def in_order(losses: Iterable[Loss]) -> tuple[Loss, ...]:
    """
    Return losses as they stand in a file, each once.
    """
    return tuple(sorted(dict.fromkeys(losses), key=lambda loss: loss.line))


def parts_of(text: str, line: int, found: Iterable[tuple[int, int, Sequence[Part]]]) -> tuple[Part, ...]:
    """
    Return a text as parts.

    Args:
        text:
            The text.

        line:
            The line in which it begins.

        found:
            What stands in it besides text, in order: from where to where, and as which parts. Their lines
            are counted from 0 within the text.
    """
    parts, end, lines = list[Part](), 0, LineNumbers(text, line)
    for start, stop, inner in found:
        parts += (TextPart(text[end:start], lines.at(end)), *inner)
        end = stop
    parts.append(TextPart(text[end:], lines.at(end)))
    return joined_parts(parts)


def joined_parts(parts: Iterable[Part]) -> tuple[Part, ...]:
    """
    Return parts with neighbouring texts as one, and without empty ones.
    """
    return tuple(_joined(parts))


def _joined(parts: Iterable[Part]) -> Iterator[Part]:
    for is_text, run in groupby(parts, lambda part: isinstance(part, TextPart)):
        if not is_text:
            yield from run
            continue
        texts = [part for part in run if isinstance(part, TextPart)]
        if text := "".join(part.text for part in texts):
            yield attrs.evolve(texts[0], text=text)


#: A word: text in single quotes, text in double quotes in which a shell finds nothing, or plain characters.
_WORD: Final = r"""(?:'[^']*'|"[^"$`\\!]*"|[\w@%+:,./^=-]|(?<=[\w.^@-])~)+"""
_WORDS: Final = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*")

#: What only a shell itself can do.
_BUILT_IN: Final = re.compile(
    r"\.|alias|bg|bind|builtin|caller|case|cd|command|compgen|declare|dirs|eval|exec|exit|export|fg|for|function"
    r"|hash|help|history|if|jobs|let|local|popd|pushd|read|return|select|set|shift|shopt|source|trap|type|typeset"
    r"|ulimit|umask|unalias|unset|until|wait|while"
)


def words_of(command: str) -> tuple[str, ...] | None:
    """
    Return the words of a command, if it means the same without a shell; None if it does not.

    Nothing is in it that a shell replaces, joins or redirects, and its program is no part of the shell.
    """
    return None if why_no_words(command) else tuple(shlex.split(command))


def why_no_words(command: str) -> str | None:
    """Return what in a command only a shell can read; None if it needs none."""
    if not command.strip():
        return "it is empty"
    if _WORDS.fullmatch(command) is None:
        return "it needs a shell"
    first = shlex.split(command)[0]
    if _BUILT_IN.fullmatch(first):
        return f"{first!r} is no program: a shell does it itself"
    return "it sets a variable first" if "=" in first or not first else None


#: Names that recipes use.
_TAKEN: Final = frozenset(
    {"Annotated", "Arg", "EmbeddedResource", "Text", "None", "prompt", "run", "str", "user", "words"}
    | {"dict", "enumerate", "workspace"}
)
_LONGEST: Final = 64

#: What makes a folder a skill, in which no recipes are looked for, if a file is called so.
_SKILL: Final = "skill"


def identifier(text: str) -> str | None:
    """Return an identifier of Python that reads as a text; None if nothing in it can be written so."""
    slug = re.sub(r"[^A-Za-z0-9]+", "_", _plain(text)).strip("_").lower()[:_LONGEST]
    if not slug:
        return None
    if slug[0].isdigit():
        slug = f"n{slug}"
    return f"{slug}_" if iskeyword(slug) or slug in _TAKEN else slug


def prompt_name(name: str) -> str:
    """Return the name of the prompt for a command, whose folders stand before a ``/``."""
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", _plain(name)).strip("-")[:_LONGEST].strip("-")
    return slug or "command"


def file_stem(name: str) -> str:
    """Return what the files of a command are called, without an ending."""
    stem = identifier(name) or "command"
    for one in (stem, f"{stem}_command", f"command_{stem}", f"command_{stem}_command"):
        if is_recipe(f"{one}.py") and one != _SKILL:
            return one
    return "command"


def folder_name(name: str) -> str:
    """Return what a folder of commands is called."""
    folder = identifier(name) or "commands"
    return folder if may_enter(folder) else f"{folder}_commands"


class FreeNames:
    """
    Names that differ from each other, in whatever case.

    Args:
        joint:
            What is between a name and the number that is added to it.

        taken:
            Names that are taken from the beginning.
    """

    def __init__(self, joint: str, taken: Iterable[str] = ()) -> None:
        self._joint = joint
        self._taken = {name.casefold() for name in taken}
        self._numbers = dict[str, int]()  # by name: all lower numbers are taken

    def find(self, name: str) -> str:
        """Return a name that is not taken: *name* itself, or with a number."""
        number = self._numbers.get(name, 1)
        while (found := f"{name}{self._joint}{number}" if number > 1 else name).casefold() in self._taken:
            number += 1
        self._numbers[name] = number
        return found

    def take(self, name: str) -> str:
        """Return *name*, which is taken from now on."""
        self._taken.add(name.casefold())
        return name


def _plain(text: str) -> str:
    """A text without accents."""
    return "".join(letter for letter in normalize("NFKD", text) if not combining(letter))
