"""Blocks: the content that a value becomes in a message."""

from typing import TYPE_CHECKING, Literal, TypeAlias

from promptkit.language.content import Content
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import Unsendable

if TYPE_CHECKING:
    from promptkit.language.media import Showable

__all__ = ["Part", "block_of"]

#: What `user` and `assistant` take. ``None``, ``False`` and blank text are left out.
Part: TypeAlias = "str | Content | Showable | Literal[False] | None"


def block_of(value: object) -> Content | None:
    """
    Return *value* as a content block, or None if it is empty. Raises Unsendable if it is not content.
    """
    if isinstance(value, str):
        return plain_text(str.__str__(value)) if value and not value.isspace() else None
    if isinstance(value, Text):
        return value if value.text and not value.text.isspace() else None
    if isinstance(value, Content):
        return value
    if value is None or value is False:
        return None
    from promptkit.language.media import Image, png_of  # most prompts show neither an image nor a figure

    if (png := png_of(value)) is not None:
        return Image(png)
    raise Unsendable(value)
