"""The ``requestState``: a signed token that a client sends back with the request that it was issued for."""

import time
from collections.abc import Callable
from math import ceil
from typing import Any, Final

import msgspec

from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.protocol.key_ring import KeyRing, Refusal, TokenRefused

__all__ = ["RequestStateSigner"]

_PURPOSE: Final = "requestState"

#: What the client is told if its token is not taken.
_REASONS: Final = {
    Refusal.MALFORMED: "requestState was not issued by this server: send it back as it came, or leave it out",
    Refusal.FORGED: "requestState was changed or belongs to another request: send this one again without it",
}

#: Keys are sorted, so that equal values give equal bytes. What is signed is one JSON array, in which it is
#: clear where each part ends, so that no two requests give the same bytes.
_encode: Final = msgspec.json.Encoder(order="sorted").encode


class RequestStateSigner:
    """
    Issues the ``requestState`` of a request, and verifies it.

    Args:
        ring:
            The keys that tokens are signed with. The default has one random key, so that only this object
            accepts its tokens.

        lifetime:
            How long a token is valid, in seconds.

        clock:
            Returns the time, in seconds.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
    """

    def __init__(
        self, ring: KeyRing | None = None, lifetime: float = 900.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._ring = ring or KeyRing()
        self._lifetime = lifetime
        self._clock = clock

    def sign(self, method: str, params: Any) -> str:
        """
        Return the token for one request, which is safe in URLs.

        The *params* are any JSON value. The order of keys does not matter.
        """
        expires = ceil(self._clock() + self._lifetime)
        return self._ring.seal(_PURPOSE, expires, bound=_encode([method, params]))

    def is_fresh(self, token: str, method: str, params: Any) -> bool:
        """
        Return whether *token*, which `sign` returned for the same request, has not expired.

        Raises:
            InvalidParams: If the token is malformed, changed, or for another request.
        """
        try:
            self._ring.open(_PURPOSE, token, self._clock(), bound=_encode([method, params]))
        except TokenRefused as refused:
            if refused.refusal is Refusal.EXPIRED:
                return False
            raise InvalidParams(_REASONS[refused.refusal]) from None
        return True
