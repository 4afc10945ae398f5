"""Icons: the pictures that a client may show beside a prompt's name."""

from typing import Literal

import attrs

from promptkit.language.validation import checked_sizes, checked_theme, checked_uri, optional_text

__all__ = ["Icon"]


@attrs.frozen
class Icon:
    """
    A picture that a client may show beside the name of a prompt or resource.

    Args:
        src:
            Its URI: ``https:`` or ``data:``.

        mime_type:
            Its MIME type; None if the server of *src* says it.

        sizes:
            The sizes that it is made for, width and height in pixels: ``"48x48"``, or ``"any"``. One
            string, or several.

        theme:
            The background that it is made for: ``"light"`` or ``"dark"``; None for both.

    Raises:
        TypeError: If *src* or *mime_type* is not a string.

        ValueError: If *src* is not an absolute URI, a size is not written like this, or *theme* is
            unknown.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic#icons
    """

    src: str = attrs.field(converter=checked_uri)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    sizes: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=checked_sizes)
    theme: Literal["light", "dark"] | None = attrs.field(default=None, kw_only=True, converter=checked_theme)
