"""
Verification of JSON Web Tokens: checking a token's signature and claims, and identifying its caller.

See https://www.rfc-editor.org/rfc/rfc8725 and https://www.rfc-editor.org/rfc/rfc9068.
"""

import time
from collections.abc import Callable
from typing import Any, Final

from joserfc import errors, jwt

from promptkit.protocol.principals import Principal, VerifierUnavailableError
from promptkit.standard_error import say
from promptkit.transports.auth.issuer import Issuer

#: Allowed difference between clocks, in seconds.
LEEWAY_S: Final = 30

#: The accepted token types. Tokens of other types, such as logout tokens, are rejected.
_TYPES: Final = frozenset((None, "jwt", "at+jwt", "application/at+jwt"))


class JwtVerifier:
    """
    Verifies tokens from one issuer for one audience.

    Args:
        issuer:
            The issuer of the tokens.

        audience:
            The audience of the tokens: the URL under which clients reach this server.

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
        Return a token's principal, or None if the token is invalid. Log each reason for this only once.

        Args:
            token:
                Any text.

        Raises:
            VerifierUnavailableError: If the issuer's keys cannot be fetched.
        """
        try:
            decoded = await self._issuer.decode(token)
            kind = decoded.header.get("typ")
            if (kind and str(kind).lower()) not in _TYPES or "crit" in decoded.header:
                raise errors.UnsupportedHeaderError  # noqa: TRY301 (handled like the library's own errors)
            self._claims.validate(decoded.claims)
            return _to_principal(decoded.claims)
        except VerifierUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 (a token can contain any JSON)
            self._log_once(_describe_error(error))
            return None

    def _log_once(self, reason: str) -> None:
        """Log why a token is rejected, once per reason, because clients keep sending invalid tokens."""
        if reason not in self._logged:
            self._logged.add(reason)
            say(f"a token was rejected: {reason} (this is reported only once)")


def _to_principal(claims: dict[str, Any]) -> Principal:
    user = claims.get("sub")
    subject = user or claims.get("client_id") or claims.get("azp")
    if not isinstance(subject, str):
        raise errors.MissingClaimError("sub")  # noqa: EM101 (the name of the claim)
    scopes = claims.get("scope", claims.get("scp", ""))
    if isinstance(scopes, list):
        scopes = [scope for scope in scopes if isinstance(scope, str)]
    elif not isinstance(scopes, str):
        scopes = ""
    try:
        return Principal(subject, scopes, min(claims["exp"], 2**53) + LEEWAY_S, program=not user)
    except ValueError:
        raise errors.InvalidClaimError("sub") from None  # noqa: EM101 (the name of the claim)


def _describe_error(error: Exception) -> str:
    """Return why a token is rejected, without revealing its content."""
    if not isinstance(error, errors.JoseError) or isinstance(error, errors.DecodeError):
        return "it is not a JSON Web Token"
    claim = f" ({error.claim})" if isinstance(error, errors.ClaimError) else ""
    return error.error.replace("_", " ") + claim
