"""Validation of configured URLs: those of issuers, of their keys, and of this server."""

import re
from typing import Final
from urllib.parse import urlsplit

#: The characters that a URL can contain. Other characters, such as quotes, could end the value of a header.
_URL: Final = re.compile(r"[\w.~:/?#@!$&'()*+,;=%\[\]-]+", re.ASCII)


def secure_url(text: str) -> str:
    """
    Return *text* if it is an ``https`` URL, or an ``http`` URL that points to this machine.

    Raises:
        ValueError: If *text* is not such a URL, or if it contains a user, a query or a fragment.
    """
    parts = urlsplit(text) if _URL.fullmatch(text) else urlsplit("")
    is_secure = parts.scheme == "https" or (
        parts.scheme == "http" and parts.hostname in ("127.0.0.1", "localhost", "::1")
    )
    if not is_secure or not parts.hostname or "@" in parts.netloc or "?" in text or "#" in text:
        msg = (
            f"{text!r} cannot be used: write an https URL (http is allowed for localhost) without a user, "
            "a query or a fragment"
        )
        raise ValueError(msg)
    return text
