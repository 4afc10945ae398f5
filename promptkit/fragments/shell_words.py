"""Words of commands that people copy: whatever they hold, a shell takes each for one word."""

import shlex
import sys
from collections.abc import Iterable
from subprocess import list2cmdline
from typing import Final

from promptkit.fragments.invisible import escape_invisible

#: How a word is written in which nothing is invisible.
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\\": "\\\\", "'": "\\'"}


def command_line(words: Iterable[str]) -> str:
    """Return a command of one line."""
    return " ".join(map(quoted, words))


def quoted(word: str, *, one_line: bool = True) -> str:
    """
    Return a word as the shell of this system reads it.

    What nobody would see is escaped, which needs bash or zsh.

    Args:
        word:
            The word.

        one_line:
            Whether tabs and line feeds are escaped, too.
    """
    if sys.platform == "win32":
        return list2cmdline([word])
    if escape_invisible(word, one_line=one_line) == word:
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def quoted_path(path: str) -> str:
    """Return a path as the shell of this system reads it, such that no program takes it for an option."""
    return quoted(f"./{path}" if path.startswith(("-", "+")) else path)


def _escaped(character: str) -> str:
    code = ord(character)
    if character in _ESCAPES:
        return _ESCAPES[character]
    if 0x20 <= code < 0x7F:
        return character
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file's name that is no UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
