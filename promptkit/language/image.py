"""Image: content that is seen."""

from typing import final

import attrs

from promptkit.language.media import Media
from promptkit.language.mime import IMAGE_TYPES, MAX_IMAGE_BYTES

__all__ = ["Image"]


@final
@attrs.frozen(repr=False, eq=False)
class Image(Media):
    """
    An image: PNG, JPEG, GIF or WebP. It takes the keyword arguments of `Content`, too.

    It has at most 3,932,160 bytes (5 MiB in base64), and 8,000 pixels a side.

    Args:
        data:
            The bytes of the whole file, or an object that can show itself as PNG (a matplotlib
            figure, a PIL image). A string is never opened as a file: see `from_path`.

        mime_type:
            The MIME type that the bytes should have; detected from them if left out.

    Raises:
        TypeError: If *data* is neither bytes nor an image, or another argument has the wrong type.

        MediaError: If the bytes are empty, damaged or too large, of a format that clients
            refuse, or not of type *mime_type*.

        ValueError: If `Content` refuses an annotation.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#image-content
    """

    _types = IMAGE_TYPES
    _limit = MAX_IMAGE_BYTES
