"""Sealing: what a client has to hand back unchanged, with the request that it was given for."""

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

#: Names the encoding, in the token and in what is authenticated: the next one gets another.
_VERSION: Final = "v1"

#: The version, when it expires in seconds of the clock, and the HMAC in hexadecimal.
_TOKEN: Final = re.compile(rf"{_VERSION}\.([0-9]{{1,15}})\.[0-9a-f]{{64}}")

#: Keys are sorted, so that equal values give equal bytes. JSON of one array says where each
#: part ends, so that no two requests give the same bytes.
_encode: Final = msgspec.json.Encoder(order="sorted").encode


def _key(key: bytes | None) -> bytes:
    """
    Return *key*, or one of this process alone. Raises ValueError if it could be guessed.
    """
    if key is None:
        return os.urandom(32)
    if len(key) < 16:
        msg = f"a key of {len(key)} bytes can be guessed: use 32, as secrets.token_bytes(32) makes them"
        raise ValueError(msg)
    return key


@attrs.frozen(eq=False)
class RequestStateSigner:
    """
    Makes the ``requestState`` of a request, and finds out whether one was made for it.

    Args:
        key:
            What tokens are authenticated with: 16 bytes or more, best 32. By default nobody
            knows it, and only this object takes its tokens.

        lifetime:
            How long a token is taken, in seconds.

        clock:
            Tells the time, in seconds.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
    """

    key: bytes = attrs.field(default=None, converter=_key, repr=False)
    lifetime: float = 900.0
    clock: Callable[[], float] = time.time

    def sign(self, method: str, params: Any) -> str:
        """
        Return the token for one request, text that is safe in URLs.

        Args:
            method:
                The request's method.

            params:
                What it asks for, any JSON value. The order of keys does not matter.
        """
        return self._token(ceil(self.clock() + self.lifetime), method, params)

    def verify(self, token: str, method: str, params: Any) -> None:
        """
        Check that *token* is what `sign` returned for the same request, not too long ago.

        Raises:
            InvalidParams: If it is malformed, was changed or made for another request, or
                has expired.
        """
        from hmac import compare_digest

        if not (parts := _TOKEN.fullmatch(token)):
            msg = "requestState is none that this server gives: send it back as it came, or leave it out"
            raise InvalidParams(msg)
        expiry = int(parts[1])
        # All of the text is compared, so that it has no second spelling.
        if not compare_digest(self._token(expiry, method, params), token):
            msg = "requestState was changed or belongs to another request: send this one again without it"
            raise InvalidParams(msg)
        if self.clock() > expiry:
            msg = "requestState has expired: send the request again without it"
            raise InvalidParams(msg)

    def _token(self, expiry: int, method: str, params: Any) -> str:
        """
        Return the token for one request that expires at a given time.
        """
        import hmac

        mac = hmac.digest(self.key, _encode([_VERSION, expiry, method, params]), "sha256")
        return f"{_VERSION}.{expiry}.{mac.hex()}"
