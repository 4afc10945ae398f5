"""
The words of commands that take ``KEY=VALUE``, wherever it stands between the others.

`render` takes ``[TARGET] NAME [KEY=VALUE ...]``, where NAME may be a URI, and `complete` takes
``NAME ARGUMENT [TYPED] [KEY=VALUE ...]``.
"""

import re
from argparse import Namespace
from typing import Final

__all__ = ["find_target", "find_typed", "is_argument", "is_uri"]

#: RFC 3986, section 3.1. The names of arguments have no colon.
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


def is_uri(word: str) -> bool:
    """Whether a word begins with a scheme. A ``=`` behind that is part of the URI."""
    return _SCHEME.match(word) is not None


def is_argument(word: str) -> bool:
    """Whether a word is ``KEY=VALUE``."""
    return "=" in word and not is_uri(word)


def find_target(options: Namespace) -> None:
    """
    Tell the target from the prompt's name: the name comes last, and is no ``KEY=VALUE``.

    Args:
        options:
            What argparse made of the words; it is corrected in place.

    Raises:
        SystemExit: If no prompt is named.
    """
    if is_argument(options.name):  # argparse took an argument for the name, and the name for the target
        words = [options.name, *options.arguments]
        options.target, options.name, options.arguments = None, options.target, words
    if options.name is None or is_argument(options.name):
        options.refuse("the following arguments are required: NAME")


def find_typed(options: Namespace) -> None:
    """
    Tell what was typed from the arguments that were chosen: it is no ``KEY=VALUE``.

    Args:
        options:
            What argparse made of the words; it is corrected in place.

    Raises:
        SystemExit: If there are two words that may have been typed.
    """
    words = [*(() if options.typed is None else (options.typed,)), *options.arguments]
    typed = [word for word in words if not is_argument(word)]
    if typed[1:]:
        options.refuse(f"unexpected argument {typed[1]!r}: other arguments are written KEY=VALUE")
    options.typed = typed[0] if typed else None
    options.arguments = [word for word in words if is_argument(word)]
