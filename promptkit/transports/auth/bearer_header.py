"""
Bearer tokens, sans I/O: reading the token of a request, and rejecting requests without a valid token.

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
from promptkit.protocol.http.messages import RETRY, Head, HttpResponse, reject
from promptkit.protocol.jsonrpc import InternalError, InvalidRequest, RequestId, encode
from promptkit.protocol.principals import Principal

#: The path of a resource's metadata. The path of the resource is appended to it.
_WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

_BEARER: Final = b"bearer "

#: The characters of a token.
_TOKEN_BYTES: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~+/="

#: The characters of hosts, ports and paths. Any other character could end a header.
_URL: Final = re.compile(r"[\w.~:/?#@!$&'()*+,;=%\[\]-]+", re.ASCII)

_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class BearerScheme:
    """
    Reads tokens from requests, and rejects requests without a valid token.

    Args:
        resource:
            The URL that clients use, which is the audience of tokens; None without an issuer.

        issuer:
            The issuer of tokens; None if clients cannot request tokens themselves.

        scopes:
            Scopes that every token must have.

    Attributes:
        documents:
            The metadata of the resource as JSON, by each path at which clients look for it.

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
            self._describe(resource, issuer)

    def _describe(self, resource: str | None, issuer: str) -> None:
        if resource is None:
            msg = "an issuer creates tokens for one URL: pass the URL that clients use for this server"
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
        Return the token of a request, which can be any bytes, or the response that rejects the request.

        Args:
            head:
                The head of the request.

            query:
                The query string of its URL. A token in it is rejected because logs contain URLs.
        """
        if query and any(name == "access_token" for name, _ in parse_qsl(query.decode("latin-1"))):
            return self._malformed(
                "a token in the URL would appear in logs: send it as Authorization: Bearer"
            )
        if b"authorization" in head.repeated:
            return self._malformed("Authorization was sent more than once")
        value = head.get(b"authorization")
        if value is None:
            return self._unauthorized("send a token as Authorization: Bearer TOKEN")
        if value[: len(_BEARER)].lower() != _BEARER:
            if value.lower() == _BEARER.rstrip():
                return self._malformed("there is no token after Bearer")
            return self._unauthorized("only Authorization: Bearer TOKEN is accepted")
        return value[len(_BEARER) :].strip(b" ")

    def text(self, token: bytes) -> str | HttpResponse:
        """Return a token as text, or the response that rejects it."""
        if not is_token(token):
            return self._malformed("a token contains only letters, digits and -._~+/=")
        return token.decode()

    def admit(self, principal: Principal | None) -> Principal | HttpResponse:
        """
        Return *principal* if it can send requests, or the response that rejects the request.

        Args:
            principal:
                The bearer of the token; None if the token is not valid.
        """
        if principal is None:
            message = "this token is not valid here: it is unknown, has expired, or is for another server"
            return self._unauthorized(message, "invalid_token")
        if self._required <= principal.scopes:
            return principal
        return self.reject_scopes((), UNSET)

    def reject_scopes(self, needed: Iterable[str], request_id: RequestId | UnsetType) -> HttpResponse:
        """
        Return the response that rejects a request whose token lacks scopes.

        Args:
            needed:
                The scopes that the request needs, in addition to the ones that every token must have.

            request_id:
                The id of the request; `UNSET` if the message does not consist of exactly one request.
        """
        scopes = " ".join(dict.fromkeys((*self._scopes, *sorted(needed))))
        message = f"this token lacks a required scope: it needs {scopes}"
        return self._reject(403, message, "insufficient_scope", scopes, request_id)

    def _malformed(self, message: str) -> HttpResponse:
        return self._reject(400, message, "invalid_request")

    def _unauthorized(self, message: str, error: str | None = None) -> HttpResponse:
        return self._reject(401, message, error)

    def _reject(
        self,
        status: int,
        message: str,
        error: str | None,
        scopes: str | None = None,
        request_id: RequestId | UnsetType = UNSET,
    ) -> HttpResponse:
        """Return a response with a challenge. *error* is None for a request without a token."""
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


def secure_url(text: str) -> str:
    """
    Return *text* if it is an ``https`` URL, or an ``http`` URL of this machine.

    Raises:
        ValueError: If it is not such a URL, or contains a user, a query or a fragment.
    """
    parts = urlsplit(text) if _URL.fullmatch(text) else urlsplit("")
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    if not is_secure or not parts.hostname or "@" in parts.netloc or "?" in text or "#" in text:
        msg = f"{text!r} cannot be used: write an https URL (http for this machine) without user or query"
        raise ValueError(msg)
    return text


def is_token(text: bytes) -> bool:
    """Return whether a token has the syntax of RFC 6750."""
    return bool(text) and not text.translate(None, _TOKEN_BYTES)
