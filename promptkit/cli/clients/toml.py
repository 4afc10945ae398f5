"""
Changing one setting of a TOML text, with its layout and comments kept.

A new table is put behind the text. tomlkit changes values, in the lines of their table alone.
"""

import re
import tomllib
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from promptkit.cli.clients.errors import DocumentError
from promptkit.cli.clients.layout import nested, newline_of

__all__ = ["put", "read", "take"]

#: A line that begins a table.
_HEADING: Final = re.compile(r"^[ \t]*\[\[?[^\[\]\r\n]+\]\]?[ \t]*(?:#.*)?\r?$", re.MULTILINE)


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says.

    Raises:
        DocumentError: If it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except ValueError as error:
        msg = f"this is not TOML: {error}"
        raise DocumentError(msg) from None


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """
    Return a text with a setting.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the setting. Tables on the way are made.

        value:
            What it is set to.

    Raises:
        DocumentError: If something on the way is no table, or none of its own.
    """
    *above, name = path
    table: Any = read(text)
    for key in above:
        table = _table(table.get(key, {}), name)
    if isinstance(value, Mapping) and name not in table:
        return _appended(text, path, value)  # tomlkit may move other tables to make room
    return _edited(text, tuple(above), lambda found: found.update({name: tomlkit.item(value)}))


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a setting.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the setting, which exists.

    Raises:
        DocumentError: If something on the way is no table, or none of its own.
    """
    *above, name = path
    if (section := _section(text, path)) is not None:
        return _without(text, *section)
    return _edited(text, tuple(above), lambda found: found.pop(name))


def _edited(text: str, path: tuple[str, ...], edit: Callable[[MutableMapping[str, Any]], Any]) -> str:
    """The text with something done to one of its tables."""
    section = _section(text, path)
    if section is None:
        msg = f"{path[-1]!r} is no table of its own in it"
        raise DocumentError(msg)
    start, end = section
    try:
        document = tomlkit.parse(text[start:end])  # of the whole text, it may move other tables
        table: Any = document
        for key in path:
            table = table[key]
    except TOMLKitError as error:  # the section was none, but lines of a text
        msg = f"{path[-1]!r} cannot be found in it: {error}"
        raise DocumentError(msg) from None
    edit(table)
    return text[:start] + tomlkit.dumps(document) + text[end:]


def _section(text: str, path: tuple[str, ...]) -> tuple[int, int] | None:
    """Where the table at a path begins, and where that and those below it end; None if it has no heading."""
    keys = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in path)
    own = re.compile(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]].*")
    start: int | None = None
    for heading in _HEADING.finditer(text):
        is_own = own.match(heading[0]) is not None
        if start is None and is_own:
            start = heading.start()
        elif start is not None and not is_own:
            return start, heading.start()
    return None if start is None else (start, len(text))


def _without(text: str, start: int, end: int) -> str:
    """The text without a table, and the blank line before it. Comments before the next table stay."""
    lines = text[start:end].splitlines(keepends=True)
    while not lines[-1].strip() or lines[-1].lstrip().startswith("#"):
        end -= len(lines.pop())
    before = text[:start].splitlines(keepends=True)
    if before and not before[-1].strip():
        before.pop()
    return "".join(before) + text[end:]


def _appended(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + f"{gap}{tomlkit.dumps(nested(path, value))}".replace("\n", newline_of(text))


def _table(found: Any, name: str) -> MutableMapping[str, Any]:
    if not isinstance(found, MutableMapping):
        msg = f"{name!r} has no place in it, as what should hold it is no table"
        raise DocumentError(msg)
    return found
