"""The names of prompts: which ones every client can show, and what to call a prompt that has another."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from promptkit.errors.diagnostics import Report, Rule

__all__ = ["check_name"]

#: Names that every client can show, and that people can type.
_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")

#: Letters that Unicode normalization does not turn into ASCII.
_TRANSLITERATED: Final = str.maketrans(
    {"ß": "ss", "æ": "ae", "Æ": "Ae", "œ": "oe", "Œ": "Oe", "ø": "o", "Ø": "O", "ł": "l", "Ł": "L"}
)


def check_name(name: str, function: Callable[..., Any], report: Report) -> None:
    """
    Report a name that some clients cannot show, and propose one that all can.

    Args:
        name:
            The name of a prompt.

        function:
            The author's function, whose name is the default.

        report:
            Receives what is found.
    """
    if _NAME.fullmatch(name):
        return
    slug, hint = _slug(name), "call it {!r}"
    if name == getattr(function, "__name__", None):
        slug, hint = slug or _slug(Path(report.location.file).stem), "keep it, and write @prompt(name={!r})"
    fault = "a name has 1 to 64 of the letters A-Z and a-z, digits, '_' and '-'"
    report.add(Rule.BAD_NAME, fault, hint.format(slug or "prompt"))


def _slug(name: str) -> str:
    """The part of *name* that every client can show, without accents."""
    from unicodedata import combining, normalize  # only a bad name needs it

    spelt = name.translate(_TRANSLITERATED)
    plain = "".join(letter for letter in normalize("NFKD", spelt) if not combining(letter))
    slug = re.sub(r"[^A-Za-z0-9_-]+", "-", plain).strip("-")[:64]
    return slug if slug.strip("_-") else ""
