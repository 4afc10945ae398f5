"""
Bearer tokens, sans I/O: which one a request has, and what is said to one that has none, or a wrong one.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization,
https://www.rfc-editor.org/rfc/rfc6750 and https://www.rfc-editor.org/rfc/rfc9728.
"""

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from msgspec import UNSET, UnsetType

from promptkit.language.annotations import parse_scopes
from promptkit.protocol.http.head_checks import ENDPOINT
from promptkit.protocol.http.messages import RETRY, Head, HttpResponse, refuse
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, RequestId, encode
from promptkit.protocol.principals import Principal

#: Where the metadata of a resource is, and what the path of the resource is appended to.
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

_BEARER: Final = b"bearer "

#: What a token consists of.
_TOKEN_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

#: No host, path or port holds anything else, and the rest could end a header.
_URL: Final = re.compile(r"[\w.~:/?#@!$&'()*+,;=%\[\]-]+", re.ASCII)

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class BearerScheme:
    """
    Reads tokens, and refuses requests without the right one.

    Args:
        resource:
            The URL that clients use, which tokens are for; None if no issuer makes tokens for it.

        issuer:
            Who issues tokens; None if clients cannot get one by themselves.

        scopes:
            What every token has to allow.

    Attributes:
        documents:
            The metadata of the resource by each path at which clients look for it, as JSON.

    Raises:
        ValueError: If a URL or a scope is not one, or there is an issuer without a resource.
    """

    def __init__(
        self, resource: str | None = None, issuer: str | None = None, scopes: Iterable[str] = ()
    ) -> None:
        self._scopes = tuple(dict.fromkeys(scopes))
        self._required = parse_scopes(self._scopes)
        self._metadata: list[str] = []
        self.documents: Mapping[str, bytes] = MappingProxyType({})
        if issuer is not None:
            self._describe(resource, issuer)

    def _describe(self, resource: str | None, issuer: str) -> None:
        if resource is None:
            msg = "an issuer makes tokens for one URL: say by which one clients call this server"
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

    def token(self, head: Head, query: bytes) -> bytes | HttpResponse:
        """
        Return the token of a request, which may be any bytes, or else the response that refuses it.

        Args:
            head:
                The head of the request.

            query:
                What follows the question mark in its URL. There a token is refused, as logs keep URLs.
        """
        if query and any(name == "access_token" for name, _ in parse_qsl(query.decode("latin-1"))):
            return self._malformed("a token in the URL would be in logs: send it as Authorization: Bearer")
        if b"authorization" in head.repeated:
            return self._malformed("Authorization was sent more than once")
        sent = head.get(b"authorization")
        if sent is None:
            return self._unauthorized("send a token as Authorization: Bearer TOKEN")
        if sent[: len(_BEARER)].lower() != _BEARER:
            if sent.lower() == _BEARER.rstrip():
                return self._malformed("there is no token after Bearer")
            return self._unauthorized("only Authorization: Bearer TOKEN is taken")
        return sent[len(_BEARER) :].strip(b" ")

    def text(self, token: bytes) -> str | HttpResponse:
        """
        Return a token as text, or the response that refuses it.
        """
        if not is_token(token):
            return self._malformed("a token has letters, digits and -._~+/= alone")
        return token.decode()

    def admit(self, principal: Principal | None) -> Principal | HttpResponse:
        """
        Return a principal that may send requests, or the response that refuses the request.

        Args:
            principal:
                Who bears the token; None if it is not valid.
        """
        if principal is None:
            said = "this token is not valid here: it is unknown, has expired, or is for another server"
            return self._unauthorized(said, "invalid_token")
        if self._required <= principal.scopes:
            return principal
        return self.refuse_scopes((), UNSET)

    def refuse_scopes(self, needed: Iterable[str], request_id: RequestId | UnsetType) -> HttpResponse:
        """
        Return the response that refuses a request which needs scopes that its token lacks.

        Args:
            needed:
                The scopes, besides those that every token has to allow.

            request_id:
                The id of the request, if it is a single one.
        """
        scopes = " ".join(dict.fromkeys((*self._scopes, *sorted(needed))))
        said = f"this token lacks a scope: needed are {scopes}"
        return self._refuse(403, said, "insufficient_scope", scopes, request_id)

    def _malformed(self, said: str) -> HttpResponse:
        return self._refuse(400, said, "invalid_request")

    def _unauthorized(self, said: str, error: str | None = None) -> HttpResponse:
        return self._refuse(401, said, error)

    def _refuse(
        self,
        status: int,
        said: str,
        error: str | None,
        scopes: str | None = None,
        request_id: RequestId | UnsetType = UNSET,
    ) -> HttpResponse:
        """The error is named only if there was a token: else there is nothing wrong with it."""
        named = [] if error is None else [f'error="{error}"', f'error_description="{said}"']
        scopes = " ".join(self._scopes) if scopes is None else scopes
        needed = [f'scope="{scopes}"'] if scopes else []
        challenge = ", ".join(['Bearer realm="mcp"', *named, *needed, *self._metadata])
        headers = ((b"www-authenticate", challenge.encode()),)
        return refuse(status, InvalidRequest(said), request_id, headers)


#: The response to a request whose token cannot be verified at the moment.
UNAVAILABLE: Final = refuse(
    503, InternalError("tokens cannot be verified at the moment: try again later"), headers=(RETRY,)
)


def is_token(text: bytes) -> bool:
    """Return whether a token has the form that RFC 6750 gives it."""
    return bool(text) and not text.translate(None, _TOKEN_BYTES)


def secure_url(text: str) -> str:
    """
    Return a URL that tokens may depend on: ``https``, or on this machine ``http``.

    Raises:
        ValueError: If it is none, or has a query or a fragment.
    """
    parts = urlsplit(text) if _URL.fullmatch(text) else urlsplit("")
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_secure or not parts.hostname or "@" in parts.netloc or "?" in text or "#" in text:
        msg = f"{text!r} cannot be used: write an https URL (http for this machine) without user or query"
        raise ValueError(msg)
    return text
