"""
JSON Web Tokens: whether the issuer has signed one for this server, and for whom.

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

#: What tokens may be signed with. All of them have a public key: with a shared one, who verifies could
#: sign, too. A token says which of them it uses, and never that it uses another.
ALGORITHMS: Final = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "Ed25519", "EdDSA")
)

#: By how much clocks may differ, in seconds.
LEEWAY_S: Final = 30

#: The types of access tokens. Others, such as those that announce a logout, are not for this use.
_TYPES: Final = frozenset((None, "jwt", "at+jwt", "application/at+jwt"))


class _Header(msgspec.Struct):
    alg: str
    kid: str | None = None
    typ: str | None = None
    crit: msgspec.Raw | UnsetType = UNSET


_decode_header: Final = msgspec.json.Decoder(_Header).decode


class _RefusedError(Exception):
    """A token is not valid; the text says why, in words of ours alone."""


class _Registry(JWSRegistry):
    """The algorithms of the library, as far as they are allowed here. What else a header has is ignored."""

    max_header_length = 8192

    def get_alg(self, name: str) -> JWSAlgModel:
        if name not in ALGORITHMS:
            msg = "its algorithm is not allowed"
            raise _RefusedError(msg)
        return self.algorithms[name]


_REGISTRY: Final = _Registry(strict_check_header=False)


class JwtVerifier:
    """
    Verifies the tokens of one issuer for one audience.

    Args:
        issuer:
            Whose tokens these are.

        audience:
            Whom they are for: the URL that clients of this server use.

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
        self._told: set[str] = set()

    async def verify(self, token: str) -> Principal | None:
        """
        Return who bears a token; None if it is not valid. The first time, standard error says why not.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If the issuer cannot be asked for its keys.
        """
        try:
            header = _read_header(token)
            key = await self._issuer.find(header.kid, _REGISTRY.get_alg(header.alg))
            if key is None:
                self._tell("the issuer has no such key")
                return None
            claims = jwt.decode(token, key, registry=_REGISTRY).claims
            self._claims.validate(claims)
            return _principal(claims)
        except (_RefusedError, JoseError, ValueError, RecursionError) as error:
            self._tell(_reason(error))
            return None

    def _tell(self, reason: str) -> None:
        """Say why tokens are refused, once: an operator needs it, and clients send many."""
        if reason not in self._told:
            self._told.add(reason)
            say(f"a token was refused: {reason}. This is said once")


def _read_header(token: str) -> _Header:
    encoded, _, rest = token.partition(".")
    if rest.count(".") != 1:
        msg = "it is no signed JSON Web Token"
        raise _RefusedError(msg)
    try:
        header = _decode_header(urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)))
    except (ValueError, RecursionError):
        msg = "its header cannot be read"
        raise _RefusedError(msg) from None
    kind = header.typ and header.typ.lower()
    if kind not in _TYPES or header.crit is not UNSET:
        msg = "it is of a kind that is not for this use"
        raise _RefusedError(msg)
    return header


def _principal(claims: dict[str, Any]) -> Principal:
    person = claims.get("sub")
    subject = person or claims.get("client_id") or claims.get("azp")
    if not isinstance(subject, str):
        msg = "it does not say whose it is (sub)"
        raise _RefusedError(msg)
    scopes = claims.get("scope", claims.get("scp", ""))
    if isinstance(scopes, list):
        scopes = [scope for scope in scopes if isinstance(scope, str)]
    elif not isinstance(scopes, str):
        scopes = ""
    try:
        return Principal(subject, scopes, min(claims["exp"], 2**53) + LEEWAY_S, program=not person)
    except ValueError:
        msg = "what it says of whose it is (sub) is no text"
        raise _RefusedError(msg) from None


def _reason(error: Exception) -> str:
    """Why a token is refused. Nothing of the token is in it, but for the names of claims we know."""
    if isinstance(error, _RefusedError):
        return str(error)
    if isinstance(error, ExpiredTokenError):
        return "it has expired"
    if isinstance(error, ClaimError):
        return _CLAIMS.get(error.claim, "a claim is missing, or has a wrong value")
    return "its signature is wrong"


_CLAIMS: Final = {
    "iss": "it is of another issuer (iss)",
    "aud": "it is for another server (aud)",
    "exp": "it does not say when it expires (exp)",
    "nbf": "it is not valid yet (nbf)",
    "iat": "it was issued in the future (iat)",
}
