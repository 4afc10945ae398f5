"""
Verification of JSON Web Tokens: signature, issuer, audience and expiry.

See https://www.rfc-editor.org/rfc/rfc8725 and https://www.rfc-editor.org/rfc/rfc9068.
"""

import time
from base64 import urlsafe_b64decode
from collections.abc import Callable
from typing import Any, Final

import msgspec
from joserfc import jwt
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError
from joserfc.jwa import JWSAlgModel
from joserfc.jws import JWSRegistry
from msgspec import UNSET, UnsetType

from promptkit.protocol.principals import Principal
from promptkit.standard_error import say
from promptkit.transports.auth.issuer import Issuer

#: Allowed signature algorithms. All are asymmetric: with a shared key, the verifier could sign tokens as
#: well. The algorithm that a token names must be the one that it uses.
ALGORITHMS: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
)

#: Allowed difference between clocks, in seconds.
LEEWAY_S: Final = 30

#: The types of access tokens. Other types, such as logout tokens, are rejected.
_TYPES: Final = frozenset((None, "jwt", "at+jwt", "application/at+jwt"))


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: msgspec.Raw | UnsetType = UNSET


_decode_header: Final = msgspec.json.Decoder(_Header).decode


class _InvalidTokenError(Exception):
    """A token is not valid. The message does not quote it."""


class _Registry(JWSRegistry):
    """The library's algorithms, restricted to `ALGORITHMS`. Unknown header fields are ignored."""

    max_header_length = 8192

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            msg = "its algorithm is not allowed"
            raise _InvalidTokenError(msg)
        return self.algorithms[name]


_REGISTRY: Final = _Registry(strict_check_header=False)


class JwtVerifier:
    """
    Verifies tokens from one issuer for one audience.

    Args:
        issuer:
            The issuer of the tokens.

        audience:
            Their audience: the URL under which clients reach this server.

        clock:
            Returns the time, in seconds since 1970.
    """

    def __init__(self, issuer: Issuer, audience: str, clock: Callable[[], float] = time.time) -> None:
        self._issuer = issuer
        self._claims = jwt.JWTClaimsRegistry(
            now=lambda: int(clock()),
            leeway=LEEWAY_S,
            iss={"essential": True, "value": issuer.url},
            aud={"essential": True, "value": audience},
            exp={"essential": True},
        )
        self._logged: set[str] = set()

    async def verify(self, token: str) -> Principal | None:
        """
        Return the principal of a token; None if the token is not valid. Each reason is logged once.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If the issuer's keys cannot be fetched.
        """
        try:
            header = _read_header(token)
            key = await self._issuer.find(header.kid, _REGISTRY.get_alg(header.alg))
            if key is None:
                self._log_once("the issuer has no such key")
                return None
            claims = jwt.decode(token, key, registry=_REGISTRY).claims
            self._claims.validate(claims)
            return _to_principal(claims)
        except (_InvalidTokenError, JoseError, ValueError, RecursionError) as error:
            self._log_once(_describe_error(error))
            return None

    def _log_once(self, reason: str) -> None:
        """Log why a token is rejected, once per reason: clients send invalid tokens repeatedly."""
        if reason not in self._logged:
            self._logged.add(reason)
            say(f"a token was refused: {reason}. This is reported once")


def _read_header(token: str) -> _Header:
    encoded, _, remainder = token.partition(".")
    if remainder.count(".") != 1:
        msg = "it is not a signed JSON Web Token"
        raise _InvalidTokenError(msg)
    try:
        header = _decode_header(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (ValueError, RecursionError):
        msg = "its header cannot be read"
        raise _InvalidTokenError(msg) from None
    kind = header.typ and header.typ.lower()
    if kind not in _TYPES or header.crit is not UNSET:
        msg = "it is of a kind that is not for this use"
        raise _InvalidTokenError(msg)
    return header


def _to_principal(claims: dict[str, Any]) -> Principal:
    user = claims.get("sub")
    subject = user or claims.get("client_id") or claims.get("azp")
    if not isinstance(subject, str):
        msg = "it has no subject (sub)"
        raise _InvalidTokenError(msg)
    scopes = claims.get("scope", claims.get("scp", ""))
    if isinstance(scopes, list):
        scopes = [scope for scope in scopes if isinstance(scope, str)]
    elif not isinstance(scopes, str):
        scopes = ""
    try:
        return Principal(subject, scopes, min(claims["exp"], 2**53) + LEEWAY_S, program=not user)
    except ValueError:
        msg = "its subject (sub) is not a string"
        raise _InvalidTokenError(msg) from None


def _describe_error(error: Exception) -> str:
    """Return why a token is rejected, without its content."""
    if isinstance(error, _InvalidTokenError):
        return str(error)
    if isinstance(error, ExpiredTokenError):
        return "it has expired"
    if isinstance(error, ClaimError):
        return _CLAIMS.get(error.claim, "a claim is missing, or has a wrong value")
    return "its signature is wrong"


_CLAIMS: Final = {
    "iss": "it is of another issuer (iss)",
    "aud": "it is for another server (aud)",
    "exp": "it has no expiry (exp)",
    "nbf": "it is not valid yet (nbf)",
    "iat": "it was issued in the future (iat)",
}
