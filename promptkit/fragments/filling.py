"""`fill`, which fills the placeholders of long text in a recipe."""

from functools import lru_cache
from typing import Final

from promptkit.fragments.text import dedent
from promptkit.language.placeholders import TextWithPlaceholders
from promptkit.language.text import PlaceholderValue, Text, placeholder_texts, plain_string, with_annotations

#: Limit of cached texts in characters. Longer texts are parsed on every call, because they may vary.
_MAX_CACHED_LENGTH: Final = 100_000


def fill(text: str | Text, /, **values: PlaceholderValue) -> Text:
    """
    Fill the placeholders of a long text: ``{{name}}`` is a placeholder if *name* is given.

    ``fill("Review {{code}} in {{scope}}", code=code, scope=None)``. The text is dedented first, like with
    `dedent`. All other braces are literal text, so that JSON needs no escapes. Values are never parsed:
    ``{{code}}`` in a value is literal text. Further lines of a value are indented like the line of the
    placeholder, and stay in its list or quotation.

    Args:
        text:
            The text, as a literal in the recipe. Pass values from clients in *values*.

        **values:
            The values of the placeholders: strings, `Text`, numbers, dates and times. A line is removed if
            all its placeholders are None or False, and one of the blank lines around it remains; with ``""``
            the line remains.

    Returns:
        The filled text. If all its lines are removed, it is an empty `Text`, which other fragments omit.

    Raises:
        TypeError: If *text* is not text, or a value has another type; the message names the value.

        ValueError: If a value has no placeholder (the message lists the placeholders of the text), or if the
            annotations of `Text` values differ.
    """
    literal = plain_string(text, "fill(text)")
    parse = _parse if len(literal) <= _MAX_CACHED_LENGTH else _parse.__wrapped__
    filled = parse(literal, tuple(values)).filled(placeholder_texts(values, "fill(...)"))
    return with_annotations([text, *values.values()], filled)


def clear_cache() -> None:
    """Clear the cache of parsed texts, because recipes that contain them may be gone."""
    _parse.cache_clear()


@lru_cache(maxsize=256)
def _parse(literal: str, names: tuple[str, ...]) -> TextWithPlaceholders:
    return TextWithPlaceholders.parse(dedent(literal).text, names, "fill(...)")
