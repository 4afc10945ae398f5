"""Icons: the pictures that a client may show beside a prompt's name."""

from typing import Literal

import attrs

from promptkit.language.validation import checked_sizes, checked_theme, checked_uri, optional_text

__all__ = ["Icon"]


@attrs.frozen
class Icon:
    """
    A picture that a client may show beside a prompt's name.

    Args:
        src:
            An ``https:`` or ``data:`` URI.

        mime_type:
            Its type, if the server of *src* does not say.

        sizes:
            For which sizes it is made: ``"48x48"``, or ``"any"``.

        theme:
            For which background it is made.

    Raises:
        ValueError: If *src* is no URI, a size is not written so, or *theme* is neither.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic#icons
    """

    src: str = attrs.field(converter=checked_uri)
    mime_type: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    sizes: tuple[str, ...] = attrs.field(default=(), kw_only=True, converter=checked_sizes)
    theme: Literal["light", "dark"] | None = attrs.field(default=None, kw_only=True, converter=checked_theme)
