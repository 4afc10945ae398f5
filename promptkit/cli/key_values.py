"""Arguments on the command line: ``KEY=VALUE``, ``KEY=@FILE`` and ``KEY=@-``, read as a client sends them."""

import os
import re
import shlex
import sys
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.catalog.redaction import Redactor
from promptkit.errors.exceptions import ArgumentsError
from promptkit.errors.suggestions import near_file
from promptkit.files.reading import TooLargeError, read_named_file
from promptkit.protocol.limits import Limits
from promptkit.types.kinds import is_bytes, members_of, plain

#: What looks like the name of a file. Neither base64 nor JSON ends so, and a URI has a colon.
_FILE_NAME: Final = re.compile(r'[^:\[{"\n]*\w\.[A-Za-z][A-Za-z0-9]{1,4}')
_LONGEST_NAME: Final = 4096

#: Half of a surrogate pair, which UTF-8 cannot encode.
_HALF: Final = re.compile("[\ud800-\udfff]")


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
    given: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        shown = "a word without '='" if arguments.secret else repr(word)
        _check(equals, f"{shown} is not an argument: write KEY=VALUE, or KEY=@FILE")
        _check(key not in given, f"{key!r} is given twice")
        given[key] = value
    from_input = [repr(key) for key, value in given.items() if value == "@-"]
    hint = "put the others into files, and write KEY=@FILE"
    _check(
        len(from_input) < 2, f"only one of {', '.join(from_input)} can be read from standard input: {hint}"
    )
    return {key: read_value(arguments, key, value, folder) for key, value in given.items()}


def read_typed(arguments: Arguments, end: str) -> dict[str, str]:
    """
    Read what was typed behind a slash command from standard input.

    It stands behind a dot, which keeps shells and clients from reading its beginning, as that of ``~/notes``.
    All of it is the value of an argument that is the only one. Of several, some may be ``KEY=VALUE`` at its
    beginning. The rest is the value of the only one that is still required; else it is words as a shell has
    them, in the order of the signature. What is empty is not given.

    Args:
        arguments:
            What may be given.

        end:
            The line behind it, with which it has to end: clients may cut it, or change it.

    Raises:
        ArgumentSyntaxError: If it has no such end, is not text, or there is too much of it.
    """
    data = _read("--typed", "-", Path(), "standard input")
    try:
        text = data.decode()
    except UnicodeDecodeError:
        msg = "what was typed is not UTF-8"
        raise ArgumentSyntaxError(msg) from None
    typed = text.removeprefix(".").removesuffix(f"\n{end}\n")
    is_whole = len(typed) == len(text) - len(f".\n{end}\n") and end not in typed
    hint = "leave out what it reads itself, as ``` in Claude Code, or put it into a file"
    _check(is_whole, f"what was typed did not arrive as it was: the client has cut it, or changed it: {hint}")
    typed = typed.replace("\r\n", "\n").replace("\r", "\n")
    names = [one.name for one in arguments.ordered]
    if not typed.strip():
        return {}
    return {names[0]: typed} if len(names) == 1 else _by_name(names, arguments.required, typed)


def _by_name(names: Sequence[str], required: Collection[str], typed: str) -> dict[str, str]:
    """What was typed, by the names of several arguments."""
    given: dict[str, str] = {}
    named = re.compile(rf"\s*({'|'.join(names) or '(?!)'})=('[^']*'|\"[^\"]*\"|\S*)(?:\s+|\Z)")
    while (found := named.match(typed)) is not None and found[1] not in given:
        given[found[1]] = found[2][1:-1] if found[2][:1] in {"'", '"'} else found[2]
        typed = typed[found.end() :]
    free = [name for name in names if name not in given]
    missing = [name for name in free if name in required]
    if len(missing) == 1 and typed:
        return {**given, missing[0]: typed}
    try:
        words = shlex.split(typed)
    except ValueError as error:
        msg = f"what was typed has a quote without an end ({error}): write it within quotes of the other kind"
        raise ArgumentSyntaxError(msg) from None
    hint = "put words that belong together into quotes" if names else "it takes none"
    shown = f"values that were typed: {len(words)}, arguments for them: {len(free)}; {hint}"
    _check(len(words) <= len(free), shown)
    return {**given, **dict(zip(free, words, strict=False))}


def unread_secrets(arguments: Arguments, words: Sequence[str]) -> Redactor:
    """Hides secrets that could not be read: one that begins with ``@`` was taken for a file's name."""
    pairs = (word.partition("=") for word in words)
    return Redactor.of(arguments, {key: value.removeprefix("@") for key, _, value in pairs})


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
    if not value.startswith("@") or value.startswith("@@"):
        hint = f"put it into a file and write {key}=@FILE"
        _check(not _HALF.search(value), f"{key!r} takes text, and its value is not UTF-8: {hint}")
        _check_no_name(arguments.by_name.get(key), value, folder)
        return value.removeprefix("@")
    name = value[1:]
    _check(name, f"{key!r} names no file: write {key}=@FILE, or {key}=@@ for the text '@'")
    source = "standard input" if name == "-" else repr(name)
    data = _read(key, name, folder, source)
    argument = arguments.by_name.get(key)
    if argument is not None and _takes_bytes(argument):
        from pybase64 import b64encode_as_string

        return b64encode_as_string(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        msg = f"{key!r} takes text, and {source} is not UTF-8"
        raise ArgumentSyntaxError(msg) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def with_known(error: ArgumentsError, arguments: Arguments) -> ArgumentsError:
    """Return the error; an unknown argument that is near to none is told with those that there are."""
    known = f", which takes {', '.join(arguments.by_name) or 'none'}"
    faults = (
        structs.replace(fault, reason=f"{fault.reason}{known}")
        if fault.nearest is None and fault.argument not in arguments.by_name
        else fault
        for fault in error.errors
    )
    return ArgumentsError(error.prompt, tuple(faults), error.kind)


def _check_no_name(argument: Argument | None, value: str, folder: Path) -> None:
    """Refuse the name of a file for what is in it. Where any text is taken, it may be meant."""
    if argument is None or _takes(argument, lambda kind: kind is str):
        return
    if argument.reader.is_json or _takes_bytes(argument):
        looks_so = len(value) <= _LONGEST_NAME and _FILE_NAME.fullmatch(value)
        is_name = looks_so or os.path.isfile(folder / value)  # noqa: PTH113 (it takes any text)
        name, shown = argument.name, "" if argument.arg.secret else f", as in {argument.name}=@{value}"
        _check(not is_name, f"{name!r} is the name of a file, not what is in it: write @ before it{shown}")


def _takes_bytes(argument: Argument) -> bool:
    """Whether a file may be sent in base64: bytes may be one of several types that are taken."""
    return argument.takes_bytes or _takes(argument, is_bytes)


def _takes(argument: Argument, is_wanted: Callable[[Any], bool]) -> bool:
    """Whether its type, or one of several that are taken, is one that is wanted."""
    return any(is_wanted(plain(member)) for member in members_of(plain(argument.annotation, core=True)))


def _read(key: str, name: str, folder: Path, source: str) -> bytes:
    max_size, is_input = Limits().line, name == "-"
    too_much = f"{key!r} cannot be read from {source}: it holds more than {max_size:,} bytes"
    _check(not is_input or sys.stdin is not None, f"{key!r} cannot be read: standard input is closed")
    try:
        if not is_input:
            return read_named_file(folder / name, max_size)
        data = sys.stdin.buffer.read(max_size + 1)
    except TooLargeError:
        raise ArgumentSyntaxError(too_much) from None
    except (OSError, ValueError) as error:  # no path has a null character
        hint = near_file(name, folder) if isinstance(error, FileNotFoundError) else ""
        msg = f"{key!r} cannot be read from {source}: {getattr(error, 'strerror', None) or error}{hint}"
        raise ArgumentSyntaxError(msg) from None
    _check(len(data) <= max_size, too_much)
    return data


def _check(is_fine: object, reason: str) -> None:
    if not is_fine:
        raise ArgumentSyntaxError(reason)
