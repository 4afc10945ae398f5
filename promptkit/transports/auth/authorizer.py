"""
Bearer tokens: finding the principal of each request by its token, and caching verified tokens.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization,
https://www.rfc-editor.org/rfc/rfc6750 and https://www.rfc-editor.org/rfc/rfc9728.
"""

import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import sha256
from inspect import isawaitable
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import UNSET, UnsetType

from promptkit.language.annotations import parse_scopes
from promptkit.protocol.events import Request
from promptkit.protocol.http.messages import ENDPOINT, RETRY, Head, HttpResponse, reject
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, Reply, RequestId, encode
from promptkit.protocol.principals import Principal, TokenVerifier, VerifierUnavailableError
from promptkit.server.server import SharedServer
from promptkit.standard_error import say
from promptkit.transports.auth.token_file_verifier import TokenFile, is_token
from promptkit.transports.auth.urls import secure_url

#: The prefix of the path to a resource's metadata, to which the resource's own path is appended.
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

_BEARER: Final = b"bearer "


class BearerScheme:
    """
    Reads tokens from requests, and rejects requests without a valid token.

    Args:
        resource:
            The server's URL for clients, which is the audience of tokens. It can be None if *issuer* is None.

        issuer:
            The issuer of tokens, or None if clients cannot request tokens themselves.

        scopes:
            Scopes that every token must have.

    Attributes:
        documents:
            The resource's metadata as JSON, keyed by each path where clients look for it.

    Raises:
        ValueError: If a URL or a scope is invalid, or there is an issuer without a resource.
    """

    def __init__(
        self, resource: str | None = None, issuer: str | None = None, scopes: Iterable[str] = ()
    ) -> None:
        self._scopes = tuple(dict.fromkeys(scopes))
        self._required = parse_scopes(self._scopes)
        self._metadata: list[str] = []
        self.documents: Mapping[str, bytes] = MappingProxyType({})
        if issuer is not None:
            self._create_metadata(resource, issuer)

    def _create_metadata(self, resource: str | None, issuer: str) -> None:
        if resource is None:
            msg = "issuer= requires resource=: pass the URL that clients use"
            raise ValueError(msg)
        parts = urlsplit(secure_url(resource))
        url = f"{parts.scheme}://{parts.netloc}{_WELL_KNOWN}{parts.path.rstrip('/')}"
        self._metadata = [f'resource_metadata="{url}"']
        document = {
            "resource": resource,
            "authorization_servers": [secure_url(issuer)],
            "bearer_methods_supported": ["header"],
        }
        if self._scopes:
            document["scopes_supported"] = [*self._scopes]
        paths = ("", ENDPOINT, parts.path.rstrip("/"))
        self.documents = MappingProxyType({_WELL_KNOWN + path: encode(document) for path in paths})

    def read_token(self, head: Head, query: bytes) -> bytes | HttpResponse:
        """
        Return a request's token, which can be any bytes, or the response that rejects the request.

        Args:
            head:
                The head of the request.

            query:
                The query string of its URL. A token in the query string is rejected, because URLs are logged.
        """
        if query and any(name == "access_token" for name, _ in parse_qsl(query.decode("latin-1"))):
            return self.reject_malformed(
                "a token in the URL would appear in logs: send it as Authorization: Bearer"
            )
        if b"authorization" in head.repeated:
            return self.reject_malformed("the Authorization header was sent more than once")
        value = head.get(b"authorization")
        if value is None:
            return self._reject(401, "send a token as Authorization: Bearer TOKEN")
        if value[: len(_BEARER)].lower() != _BEARER:
            return self._reject(401, "only Authorization: Bearer TOKEN is accepted")
        return value[len(_BEARER) :].strip(b" ")

    def admit(self, principal: Principal | None) -> Principal | HttpResponse:
        """
        Return *principal* if it can send requests, or the response that rejects the request.

        Args:
            principal:
                The bearer of the token, or None if the token is not valid.
        """
        if principal is None:
            message = "this token is not valid here: it is unknown, has expired, or is for another server"
            return self._reject(401, message, "invalid_token")
        if self._required <= principal.scopes:
            return principal
        return self.reject_missing_scopes((), UNSET)

    def reject_missing_scopes(self, needed: Iterable[str], request_id: RequestId | UnsetType) -> HttpResponse:
        """
        Return the response that rejects a request whose token lacks scopes.

        Args:
            needed:
                The scopes that the request needs in addition to those that every token must have.

            request_id:
                The id of the request, or `UNSET` if the message does not consist of exactly one request.
        """
        scopes = " ".join(dict.fromkeys((*self._scopes, *sorted(needed))))
        message = f"this token lacks a required scope: it needs {scopes}"
        return self._reject(403, message, "insufficient_scope", scopes, request_id)

    def reject_malformed(self, message: str) -> HttpResponse:
        """Return the response that rejects a request with a malformed token."""
        return self._reject(400, message, "invalid_request")

    def _reject(
        self,
        status: int,
        message: str,
        error: str | None = None,
        scopes: str | None = None,
        request_id: RequestId | UnsetType = UNSET,
    ) -> HttpResponse:
        """Return a response with a challenge; *error* is None if the request has no token."""
        error_fields = [] if error is None else [f'error="{error}"', f'error_description="{message}"']
        scopes = " ".join(self._scopes) if scopes is None else scopes
        scope_fields = [f'scope="{scopes}"'] if scopes else []
        challenge = ", ".join(['Bearer realm="mcp"', *error_fields, *scope_fields, *self._metadata])
        headers = ((b"www-authenticate", challenge.encode()),)
        return reject(status, InvalidRequest(message), request_id, headers)


#: The response to a request while its token cannot be verified.
UNAVAILABLE: Final = reject(
    503, InternalError("tokens cannot be verified at the moment: try again later"), headers=(RETRY,)
)


#: Maximum number of seconds for which a verified token is cached, even if it expires later.
CACHE_S: Final = 300.0

#: Maximum number of cached tokens. Each takes a few hundred bytes.
_MAX_CACHED: Final = 4096


class Authorizer:
    """
    Finds the principal of each request.

    Args:
        scheme:
            Reads tokens from requests and builds the responses that reject requests.

        verifier:
            Returns the principal of a token.

        clock:
            Returns the time, in seconds since 1970.
    """

    def __init__(
        self, scheme: BearerScheme, verifier: TokenVerifier, clock: Callable[[], float] = time.time
    ) -> None:
        self.scheme = scheme
        self._verifier = verifier
        self._clock = clock
        # Keyed by digest, so that no token stays in memory.
        self._cached: dict[bytes, tuple[float, Principal]] = {}

    async def check(self, head: Head, query: bytes) -> Principal | HttpResponse:
        """
        Return the principal of a request, or the response that rejects it.

        Args:
            head:
                The head of the request.

            query:
                The query string of its URL.
        """
        token = self.scheme.read_token(head, query)
        if isinstance(token, HttpResponse):
            return token
        digest = sha256(token).digest()
        until, principal = self._cached.get(digest, (-inf, None))
        if principal is not None and self._clock() < until:
            return principal
        return await self._verify(token, digest)

    async def still_admits(self, head: Head, principal: Principal) -> bool:
        """
        Return whether the token in *head* still has the same principal and the same scopes as before.

        While the verifier is unavailable, a token counts as unchanged until it expires, and a token without
        an expiry counts as changed.

        Args:
            head:
                The head of a request that was admitted.

            principal:
                The principal that the request had.
        """
        result = await self.check(head, b"")
        if isinstance(result, HttpResponse):
            return result is UNAVAILABLE and self._clock() < (principal.expires or -inf)
        return (result.identity, result.scopes) == (principal.identity, principal.scopes)

    def challenge(self, requests: Sequence[Request], server: SharedServer) -> HttpResponse | None:
        """
        Return the response that rejects *requests* and names all needed scopes, or None if none are missing.

        If there is no issuer, clients cannot get a token with more scopes, so no request is rejected here.

        Args:
            requests:
                The requests in one message.

            server:
                The server that handles them.

        See Also:
            https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-challenge-handling
        """
        if not self.scheme.documents:
            return None
        needed = frozenset().union(*map(server.missing_scopes, requests))
        if not needed:
            return None
        response = self.scheme.reject_missing_scopes(needed, requests[0].id if len(requests) == 1 else UNSET)
        reply = Reply(response.body + b"\n", "error", InvalidRequest.code)
        for request in requests:
            if server.observe is not None:
                server.observe(request, reply)
            request.discard(reply)
        return response

    async def _verify(self, token: bytes, digest: bytes) -> Principal | HttpResponse:
        if not is_token(token):
            return self.scheme.reject_malformed("a token can contain only letters, digits and -._~+/=")
        try:
            answer = self._verifier.verify(token.decode())
            principal = await answer if isawaitable(answer) else answer
            if principal is not None and not isinstance(principal, Principal):
                msg = f"a verifier must return a Principal or None, not {type(principal).__name__}"
                raise TypeError(msg)  # noqa: TRY301 (handled like any error of the verifier)
            admitted = self.scheme.admit(principal)
        except VerifierUnavailableError:
            return UNAVAILABLE
        except Exception as error:  # noqa: BLE001 (a verifier can raise anything)
            say(f"a token could not be verified: {_describe_error(error)}")
            return UNAVAILABLE
        if isinstance(admitted, Principal) and admitted.expires is not None:
            self._store(digest, admitted, admitted.expires)
        return admitted

    def _store(self, digest: bytes, principal: Principal, expires: float) -> None:
        while len(self._cached) >= _MAX_CACHED:
            self._cached.pop(next(iter(self._cached)), None)
        self._cached[digest] = min(expires, self._clock() + CACHE_S), principal


def create_authorizer(
    *,
    resource: str | None = None,
    issuer: str | None = None,
    token_file: str | Path | None = None,
    verifier: TokenVerifier | None = None,
    scopes: Iterable[str] = (),
) -> Authorizer | None:
    """
    Return the authorizer for these settings, or None if requests do not need tokens.

    Args:
        resource:
            The server's URL for clients, which is the audience of an issuer's tokens.

        issuer:
            The issuer of tokens. If *verifier* is None, the tokens are JSON Web Tokens.

        token_file:
            The path of a token file.

        verifier:
            A verifier for any other kind of token.

        scopes:
            Scopes that every token must have.

    Raises:
        ValueError: If a URL or a scope is invalid, if the file cannot be read, or if the settings contradict
            each other.

        ModuleNotFoundError: If an issuer's tokens must be verified, but the extra ``auth`` is not installed.
    """
    if token_file is not None and (issuer is not None or verifier is not None):
        msg = "a token file cannot be combined with an issuer or a verifier: pass only one of them"
        raise ValueError(msg)
    scheme = BearerScheme(resource, issuer, scopes)
    if verifier is None and token_file is not None:
        verifier = TokenFile(str(token_file))
    if verifier is None and issuer is not None and resource is not None:
        # These modules need the extra ``auth``.
        from promptkit.transports.auth.issuer import Issuer
        from promptkit.transports.auth.jwt_verifier import JwtVerifier

        verifier = JwtVerifier(Issuer(issuer), resource)
    if verifier is not None:
        return Authorizer(scheme, verifier)
    if scopes:
        msg = "scopes require tokens: add an issuer, a token file or a verifier"
        raise ValueError(msg)
    return None


def _describe_error(error: Exception) -> str:
    """
    Return the type of an error and where it was raised, without its message, which could quote the token.
    """
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {frame.filename}:{frame.lineno}"
