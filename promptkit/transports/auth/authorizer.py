"""
The authorizer: which principal sends a request, by its token. What was verified is known for a while.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization.
"""

import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from inspect import isawaitable
from math import inf
from pathlib import Path
from threading import Lock
from typing import Final

from msgspec import UNSET

from promptkit.protocol.events import Request
from promptkit.protocol.http.messages import Head, HttpResponse
from promptkit.protocol.jsonrpc import InvalidRequest, Reply
from promptkit.protocol.principals import Principal, TokenVerifier, VerifierUnavailableError
from promptkit.server.server import SharedServer
from promptkit.standard_error import say
from promptkit.transports.auth.bearer_header import UNAVAILABLE, BearerScheme
from promptkit.transports.auth.token_file import TokenFile

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

    async def check(self, head: Head, query: bytes) -> Principal | HttpResponse:
        """
        Return who sends a request, or the response that refuses it.

        Args:
            head:
                The head of the request.

            query:
                What follows the question mark in its URL.
        """
        token = self.scheme.token(head, query)
        if isinstance(token, HttpResponse):
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
        if isinstance(found, HttpResponse):
            return found is UNAVAILABLE and self._clock() < (principal.expires or -inf)
        return (found.identity, found.scopes) == (principal.identity, principal.scopes)

    def challenge(self, requests: Sequence[Request], server: SharedServer) -> HttpResponse | None:
        """
        Return the response that refuses requests, with all scopes that they need; None if none is lacking.

        Where clients cannot get a token that allows more, nothing is refused here.

        Args:
            requests:
                Those of one message.

            server:
                Knows what requests are about.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-challenge-handling
        """
        if not self.scheme.documents:
            return None
        needed = frozenset().union(*map(server.missing_scopes, requests))
        if not needed:
            return None
        response = self.scheme.refuse_scopes(needed, requests[0].id if len(requests) == 1 else UNSET)
        reply = Reply(response.body + b"\n", "error", InvalidRequest.code)
        for request in requests:
            if server.observe is not None:
                server.observe(request, reply)
            request.discard(reply)
        return response

    async def _verify(self, token: bytes, digest: bytes) -> Principal | HttpResponse:
        text = self.scheme.text(token)
        if isinstance(text, HttpResponse):
            return text
        try:
            answer = self._verifier.verify(text)
            principal = await answer if isawaitable(answer) else answer
            if principal is not None and not isinstance(principal, Principal):
                msg = f"a verifier returns a Principal or None, not {type(principal).__name__}"
                raise TypeError(msg)  # noqa: TRY301 (as any error of the verifier)
            admitted = self.scheme.admit(principal)
        except VerifierUnavailableError:
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


def protect(
    *,
    resource: str | None = None,
    issuer: str | None = None,
    token_file: str | Path | None = None,
    verifier: TokenVerifier | None = None,
    scopes: Iterable[str] = (),
) -> Authorizer | None:
    """
    Return what asks for tokens; None if nothing does.

    Args:
        resource:
            The URL that clients use, which an issuer makes tokens for.

        issuer:
            Who makes tokens. They are JSON Web Tokens unless there is a verifier.

        token_file:
            A file of tokens.

        verifier:
            Verifies tokens of any other kind.

        scopes:
            What every token has to allow.

    Raises:
        ValueError: If a URL or scope is not one, if the file cannot be read, or if these do not go together.

        ModuleNotFoundError: If tokens of an issuer are to be verified without the extra ``auth``.
    """
    if token_file is not None and (issuer is not None or verifier is not None):
        msg = "tokens come from a file, or from somebody else, but not from both"
        raise ValueError(msg)
    scheme = BearerScheme(resource, issuer, scopes)
    if verifier is None and token_file is not None:
        verifier = TokenFile(str(token_file))
    if verifier is None and issuer is not None and resource is not None:
        from promptkit.transports.auth.issuer import Issuer  # it takes the extra
        from promptkit.transports.auth.jwt_verifier import JwtVerifier

        verifier = JwtVerifier(Issuer(issuer), resource)
    if verifier is not None:
        return Authorizer(scheme, verifier)
    if scopes:
        msg = "scopes are those of tokens: name an issuer, a file of tokens or a verifier, too"
        raise ValueError(msg)
    return None


def _where(error: Exception) -> str:
    """The kind of an error, and where it was raised. Its text is left out: it may quote the token."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
