"""What is said of a wrong command line: in a line how the command is used, then what is wrong."""

import argparse
from argparse import Action
from collections.abc import Iterable
from typing import Any, Final

from promptkit.errors.suggestions import nearest
from promptkit.fragments.invisible import escape_invisible

__all__ = ["refusal", "suggestion", "unknown_choice", "usage_of", "without_value"]

#: How a word is shown, by how many of it there may be.
_WORDS: Final[dict[Any, str]] = {
    None: "{0}",
    "?": "[{0}]",
    "*": "[{0} ...]",
    "+": "{0} [{0} ...]",
    argparse.PARSER: "{0} ...",
}


def refusal(program: str, words: Iterable[Action], message: str) -> str:
    """Return the lines that refuse a command line: its usage, with the *words* beside options, and why."""
    message = message.replace("ignored explicit argument", "it takes no value, and has")
    return f"usage: {usage_of(program, words)}\n{program}: error: {escape_invisible(message)}\n"


def usage_of(program: str, words: Iterable[Action]) -> str:
    """Return a line that shows a command with its *words*, and its options as one word."""
    # While argparse reads options between words, it keeps elsewhere how many of a word there may be.
    shown = [_WORDS[getattr(word, "save_nargs", word.nargs)].format(word.metavar) for word in words]
    return " ".join([program, "[OPTION ...]", *shown])


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of an error: the word that was probably meant, if any is near."""
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def unknown_choice(value: object, choices: Iterable[object]) -> str:
    """Return what is wrong with a value that is none of those that there are."""
    named = list(map(str, choices))
    return f"{value!r} is not one of {', '.join(named)}{suggestion(str(value), named)}"


def without_value(option: Action) -> str:
    """Return what is wrong with an option that has no value behind it."""
    value = option.metavar or "|".join(map(str, option.choices or ())) or option.dest.upper()
    return f"it needs a value, as in {option.option_strings[-1]} {value}"
