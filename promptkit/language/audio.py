"""Audio: content that is heard."""

from typing import final

import attrs

from promptkit.language.media import Media
from promptkit.language.mime import AUDIO_TYPES, MAX_AUDIO_BYTES

__all__ = ["Audio"]


@final
@attrs.frozen(repr=False, eq=False)
class Audio(Media):
    """
    A recording: WAV, MP3, Ogg, FLAC, MP4 or AAC, of at most 20 MiB.

    It takes the keyword arguments of `Content`, too.

    Args:
        data:
            The bytes of the whole file.

        mime_type:
            The MIME type that the bytes should have; detected from them if left out.

    Raises:
        TypeError: If *data* is not bytes, or another argument has the wrong type.

        MediaError: If the bytes are empty or too large, of a format that clients refuse, or not
            of type *mime_type*.

        ValueError: If `Content` refuses an annotation.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#audio-content
    """

    _types = AUDIO_TYPES
    _limit = MAX_AUDIO_BYTES
