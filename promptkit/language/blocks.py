"""Conversion of authors' values, which they return, yield or pass to `user`, to content blocks."""

from promptkit.language.content import Content
from promptkit.language.media import Image, render_png
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import UnsendableError


def to_block(value: object) -> Content | None:
    """
    Convert *value* to a content block, or to None if it is empty.

    Raises UnsendableError if it can be neither.
    """
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
