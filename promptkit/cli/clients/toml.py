"""
Changing one setting of a TOML text, with its layout and comments kept.

tomlkit changes values. Whole tables are put behind the text, and cut out of it: tomlkit may move others then.
"""

import re
import tomllib
from collections.abc import Mapping, MutableMapping
from typing import Any, Final

import tomlkit
from tomlkit.exceptions import TOMLKitError

from promptkit.cli.clients.errors import DocumentError

__all__ = ["put", "read", "take"]

#: A line that begins a table.
_HEADING: Final = re.compile(r"[ \t]*\[\[?[^\[\]\r\n]+\]\]?[ \t]*(?:#.*)?$", re.MULTILINE)


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
        DocumentError: If something on the way is no table, or something else would be changed.
    """
    *above, name = path
    table: Any = read(text)
    for key in above:
        table = _table(table.get(key, {}), name)
    if isinstance(value, Mapping) and name not in table:
        return _appended(text, path, value)  # tomlkit may move other tables to make room
    document = _parsed(text)
    table = document
    for key in above:
        table = table[key]
    table[name] = tomlkit.item(value)
    return tomlkit.dumps(document)


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a setting.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the setting, which exists.

    Raises:
        DocumentError: If something on the way is no table, or something else would be changed.
    """
    without = _without_sections(text, path)
    if without != text:
        return without  # tomlkit may move other tables when one goes
    *above, name = path
    document = _parsed(text)
    table: Any = document
    for key in above:
        table = _table(table.get(key), name)
    if name not in table:
        msg = f"it has no {name!r}"
        raise DocumentError(msg)
    del table[name]
    changed = tomlkit.dumps(document)
    _check_kept(changed, text)
    return changed


def _without_sections(text: str, path: tuple[str, ...]) -> str:
    """The text without the tables at and below a path; comments before the next table stay."""
    keys = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in path)
    own = re.compile(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]")
    kept: list[str] = []
    between: list[str] = []
    is_own = False
    for line in text.splitlines(keepends=True):
        if _HEADING.match(line):
            is_own = own.match(line) is not None
            kept += between
            between = []
            if is_own and kept and not kept[-1].strip():  # the blank line before it
                kept.pop()
        elif is_own:
            between = [*between, line] if not line.strip() or line.lstrip().startswith("#") else []
        if not is_own:
            kept.append(line)
    return "".join(kept + between)


def _appended(text: str, path: tuple[str, ...], value: Mapping[str, Any]) -> str:
    for key in reversed(path):
        value = {key: value}
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    newline = "\r\n" if "\r\n" in text else "\n"
    return text + f"{gap}{tomlkit.dumps(value)}".replace("\n", newline)


def _parsed(text: str) -> tomlkit.TOMLDocument:
    read(text)
    try:
        return tomlkit.parse(text)
    except TOMLKitError as error:  # where it knows less than the standard library
        msg = f"it cannot be changed with its layout kept: {error}"
        raise DocumentError(msg) from None


def _table(found: Any, name: str) -> MutableMapping[str, Any]:
    if not isinstance(found, MutableMapping):
        msg = f"{name!r} has no place in it, as what should hold it is no table"
        raise DocumentError(msg)
    return found


def _check_kept(less: str, more: str) -> None:
    """Check that a text has all lines of another one, in their order."""
    lines = iter(more.splitlines())
    if not all(any(line == other for other in lines) for line in less.splitlines()):
        msg = "it cannot be changed without touching other lines"
        raise DocumentError(msg)
