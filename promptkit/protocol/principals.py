"""Principals: the verified callers of requests."""

from collections.abc import Awaitable, Iterable
from typing import Protocol

import attrs


def _check_unicode(_principal: object, _attribute: object, subject: str) -> None:
    subject.encode()  # raises UnicodeEncodeError for a lone surrogate


def _split(scopes: str | Iterable[str]) -> frozenset[str]:
    return frozenset(scopes.split() if isinstance(scopes, str) else scopes)


@attrs.frozen
class Principal:
    """
    The bearer of a verified token.

    Args:
        subject:
            A unique and stable identifier of the caller. Any text that can be encoded in UTF-8 is used
            unchanged.

        scopes:
            The scopes that the token grants, as an iterable, or as one string with spaces between them.

        expires:
            When the token expires, in seconds since 1970. The principal is cached until then, but for at most
            five minutes. If None, the token is verified again for every request.

        program:
            Whether the caller is a program that acts on its own behalf, with *subject* as its id. A person
            with the same subject is a different principal.

    Raises:
        ValueError: If the subject cannot be encoded in UTF-8.
    """

    subject: str = attrs.field(validator=_check_unicode)
    scopes: frozenset[str] = attrs.field(default=frozenset(), converter=_split)
    expires: float | None = None
    program: bool = attrs.field(default=False, kw_only=True)

    @property
    def identity(self) -> str:
        """The subject and its kind in one string, which is unique to this principal."""
        return f"{'program' if self.program else 'person'} {self.subject}"


class VerifierUnavailableError(Exception):
    """A verifier raises this error if it cannot verify a token at the moment. The client may retry later."""


class TokenVerifier(Protocol):
    """The interface of objects that verify tokens."""

    def verify(self, token: str) -> Principal | Awaitable[Principal | None] | None:
        """
        Return the bearer of a token, or None if the token is not valid for this server.

        This can be an ``async`` function. A plain function must not block, because all requests wait for it.

        Args:
            token:
                The token: printable ASCII without spaces, up to 32 KiB.

        Raises:
            VerifierUnavailableError: If the token cannot be verified at the moment.
        """
