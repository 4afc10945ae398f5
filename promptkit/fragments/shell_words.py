"""Quoting of commands that users copy, so that a shell parses each word as a single word."""

from collections.abc import Iterable

from promptkit.errors import distribution
from promptkit.fragments.invisible import escape_invisible


def command_line(words: Iterable[str]) -> str:
    """Quote words and join them into a command line."""
    return " ".join(map(quoted, words))


def quoted(word: str, *, one_line: bool = True) -> str:
    """
    Quote a word for the shell of this operating system.

    Invisible characters are replaced with escapes, and so are tabs and line feeds if *one_line* is true. A
    shell does not convert the escapes back.
    """
    return escape_invisible(distribution.quote_for_shell(word), one_line=one_line)


def quoted_path(path: str) -> str:
    """Quote a path for the shell of this operating system, so that no program parses it as an option."""
    return quoted(f"./{path}" if path.startswith(("-", "+")) else path)
