"""Parses ``KEY=VALUE``, ``KEY=@FILE`` and ``KEY=@-`` on the command line into what a client would send."""

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
from promptkit.files.reading import TooLargeError, read_named_file
from promptkit.protocol.limits import Limits
from promptkit.types.kinds import is_bytes, members_of, unwrap_type

#: Half of a surrogate pair, which UTF-8 cannot encode.
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


class ArgumentSyntaxError(ValueError):
    """A command-line argument is not ``KEY=VALUE``, or its value cannot be read."""


def read_arguments(arguments: Arguments, words: Sequence[str], folder: Path) -> dict[str, str]:
    """
    Parse ``KEY=VALUE`` words into the arguments that a client would send.

    Args:
        arguments:
            The declared arguments. Files for arguments of type `bytes` are encoded in base64.

        words:
            The command-line arguments.

        folder:
            The base folder for relative paths.

    Raises:
        ArgumentSyntaxError: If a word has no ``=``, a key is repeated, a value is not text, or a file
            or standard input cannot be read.
    """
    values: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        description = "a word without '='" if arguments.secret else repr(word)
        _require(equals, f"{description} is not an argument: write KEY=VALUE, or KEY=@FILE")
        _require(key not in values, f"{key!r} was given twice: pass it only once")
        values[key] = value
    is_read_once = [*values.values()].count("@-") < 2
    _require(is_read_once, "only one argument can be read from standard input: pass KEY=@FILE for the others")
    return {key: _read_value(arguments, key, value, folder) for key, value in values.items()}


def read_typed_arguments(arguments: Arguments, end: str) -> dict[str, str]:
    """
    Read the text typed after a slash command from standard input, and return it as arguments.

    The input starts with a dot, so that shells and clients do not expand the start of the text, such as
    ``~/notes``. A single argument receives the whole text. With several arguments, the text can start with
    ``KEY=VALUE`` pairs. If exactly one required argument is still missing, it receives the remaining text.
    Otherwise, the remaining text is split as in a shell into values for the remaining arguments, in the order
    of the signature. Empty text means that there are no arguments.

    Args:
        arguments:
            The declared arguments.

        end:
            The line that must end the input, because clients can truncate or change the text.

    Raises:
        ArgumentSyntaxError: If the end is missing, or if the input is not text or is too long.
    """
    data = _read_source("--typed", "-", Path(), "standard input")
    text = _decode(data, "the typed arguments are not UTF-8")
    typed = text.removeprefix(".").removesuffix(f"\n{end}\n")
    is_complete = len(typed) == len(text) - len(f".\n{end}\n") and end not in typed
    hint = "omit text that the client interprets, such as ``` in Claude Code, or write it to a file"
    _require(is_complete, f"the client changed or truncated the typed arguments: {hint}")
    typed = typed.replace("\r\n", "\n").replace("\r", "\n")
    names = [argument.name for argument in arguments.ordered]
    if not typed.strip():
        return {}
    return {names[0]: typed} if len(names) == 1 else _split_typed(names, arguments.required, typed)


def _split_typed(names: Sequence[str], required: Collection[str], typed: str) -> dict[str, str]:
    """Split typed text into the values of several arguments."""
    values: dict[str, str] = {}
    named = re.compile(rf"\s*({'|'.join(names) or '(?!)'})=('[^']*'|\"[^\"]*\"|\S*)(?:\s+|\Z)")
    while (match := named.match(typed)) is not None and match[1] not in values:
        values[match[1]] = match[2][1:-1] if match[2][:1] in {"'", '"'} else match[2]
        typed = typed[match.end() :]
    remaining = [name for name in names if name not in values]
    missing = [name for name in remaining if name in required]
    if len(missing) == 1 and typed:
        return {**values, missing[0]: typed}
    try:
        words = shlex.split(typed)
    except ValueError as error:
        hint = "use the other kind of quotes around the text"
        msg = f"the typed arguments have an unclosed quote ({error}): {hint}"
        raise ArgumentSyntaxError(msg) from None
    hint = "put words that belong together in quotes" if names else "the prompt takes no arguments"
    message = f"too many values were typed: {len(words)} instead of at most {len(remaining)}; {hint}"
    _require(len(words) <= len(remaining), message)
    return {**values, **dict(zip(remaining, words, strict=False))}


def redactor_for_words(arguments: Arguments, words: Sequence[str]) -> Redactor:
    """
    Return a redactor for the secrets in ``KEY=VALUE`` words whose values have not been read yet.

    It also hides secrets that start with ``@``, because users can mean them as text, not as names of files.
    """
    pairs = (word.partition("=") for word in words)
    return Redactor.of(arguments, {key: value.removeprefix("@") for key, _, value in pairs})


def _read_value(arguments: Arguments, key: str, value: str, folder: Path) -> str:
    """
    Return the value of one argument.

    Args:
        arguments:
            The declared arguments.

        key:
            The argument's name.

        value:
            Text, or ``@FILE`` for the content of a file.

        folder:
            The base folder for relative paths.

    Raises:
        ArgumentSyntaxError: If the value is not text, or the file cannot be read.
    """
    if not value.startswith("@") or value.startswith("@@"):
        hint = f"write it to a file and pass {key}=@FILE"
        _require(not _SURROGATE.search(value), f"{key!r} requires text, but its value is not UTF-8: {hint}")
        _check_not_file_name(arguments.by_name.get(key), value, folder)
        return value.removeprefix("@")
    name = value[1:]
    _require(name, f"{key!r} has no file name after '@': write {key}=@FILE, or {key}=@@ for the text '@'")
    source = "standard input" if name == "-" else repr(name)
    data = _read_source(key, name, folder, source)
    argument = arguments.by_name.get(key)
    if argument is not None and _accepts_bytes(argument):
        from pybase64 import b64encode_as_string

        return b64encode_as_string(data)
    text = _decode(data, f"{key!r} requires text, but {source} is not UTF-8")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _decode(data: bytes, reason: str) -> str:
    """Decode UTF-8. Raises ArgumentSyntaxError with *reason* if *data* is not UTF-8."""
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise ArgumentSyntaxError(reason) from None


def add_known_arguments(error: ArgumentsError, arguments: Arguments) -> ArgumentsError:
    """
    Return *error* with the known arguments added to its messages about unknown arguments.

    Messages that already suggest an argument stay the same.
    """
    known = f", which takes {', '.join(arguments.by_name) or 'none'}"
    errors = (
        structs.replace(argument_error, reason=f"{argument_error.reason}{known}")
        if argument_error.nearest is None and argument_error.argument not in arguments.by_name
        else argument_error
        for argument_error in error.errors
    )
    return ArgumentsError(error.prompt, tuple(errors), error.kind)


def _check_not_file_name(argument: Argument | None, value: str, folder: Path) -> None:
    """Reject the name of a file where its content is expected, unless the argument accepts any text."""
    if argument is None or _accepts(argument, lambda kind: kind is str):
        return
    if argument.reader.is_json or _accepts_bytes(argument):
        is_name = os.path.isfile(folder / value)  # noqa: PTH113 (any text is allowed)
        name = argument.name
        example = "" if argument.arg.secret else f", for example {name}=@{value}"
        _require(
            not is_name,
            f"the value of {name!r} is the name of a file, not its content: put @ before it{example}",
        )


def _accepts_bytes(argument: Argument) -> bool:
    """Return whether a file can be sent in base64, because the argument accepts bytes."""
    return argument.takes_bytes or _accepts(argument, is_bytes)


def _accepts(argument: Argument, matches: Callable[[Any], bool]) -> bool:
    """Return whether *matches* is true for the argument's type, or for any member of its union."""
    return any(
        matches(unwrap_type(member)) for member in members_of(unwrap_type(argument.annotation, core=True))
    )


def _read_source(key: str, name: str, folder: Path, source: str) -> bytes:
    max_size, is_input = Limits().line, name == "-"
    too_much = f"{key!r} cannot be read from {source}: it is larger than {max_size:,} bytes"
    _require(not is_input or sys.stdin is not None, f"{key!r} cannot be read: standard input is closed")
    try:
        if not is_input:
            return read_named_file(folder / name, max_size)
        data = sys.stdin.buffer.read(max_size + 1)
    except TooLargeError:
        raise ArgumentSyntaxError(too_much) from None
    except (OSError, ValueError) as error:  # ValueError: the path contains a null character
        msg = f"{key!r} cannot be read from {source}: {getattr(error, 'strerror', None) or error}"
        raise ArgumentSyntaxError(msg) from None
    _require(len(data) <= max_size, too_much)
    return data


def _require(is_valid: object, reason: str) -> None:
    if not is_valid:
        raise ArgumentSyntaxError(reason)
