"""What images and recordings have in common: their bytes are checked, and their MIME type is detected."""

from functools import cached_property
from pathlib import Path
from typing import ClassVar, Self, Unpack

import attrs

from promptkit.errors.exceptions import MediaError
from promptkit.language.base64 import base64_text
from promptkit.language.content import Annotations, Content
from promptkit.language.files import read_authors_file, read_below, source_folder
from promptkit.language.mime import checked_type, summary
from promptkit.language.showable import Showable, png_of
from promptkit.language.validation import optional_text

__all__ = ["Media"]


def _media(value: bytes | bytearray | memoryview | Showable) -> bytes:
    if isinstance(value, bytes):
        return value
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    if isinstance(value, str | Path):
        msg = f"{str(value)[:40]!r} is not bytes: use from_path(...) to read a file"
        raise TypeError(msg)
    if (png := png_of(value)) is not None:
        return png
    msg = f"takes bytes, or an image that can show itself as PNG, not {type(value).__name__}"
    raise TypeError(msg)


@attrs.frozen(repr=False, eq=False)
class Media(Content):
    """
    What images and recordings have in common; `Image` and `Audio` explain the fields.
    """

    _types: ClassVar[frozenset[str]]
    _limit: ClassVar[int]

    data: bytes = attrs.field(converter=_media)
    mime_type: str | None = attrs.field(default=None, validator=optional_text)

    def __attrs_post_init__(self) -> None:
        found = checked_type(self.data, self.mime_type, self._types, self._limit)
        object.__setattr__(self, "mime_type", found)

    def __str__(self) -> str:
        return summary(str(self.mime_type), self.data)

    @cached_property
    def base64(self) -> str:
        """
        The data in base64, encoded once.
        """
        return base64_text(self.data)

    @classmethod
    def from_path(
        cls,
        path: str | Path,
        mime_type: str | None = None,
        *,
        root: str | Path | None = None,
        **annotations: Unpack[Annotations],
    ) -> Self:
        """
        Read a file, relative to the folder of the recipe that calls this.

        Args:
            path:
                The file. It may come from an argument only if *root* is given.

            mime_type:
                The MIME type that the file should have; detected from its bytes if left out.

            root:
                A folder that *path* may not leave, relative to the recipe's. Always give it
                when any part of *path* comes from outside.

            **annotations:
                ``audience``, ``priority`` and ``last_modified``, as for `Content`.

        Returns:
            The image or recording.

        Raises:
            OSError: If the file cannot be read, and *root* is not given.

            MediaError: If *path* leaves *root* or names no readable file there, or if the bytes
                cannot be sent. It is a `PromptError`: the client sees its message.

            TypeError: If an annotation has the wrong type.

            ValueError: If `Content` refuses an annotation.
        """
        folder = source_folder(1)
        if root is None:
            data = read_authors_file(folder / path, cls._limit)
        else:
            data = read_below(path, folder / root, cls._limit)
        try:
            return cls(data, mime_type, **annotations)
        except MediaError as error:
            msg = f"{str(path)!r}: {error}"
            raise MediaError(msg) from None
