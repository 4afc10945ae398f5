"""Arguments on the command line: ``KEY=VALUE``, ``KEY=@FILE`` and ``KEY=@-``, read as a client sends them."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, get_args

from promptkit.catalog.arguments import Arguments
from promptkit.catalog.redaction import Redactor
from promptkit.protocol.limits import Limits

__all__ = ["ArgumentSyntaxError", "current_folder", "read_arguments", "read_value", "unread_secrets"]

_STANDARD_INPUT: Final = "-"


class ArgumentSyntaxError(ValueError):
    """A word of the command line that is not an argument, or whose value cannot be read."""


def current_folder() -> Path:
    """The folder that relative paths start from, taken before a recipe may change it."""
    try:
        return Path.cwd()
    except OSError:  # it was deleted: only absolute paths can be read
        return Path()


def read_arguments(arguments: Arguments, words: Sequence[str], folder: Path) -> dict[str, str]:
    """
    Read ``KEY=VALUE`` words as a client would send them.

    Args:
        arguments:
            What may be given; for a parameter that takes bytes, files are sent in base64.

        words:
            The words of the command line.

        folder:
            The folder that relative paths start from.

    Raises:
        ArgumentSyntaxError: If a word has no ``=``, a key is given twice, a value is not text, or a
            file cannot be read.
    """
    takes_secrets = bool(arguments.secret)
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals:
            shown = "a word without '='" if takes_secrets else repr(word)
            msg = f"{shown} is not an argument: write KEY=VALUE, or KEY=@FILE"
            raise ArgumentSyntaxError(msg)
        if key in given:
            msg = f"{key!r} is given twice"
            raise ArgumentSyntaxError(msg)
        given[key] = value
    _check_standard_input([key for key, value in given.items() if value == f"@{_STANDARD_INPUT}"])
    return {key: read_value(arguments, key, value, folder) for key, value in given.items()}


def unread_secrets(arguments: Arguments, words: Sequence[str]) -> Redactor:
    """Hides secrets that could not be read: one that begins with ``@`` was taken for a file's name."""
    pairs = (word.partition("=") for word in words)
    return Redactor.of(arguments, {key: value.removeprefix("@") for key, _, value in pairs})


def _check_standard_input(keys: Sequence[str]) -> None:
    # Standard input can be read only once.
    if len(keys) > 1:
        shown = " and ".join(map(repr, keys))
        msg = f"{shown} cannot both be read from standard input: put one into a file and write KEY=@FILE"
        raise ArgumentSyntaxError(msg)
    if keys and sys.stdin is None:
        msg = f"{keys[0]!r} cannot be read: standard input is closed"
        raise ArgumentSyntaxError(msg)


def read_value(arguments: Arguments, key: str, value: str, folder: Path) -> str:
    """
    Read the value of one argument.

    Args:
        arguments:
            What may be given.

        key:
            The argument's name.

        value:
            Text, or ``@FILE`` for what is in a file.

        folder:
            The folder that relative paths start from.

    Raises:
        ArgumentSyntaxError: If it is not text, or the file cannot be read.
    """
    if not value.startswith("@"):
        return _checked(key, value)
    if value.startswith("@@"):
        return _checked(key, value[1:])
    name = value[1:]
    if not name:
        msg = f"{key!r} names no file: write {key}=@FILE, or {key}=@@ for the text '@'"
        raise ArgumentSyntaxError(msg)
    data = _read(key, name, folder)
    argument = arguments.by_name.get(key)
    if argument is not None and bytes in (argument.annotation, *get_args(argument.annotation)):
        from pybase64 import b64encode_as_string

        return b64encode_as_string(data)
    return _decoded(key, name, data)


def _read(key: str, name: str, folder: Path) -> bytes:
    source = "standard input" if name == _STANDARD_INPUT else repr(name)
    max_size = Limits().line
    try:
        if name == _STANDARD_INPUT:
            data = sys.stdin.buffer.read(max_size + 1)
        else:
            with (folder / name).open("rb") as file:
                data = file.read(max_size + 1)
    except (OSError, ValueError) as error:  # a recipe may have closed standard input
        reason = getattr(error, "strerror", None) or error
        msg = f"{key!r} cannot be read from {source}: {reason}"
        raise ArgumentSyntaxError(msg) from None
    if len(data) > max_size:
        msg = f"{key!r} cannot be read from {source}: it holds more than {max_size:,} bytes"
        raise ArgumentSyntaxError(msg)
    return data


def _decoded(key: str, name: str, data: bytes) -> str:
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        source = "standard input" if name == _STANDARD_INPUT else repr(name)
        msg = f"{key!r} takes text, and {source} is not UTF-8"
        raise ArgumentSyntaxError(msg) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _checked(key: str, value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        msg = f"{key!r} takes text, and its value is not UTF-8: put it into a file and write {key}=@FILE"
        raise ArgumentSyntaxError(msg) from None
    return value
