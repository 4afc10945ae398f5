"""Tokens: about how many a text takes, without the network."""

import os
import tempfile
from collections.abc import Callable
from functools import cache
from hashlib import sha1, sha256
from pathlib import Path
from typing import Final

from promptkit.errors.regular_files import read_regular_file

__all__ = ["estimated"]

#: What tiktoken would fetch, and the digest that it must have.
_NAME: Final = "o200k_base"
_SOURCE: Final = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"
_MAX_BYTES: Final = 16 << 20
_DIGEST: Final = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"

#: English text has about so many characters a token.
_CHARACTERS: Final = 4

#: A longer text is not encoded: people wait for the page.
_LONGEST: Final = 200_000


def estimated(text: str) -> int:
    """
    Return about how many tokens *text* takes.

    They are counted by tiktoken where that and its vocabulary are on this machine, and guessed elsewhere.
    """
    count = _counter()
    if count is None or len(text) > _LONGEST:
        return -(-len(text) // _CHARACTERS)
    return count(text)


@cache
def _counter() -> Callable[[str], int] | None:
    if not _is_cached():
        return None
    try:
        import tiktoken  # type: ignore[import-not-found,unused-ignore]  # users may have it
    except ModuleNotFoundError:
        return None
    encoding = tiktoken.get_encoding(_NAME)
    return lambda text: len(encoding.encode_ordinary(text))


def _is_cached() -> bool:
    """Whether tiktoken has its vocabulary on disk, whole: otherwise it would fetch it."""
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", os.environ.get("DATA_GYM_CACHE_DIR"))
    if folder is None:
        folder = str(Path(tempfile.gettempdir()) / "data-gym-cache")
    try:
        file = Path(folder) / sha1(_SOURCE.encode()).hexdigest()  # noqa: S324 (a file's name)
        data = read_regular_file(file, _MAX_BYTES)  # others may write to the folder
    except OSError:
        return False
    return sha256(data).hexdigest() == _DIGEST
