"""Conversion of values to content blocks of messages and of the system part."""

from functools import reduce
from operator import add

from promptkit.language.content import Content
from promptkit.language.media import Image, render_png
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import UnsendableError, describe


def to_block(value: object) -> Content | None:
    """Return *value* as a content block, or None if it is empty. Raises UnsendableError for other values."""
    if isinstance(value, str):
        return plain_text(str.__str__(value)) if value and not value.isspace() else None
    if isinstance(value, Text):
        return value if value.text and not value.text.isspace() else None
    if isinstance(value, Content):
        return value
    if value is None or value is False:
        return None

    if (png := render_png(value)) is not None:
        return Image(png)
    raise UnsendableError(value)


def system_block(text: str | Text | None) -> Text | None:
    """Return *text* as a system part, or None if it is empty. Raises TypeError if it is not text."""
    if text is None or isinstance(text, str | Text):
        block = to_block(text)
        return block if isinstance(block, Text) else None
    msg = f"the system part is text, not {describe(text)}: make it with system(...)"
    raise TypeError(msg)


def system_text(*parts: Text | None) -> Text | None:
    """Join system parts with blank lines between them. Raises ValueError if their annotations differ."""
    texts = [part for part in parts if part is not None]
    return reduce(add, texts) if texts else None
