"""The ``requestState``: a signed token that a client sends back with the request that it was issued for."""

import os
import re
import time
from collections.abc import Callable
from math import ceil
from typing import Any, Final

import attrs
import msgspec

from promptkit.protocol.jsonrpc import InvalidParams

__all__ = ["RequestStateSigner"]

#: The version of the encoding, in the token and in what is signed.
_VERSION: Final = "v1"

#: The version, the time at which it expires in seconds, and the HMAC in hexadecimal.
_TOKEN: Final = re.compile(rf"{_VERSION}\.([0-9]{{1,15}})\.[0-9a-f]{{64}}")

#: Keys are sorted, so that equal values give equal bytes. What is signed is one JSON array, in which it is
#: clear where each part ends, so that no two requests give the same bytes.
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def _key(key: bytes | None) -> bytes:
    """A random key by default. Raises ValueError if *key* could be guessed."""
    if key is None:
        return os.urandom(32)
    if len(key) < 16:
        msg = f"a key of {len(key)} bytes can be guessed: use 32, as secrets.token_bytes(32) makes them"
        raise ValueError(msg)
    return key


@attrs.frozen(eq=False)
class RequestStateSigner:
    """
    Issues the ``requestState`` of a request, and verifies it.

    Args:
        key:
            The secret that tokens are signed with: 16 bytes or more, best 32. The default is random, so that
            only this object accepts its tokens.

        lifetime:
            How long a token is valid, in seconds.

        clock:
            Returns the time, in seconds.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
    """

    key: bytes = attrs.field(default=None, converter=_key, repr=False)
    lifetime: float = 900.0
    clock: Callable[[], float] = time.time

    def sign(self, method: str, params: Any) -> str:
        """
        Return the token for one request, which is safe in URLs.

        The *params* are any JSON value. The order of keys does not matter.
        """
        return self._token(ceil(self.clock() + self.lifetime), method, params)

    def verify(self, token: str, method: str, params: Any) -> None:
        """
        Check that `sign` returned *token* for the same request, and that it has not expired.

        Raises:
            InvalidParams: If the token is malformed, changed, for another request, or expired.
        """
        from hmac import compare_digest

        if not (parts := _TOKEN.fullmatch(token)):
            msg = "requestState was not issued by this server: send it back as it came, or leave it out"
            raise InvalidParams(msg)
        expiry = int(parts[1])
        # The whole text is compared, so that no other spelling of a number is accepted.
        if not compare_digest(self._token(expiry, method, params), token):
            msg = "requestState was changed or belongs to another request: send this one again without it"
            raise InvalidParams(msg)
        if self.clock() > expiry:
            msg = "requestState has expired: send the request again without it"
            raise InvalidParams(msg)

    def _token(self, expiry: int, method: str, params: Any) -> str:
        import hmac

        mac = hmac.digest(self.key, _encode([_VERSION, expiry, method, params]), "sha256")
        return f"{_VERSION}.{expiry}.{mac.hex()}"
