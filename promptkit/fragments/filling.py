"""Filling the holes of long text that stands in a recipe."""

from functools import lru_cache
from typing import Final

from promptkit.fragments.text import dedent
from promptkit.language.placeholders import TextWithPlaceholders
from promptkit.language.text import HoleValue, Text, hole_texts, plain_string, with_annotations

#: A longer text is read anew each time, in characters: an author may give one that changes.
_LONGEST_KEPT: Final = 100_000


def fill(text: str | Text, /, **values: HoleValue) -> Text:
    """
    Fill the holes of a long text: ``{{name}}`` is one if *name* is given.

    ``fill("Review {{code}} in {{scope}}", code=code, scope=None)``. The text is dedented first, as by
    `dedent`. All else in it stays as it is, braces too, so that JSON needs no escapes. Values are never
    read again: ``{{code}}`` in one of them stays as it is. Their further lines are indented as the line of
    the hole is, and stay in its list or quotation.

    Args:
        text:
            The text, as it stands in the recipe. What a client sent belongs into *values*.

        **values:
            What is put into the holes: strings, `Text`, numbers, dates and times. A line goes, whole, if
            all its holes are None or False, and of the blank lines around it one stays; with ``""`` the line
            stays.

    Returns:
        The filled text. If all its lines go, it is empty, and vanishes from what it is put into.

    Raises:
        TypeError: If *text* is not text, or a value is none of the above; it says which.

        ValueError: If there is no hole for a value; it lists the holes that the text has. Or if the
            annotations of `Text` values differ.
    """
    literal = plain_string(text, "fill(text)")
    read = _read if len(literal) <= _LONGEST_KEPT else _read.__wrapped__
    filled = read(literal, tuple(values)).filled(hole_texts(values, "fill(...)"))
    return with_annotations([text, *values.values()], filled)


def forget_texts() -> None:
    """Drop the texts that were read until now: recipes that hold them may be gone."""
    _read.cache_clear()


@lru_cache(maxsize=256)
def _read(literal: str, names: tuple[str, ...]) -> TextWithPlaceholders:
    return TextWithPlaceholders.read(dedent(literal).text, names, "fill(...)")
