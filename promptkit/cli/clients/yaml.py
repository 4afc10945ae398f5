"""
Changing one entry of a YAML text by its lines, with every other line left as it is.

Lines may deceive, as those of a long string: whatever calls this reads the new text, and compares.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any, Final

from promptkit.cli.clients.texts import DocumentError, as_json, cannot_be_changed, joined, newline_of

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
    Return a text with an entry in place of what its lines say, or behind the others if it is new.

    Args:
        text:
            What `read` takes.

        path:
            The key of the mapping that holds the entries, and that of the entry.

        value:
            What the entry holds.

    Raises:
        DocumentError: If that is something that only YAML has.
    """
    (above, name), lines, newline = path, text.splitlines(keepends=True), newline_of(text)
    holder = _find(lines, above, 0, len(lines))
    if holder is None:
        return joined(text, "".join(_dumped({above: {name: value}}, 0, newline)), "")
    end = _end(lines, holder)
    inside = [at for at in range(holder + 1, end) if _says_something(lines[at])]
    indent = _indent(lines[inside[0]]) if inside else _indent(lines[holder]) + 2
    if not inside:
        lines[holder] = re.sub(r":[ \t]*\{\}", ":", lines[holder], count=1)
    at = _find(lines, name, holder + 1, end)
    first, last = (end, end) if at is None else (at, _end(lines, at))
    shown = "".join(_dumped({name: value}, indent, newline))
    return joined("".join(lines[:first]), shown, "".join(lines[last:]))


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without an entry.

    Args:
        text:
            What `read` takes.

        path:
            The key of the mapping that holds the entries, and that of the entry, which exists.

    Raises:
        DocumentError: If one of these has no line of its own.
    """
    (above, name), lines = path, text.splitlines(keepends=True)
    holder = _find(lines, above, 0, len(lines))
    at = None if holder is None else _find(lines, name, holder + 1, _end(lines, holder))
    if holder is None or at is None:
        raise cannot_be_changed()
    del lines[at : _end(lines, at)]
    if _end(lines, holder) == holder + 1:  # it holds nothing now
        lines[holder] = lines[holder].replace(":", ": {}", 1)
    return "".join(lines)


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
