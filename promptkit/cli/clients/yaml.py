"""
Changing one entry of a YAML text by its lines, with every other line left as it is.

Lines may deceive, as those of a long string: whatever calls this reads the new text, and compares.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from promptkit.cli.clients.texts import (
    DocumentError,
    as_json,
    cannot_be_changed,
    joined,
    nested,
    newline_of,
)

__all__ = ["put", "read", "take"]

#: How long a text may be, as a second goes into that many characters.
_MAX_CHARACTERS: Final = 1 << 17

#: What needs no quotes, but for words that mean something else than text.
_WORD: Final = re.compile(r"(?!(?:true|false|null|yes|no|on|off|y|n)\Z)[a-z/][a-z0-9_./-]*", re.IGNORECASE)


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says; an empty mapping for an empty text.

    Raises:
        DocumentError: If it is no YAML mapping, is too long, or has aliases, which may stand for anything.
    """
    from ruamel.yaml import YAML  # slow to import
    from ruamel.yaml.error import YAMLError
    from ruamel.yaml.events import AliasEvent

    if len(text) > _MAX_CHARACTERS:
        msg = f"it has more than {_MAX_CHARACTERS:,} characters, which are too many to be read as YAML"
        raise DocumentError(msg)
    reader = YAML(typ="safe", pure=True)
    try:
        if "*" in text and any(isinstance(event, AliasEvent) for event in reader.parse(StringIO(text))):
            msg = "it has aliases, and what these stand for would be changed, too"
            raise DocumentError(msg)
        data = reader.load(text)
    except (YAMLError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        msg = f"this is not YAML: {getattr(error, 'problem', None) or error}"
        raise DocumentError(msg, *place) from None
    if data is not None and not isinstance(data, dict):
        msg = "it holds no mapping, so that a server has no place in it"
        raise DocumentError(msg)
    return data or {}


def put(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    """
    Return a text with a mapping in place of what its lines say, or behind the others if it is new.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the mapping. Others on the way are made.

        value:
            What it holds.

    Raises:
        DocumentError: If it holds what only YAML has.
    """
    lines = text.splitlines(keepends=True)
    start, end = 0, len(lines)
    for depth, key in enumerate(path):
        at = _find(lines, key, start, end)
        if at is None:
            return _inserted(text, start, end, nested(path[depth:], value))
        start, end = at + 1, _end(lines, at)
    first = start - 1
    shown = "".join(_dumped({path[-1]: value}, _indent(lines[first]), newline_of(text)))
    return joined("".join(lines[:first]), shown, "".join(lines[end:]))


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a mapping.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the mapping, which exists.

    Raises:
        DocumentError: If a key on the way has no line of its own.
    """
    lines = text.splitlines(keepends=True)
    start, end, holder, at = 0, len(lines), 0, 0
    for key in path:
        found = _find(lines, key, start, end)
        if found is None:
            raise cannot_be_changed()
        holder, at = at, found
        start, end = at + 1, _end(lines, at)
    del lines[at:end]
    if _end(lines, holder) == holder + 1:  # it holds nothing now
        lines[holder] = lines[holder].replace(":", ": {}", 1)
    return "".join(lines)


def _inserted(text: str, start: int, end: int, value: Mapping[str, Any]) -> str:
    """The text with a value behind what is between two lines; the one before them holds it."""
    lines = text.splitlines(keepends=True)
    inside = [line for line in lines[start:end] if _says_something(line)]
    indent = _indent(inside[0]) if inside else _indent(lines[start - 1]) + 2 if start else 0
    if start and not inside:
        lines[start - 1] = re.sub(r":[ \t]*\{\}", ":", lines[start - 1], count=1)
    shown = "".join(_dumped(value, indent, newline_of(text)))
    return joined("".join(lines[:end]), shown, "".join(lines[end:]))


def _find(lines: Sequence[str], key: str, start: int, end: int) -> int | None:
    """The line of a key among those of a mapping, which is between two lines."""
    inside = [at for at in range(start, end) if _says_something(lines[at])]
    named = re.compile(rf"[ ]*([\"']?){re.escape(key)}\1[ \t]*:\s")
    own = (at for at in inside if _indent(lines[at]) == _indent(lines[inside[0]]))
    return next((at for at in own if named.match(f"{lines[at]}\n")), None)


def _end(lines: Sequence[str], at: int) -> int:
    """Where the value of a key ends, without the comments and blank lines behind it."""
    end, indent = at + 1, _indent(lines[at])
    for below in range(at + 1, len(lines)):
        if not _says_something(lines[below]):
            continue
        is_item = lines[below].split()[0] == "-"  # those of a list may stand right below its key
        if _indent(lines[below]) < indent + (not is_item):
            break
        end = below + 1
    return end


def _says_something(line: str) -> bool:
    return line.strip()[:1] not in {"", "#"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _dumped(value: Mapping[str, Any], indent: int, end: str) -> Iterator[str]:
    """The lines of a mapping."""
    for key, one in value.items():
        if isinstance(one, Mapping) and one:
            yield f"{' ' * indent}{_shown(key)}:{end}"
            yield from _dumped(one, indent + 2, end)
        else:
            yield f"{' ' * indent}{_shown(key)}: {_shown(one)}{end}"


def _shown(value: Any) -> str:
    is_word = isinstance(value, str) and _WORD.fullmatch(value)
    return value if is_word else as_json(value)
