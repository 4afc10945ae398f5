"""Quoting of commands that users copy: a shell parses each quoted word as one word."""

from collections.abc import Iterable

from promptkit.errors import distribution
from promptkit.fragments.invisible import escape_invisible


def command_line(words: Iterable[str]) -> str:
    """Return a command line of quoted words."""
    return " ".join(map(quoted, words))


def quoted(word: str, *, one_line: bool = True) -> str:
    """
    Quote a word for the shell of this system.

    Invisible characters, and with *one_line* also tabs and line feeds, are shown as escapes. A shell does not
    convert these back.
    """
    return escape_invisible(distribution.quote_for_shell(word), one_line=one_line)


def quoted_path(path: str) -> str:
    """Quote a path for the shell of this system, so that no program parses it as an option."""
    return quoted(f"./{path}" if path.startswith(("-", "+")) else path)
