"""Principals: who sends a request, as far as somebody has verified that."""

from collections.abc import Awaitable, Iterable
from typing import Protocol

import attrs


def _check_exact(_principal: object, _attribute: object, subject: str) -> None:
    try:
        subject.encode()
    except UnicodeEncodeError:
        msg = "a subject is text that UTF-8 can write: this one holds half of a surrogate pair"
        raise ValueError(msg) from None


def _split(scopes: str | Iterable[str]) -> frozenset[str]:
    return frozenset(scopes.split() if isinstance(scopes, str) else scopes)


@attrs.frozen
class Principal:
    """
    Whoever bears a token that was verified.

    Args:
        subject:
            Who it is: the same text for the same person, and for nobody else. Any text that UTF-8 can write
            is taken as it is.

        scopes:
            What the token allows. One text with blanks between the scopes is taken apart.

        expires:
            When the token expires, in seconds since 1970. Until then, but for five minutes at most, the
            result of one verification is used again. Without it, each request verifies the token.

        program:
            Whether it is a program that acts for itself, and *subject* its id. A person of the same subject
            is somebody else.

    Raises:
        ValueError: If UTF-8 cannot write the subject.
    """

    subject: str = attrs.field(validator=_check_exact)
    scopes: frozenset[str] = attrs.field(default=frozenset(), converter=_split)
    expires: float | None = None
    program: bool = attrs.field(default=False, kw_only=True)

    @property
    def identity(self) -> str:
        """
        The subject and its kind in one text, which no other principal has.
        """
        return f"{'program' if self.program else 'person'} {self.subject}"


class VerifierUnavailableError(Exception):
    """
    A token cannot be verified at the moment. A verifier raises it, and the client is told to try later.
    """


class TokenVerifier(Protocol):
    """
    Says who bears a token.
    """

    def verify(self, token: str) -> Principal | Awaitable[Principal | None] | None:
        """
        Return who bears a token; None if it is not valid here.

        It may be an ``async`` function. A plain one must not wait for anything, as all requests would.

        Args:
            token:
                The token: printable ASCII without blanks, up to 32 KiB.

        Raises:
            VerifierUnavailableError: If that cannot be said at the moment.
        """
