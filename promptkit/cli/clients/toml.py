"""Changing one setting of a TOML text, with its layout and comments kept, by tomlkit."""

import tomllib
from collections.abc import MutableMapping
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError

from promptkit.cli.clients.errors import DocumentError

__all__ = ["put", "read", "take"]


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
    document = _parsed(text)
    table: MutableMapping[str, Any] = document
    for key in above:
        if key not in table:
            table[key] = tomlkit.table(is_super_table=True)
        table = _table(table[key], name)
    is_new = name not in table
    if is_new:
        table[name] = value
    else:
        table[name] = tomlkit.item(value)
    changed = tomlkit.dumps(document)
    if is_new:
        _check_kept(text, changed)
    return changed


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
    *above, name = path
    document = _parsed(text)
    table: MutableMapping[str, Any] = document
    for key in above:
        table = _table(table.get(key), name)
    if name not in table:
        msg = f"it has no {name!r}"
        raise DocumentError(msg)
    del table[name]
    changed = tomlkit.dumps(document)
    _check_kept(changed, text)
    return changed


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
