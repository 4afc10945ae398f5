"""Which commands of a shell need none: those that are a program and its words."""

import re
import shlex
from typing import Final

__all__ = ["why_no_words", "words_of"]

#: A word: text in single quotes, text in double quotes in which a shell finds nothing, or plain characters.
_WORD: Final = r"""(?:'[^']*'|"[^"$`\\!]*"|[\w@%+:,./^=-]|(?<=[\w.^@-])~)+"""
_WORDS: Final = re.compile(rf"[ \t]*{_WORD}(?:[ \t]+{_WORD})*[ \t]*")

#: What only a shell itself can do.
_BUILT_IN: Final = re.compile(
    r"\.|alias|bg|bind|builtin|caller|case|cd|command|compgen|declare|dirs|eval|exec|exit|export|fg|for|function"
    r"|hash|help|history|if|jobs|let|local|popd|pushd|read|return|select|set|shift|shopt|source|trap|type|typeset"
    r"|ulimit|umask|unalias|unset|until|wait|while"
)


def words_of(command: str) -> tuple[str, ...] | None:
    """
    Return the words of a command, if it means the same without a shell; None if it does not.

    Nothing is in it that a shell replaces, joins or redirects, and its program is no part of the shell.
    """
    return None if why_no_words(command) else tuple(shlex.split(command))


def why_no_words(command: str) -> str | None:
    """Return what in a command only a shell can read; None if it needs none."""
    if not command.strip():
        return "it is empty"
    if _WORDS.fullmatch(command) is None:
        return "it needs a shell"
    first = shlex.split(command)[0]
    if _BUILT_IN.fullmatch(first):
        return f"{first!r} is no program: a shell does it itself"
    return "it sets a variable first" if "=" in first or not first else None
