"""Blocks: the content that a value becomes in a message, or in a system part."""

from functools import reduce
from operator import add

from promptkit.language.content import Content
from promptkit.language.media import Image, png_of
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import UnsendableError, describe


def block_of(value: object) -> Content | None:
    """
    Return *value* as a content block, or None if it is empty. Raises UnsendableError if it is not content.
    """
    if isinstance(value, str):
        return plain_text(str.__str__(value)) if value and not value.isspace() else None
    if isinstance(value, Text):
        return value if value.text and not value.text.isspace() else None
    if isinstance(value, Content):
        return value
    if value is None or value is False:
        return None

    if (png := png_of(value)) is not None:
        return Image(png)
    raise UnsendableError(value)


def system_block(text: str | Text | None) -> Text | None:
    """
    Return a system part, None if it is empty. Raises TypeError if it is not text.
    """
    if text is None or isinstance(text, str | Text):
        block = block_of(text)
        return block if isinstance(block, Text) else None
    msg = f"the system part is text, not {describe(text)}: make it with system(...)"
    raise TypeError(msg)


def system_text(*parts: Text | None) -> Text | None:
    """
    Join system parts, with a blank line between. Raises ValueError if their annotations differ.
    """
    texts = [part for part in parts if part is not None]
    return reduce(add, texts) if texts else None
