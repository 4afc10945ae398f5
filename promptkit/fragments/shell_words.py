"""Quoting of commands that users copy: a shell parses each quoted word as one word."""

import sys
from collections.abc import Iterable
from typing import Final

from promptkit.errors import distribution
from promptkit.fragments.invisible import escape_invisible

#: Escapes in words with invisible characters.
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", "'": "\\'"}


def command_line(words: Iterable[str]) -> str:
    """Return a command line of quoted words."""
    return " ".join(map(quoted, words))


def quoted(word: str, *, one_line: bool = True) -> str:
    """
    Quote a word for the shell of this system.

    Invisible characters are escaped in the syntax of bash and zsh. With *one_line*, tabs and line feeds are
    escaped as well.
    """
    if sys.platform == "win32" or escape_invisible(word, one_line=one_line) == word:
        return distribution.quoted(word)
    return f"$'{''.join(map(_escape_character, word))}'"


def quoted_path(path: str) -> str:
    """Quote a path for the shell of this system, so that no program parses it as an option."""
    return quoted(f"./{path}" if path.startswith(("-", "+")) else path)


def _escape_character(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if 0x20 <= code < 0x7F:
        return character
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file name that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
