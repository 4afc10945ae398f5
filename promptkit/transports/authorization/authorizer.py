"""The authorizer: which principal sends a request, by its token. What was verified is known for a while."""

import time
import traceback
from collections.abc import Callable
from hashlib import sha256
from inspect import isawaitable
from math import inf
from threading import Lock
from typing import Final

from promptkit.protocol.http.bearer import UNAVAILABLE, BearerScheme
from promptkit.protocol.http.messages import Head, Response
from promptkit.protocol.principals import Principal, TokenVerifier, VerifierUnavailable
from promptkit.standard_error import say

__all__ = ["KNOWN_S", "Authorizer"]

#: How long a verified token is not verified again, in seconds, even if it expires later.
KNOWN_S: Final = 300.0

#: How many verified tokens are known. Each takes some hundred bytes.
_MOST_KNOWN: Final = 4096


class Authorizer:
    """
    Finds the principal of each request.

    Args:
        scheme:
            Reads tokens, and refuses requests.

        verifier:
            Says who bears a token.

        clock:
            Returns the time, in seconds since 1970.

    Attributes:
        scheme:
            Reads tokens, and refuses requests.
    """

    def __init__(
        self, scheme: BearerScheme, verifier: TokenVerifier, clock: Callable[[], float] = time.time
    ) -> None:
        self.scheme = scheme
        self._verifier = verifier
        self._clock = clock
        # By digest, so that no token stays in memory.
        self._known: dict[bytes, tuple[float, Principal]] = {}
        self._lock = Lock()

    async def check(self, head: Head, query: bytes) -> Principal | Response:
        """
        Return who sends a request, or the response that refuses it.

        Args:
            head:
                The head of the request.

            query:
                What follows the question mark in its URL.
        """
        token = self.scheme.token(head, query)
        if isinstance(token, Response):
            return token
        digest = sha256(token).digest()
        until, principal = self._known.get(digest, (-inf, None))
        if principal is not None and self._clock() < until:
            return principal
        return await self._verify(token, digest)

    async def still_admits(self, head: Head, principal: Principal) -> bool:
        """
        Return whether a token says the same as before.

        If nobody can say that, it does until it expires; one without `expires` does no longer.

        Args:
            head:
                The head of a request that was admitted.

            principal:
                Who sent it.
        """
        found = await self.check(head, b"")
        if isinstance(found, Response):
            return found is UNAVAILABLE and self._clock() < (principal.expires or -inf)
        return (found.identity, found.scopes) == (principal.identity, principal.scopes)

    async def _verify(self, token: bytes, digest: bytes) -> Principal | Response:
        text = self.scheme.text(token)
        if isinstance(text, Response):
            return text
        try:
            answer = self._verifier.verify(text)
            principal = await answer if isawaitable(answer) else answer
            admitted = self.scheme.admit(_checked(principal))
        except VerifierUnavailable:
            return UNAVAILABLE
        except Exception as error:  # noqa: BLE001 (a verifier is somebody else's code)
            say(f"a token could not be verified: {_where(error)}")
            return UNAVAILABLE
        if isinstance(admitted, Principal) and admitted.expires is not None:
            self._note(digest, admitted, admitted.expires)
        return admitted

    def _note(self, digest: bytes, principal: Principal, expires: float) -> None:
        with self._lock:  # several event loops may be here
            while len(self._known) >= _MOST_KNOWN:
                self._known.pop(next(iter(self._known)), None)
            self._known[digest] = min(expires, self._clock() + KNOWN_S), principal


def _checked(principal: object) -> Principal | None:
    if principal is not None and not isinstance(principal, Principal):
        msg = f"a verifier returns a Principal or None, not {type(principal).__name__}"
        raise TypeError(msg)
    return principal


def _where(error: Exception) -> str:
    """The kind of an error, and where it was raised. Its text is left out: it may quote the token."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
