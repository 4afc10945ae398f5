"""
The key ring: seals tokens that clients keep and send back, and opens those that it has sealed.

A token hides nothing from who bears it. But nobody without the keys can make one, or change it. The
``requestState`` of a request is such a token.
"""

import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable
from enum import Enum
from math import ceil
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from promptkit.protocol.jsonrpc import InvalidParams

#: Keys, or what returns those that hold at the moment.
Keys: TypeAlias = Iterable[bytes] | Callable[[], tuple[bytes, ...]]

#: Shorter keys are refused. A key is random, and as long as what HMAC makes of it.
MIN_KEY_BYTES: Final = 32

#: The version of tokens, in each of them and in what keys are derived from.
_VERSION: Final = "v2"

#: The version, the key's id, when it expires in seconds, the payload if it has one, and the MAC.
_TOKEN: Final = re.compile(
    rf"({_VERSION}\.[0-9a-f]{{8}}\.([0-9]{{1,15}})(?:\.([\w-]+))?)\.([\w-]{{43}})", re.ASCII
)

#: How many characters a token has at most besides its payload, which takes four for each three bytes.
OVERHEAD: Final = len(f"{_VERSION}.{'':8}.{'':15}..{'':43}")

#: In a JSON array it is clear where each part ends, so that no two of them give the same bytes.
_encode: Final = msgspec.json.encode


class Refusal(Enum):
    """
    Why a token is not opened.
    """

    MALFORMED = "this is not a token"
    FORGED = "no key of the ring has sealed this token for this use"
    EXPIRED = "the token has expired"


class TokenRefusedError(ValueError):
    """
    A token is not opened.

    Args:
        refusal:
            Why not.
    """

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.value)
        self.refusal = refusal


class Opened(NamedTuple):
    """
    What a token holds.
    """

    payload: bytes
    expires: int


class KeyRing:
    """
    Seals tokens with its first key, and opens those that any of its keys has sealed.

    A key is replaced while tokens are in use: the new one is added behind the old one wherever tokens are
    opened, then put first, and the old one is removed once its last token has expired.

    Args:
        keys:
            The secrets, of 32 bytes or more. Without any, the ring has a key of its own. A function is called
            whenever keys are used.

        audience:
            Who opens the tokens: the server's name. Servers of other names refuse them, even with the same
            keys.

        own:
            The key of its own. Without one, it is random: then only this object, and processes forked from
            it, open its tokens.

    Attributes:
        is_shared:
            Whether there are keys that other servers may have, too.

    Raises:
        ValueError: If a key could be guessed.
    """

    def __init__(self, keys: Keys = (), audience: str = "", own: bytes | None = None) -> None:
        given = tuple(dict.fromkeys(keys() if callable(keys) else keys))
        shortest = min(map(len, given), default=MIN_KEY_BYTES)
        if shortest < MIN_KEY_BYTES:
            msg = f"a key of {shortest} bytes can be guessed: use 32, as secrets.token_bytes(32) makes them"
            raise ValueError(msg)
        self.audience = audience
        self.is_shared = bool(given)
        secrets = given or (own or os.urandom(MIN_KEY_BYTES),)
        self._current: Callable[[], tuple[bytes, ...]] = keys if callable(keys) else lambda: secrets

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The keys that hold at the moment: the first seals, and all open."""
        return self._current()

    def seal(self, purpose: str, expires: int, payload: bytes = b"", *, bound: bytes = b"") -> str:
        """
        Return a token of letters, digits and ``-._``, which URLs and headers hold as they are.

        Args:
            purpose:
                What the token is for. Each purpose has keys of its own, derived from those of the ring.

            expires:
                Until when it is valid, in seconds since 1970: a whole number that is not negative.

            payload:
                What it holds. Its bearer can read it.

            bound:
                What it belongs to and does not hold: it is opened only with the same bytes.
        """
        secret = self.secrets[0]
        key_id = _derive(secret, [_VERSION, "key id"])[:4].hex()  # it tells nothing of the key
        head = f"{_VERSION}.{key_id}.{expires}" + (f".{_base64url(payload)}" if payload else "")
        return f"{head}.{self._mac(secret, purpose, head, bound)}"

    def open(self, purpose: str, token: str, now: float, *, bound: bytes = b"") -> Opened:
        """
        Return what a token holds.

        Args:
            purpose:
                What it was sealed for.

            token:
                Any text.

            now:
                The time, in seconds since 1970.

            bound:
                What it belongs to.

        Raises:
            TokenRefusedError: If it is no token, if this ring has not sealed it for the same use, or if it
                has expired: the first of these that holds.
        """
        from hmac import compare_digest

        if not (parts := _TOKEN.fullmatch(token)):
            raise TokenRefusedError(Refusal.MALFORMED)
        head, expires, payload, mac = parts.groups()
        # The MAC is of the text and compared as text, so that no other spelling of the same is accepted.
        macs = [self._mac(secret, purpose, head, bound) for secret in self.secrets]
        if not any(compare_digest(own, mac) for own in macs):
            raise TokenRefusedError(Refusal.FORGED)
        if now > int(expires):
            raise TokenRefusedError(Refusal.EXPIRED)
        return Opened(urlsafe_b64decode((payload or "") + "=="), int(expires))  # it may be too much padding

    def digest(self, purpose: str, data: bytes) -> str:
        """
        Return a digest of *data* that nobody can compare with what they guess, but who has the first key.

        Args:
            purpose:
                What the digest is for.

            data:
                Any bytes.
        """
        return self._mac(self.secrets[0], purpose, "", data)

    def _mac(self, secret: bytes, purpose: str, head: str, bound: bytes) -> str:
        import hmac  # not before the first token

        derived = _derive(secret, [_VERSION, "token", purpose, self.audience])
        # A head holds no zero, so that it is clear where it ends.
        return _base64url(hmac.digest(derived, b"%b\0%b" % (head.encode(), bound), "sha256"))


def _derive(secret: bytes, info: list[str]) -> bytes:
    """HKDF of RFC 5869, with SHA-256, without salt, for 32 bytes."""
    import hmac

    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, _encode(info) + b"\1", "sha256")


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


_PURPOSE: Final = "requestState"

#: What the client is told if its token is not taken.
_REASONS: Final = {
    Refusal.MALFORMED: "requestState was not issued by this server: send it back as it came, or leave it out",
    Refusal.FORGED: "requestState was changed or belongs to another request: send this one again without it",
}

#: Keys are sorted, so that equal values give equal bytes. What is signed is one JSON array, in which it is
#: clear where each part ends, so that no two requests give the same bytes.
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


class RequestStateSigner:
    """
    Issues the ``requestState`` of a request, and verifies it.

    Args:
        ring:
            The keys that tokens are signed with. The default has one random key, so that only this object
            accepts its tokens.

        lifetime:
            How long a token is valid, in seconds.

        clock:
            Returns the time, in seconds.

    See Also:
        https://modelcontextprotocol.io/specification/2026-07-28/basic/patterns/mrtr#server-requirements-basic-workflow
    """

    def __init__(
        self, ring: KeyRing | None = None, lifetime: float = 900.0, clock: Callable[[], float] = time.time
    ) -> None:
        self._ring = ring or KeyRing()
        self._lifetime = lifetime
        self._clock = clock

    def sign(self, method: str, params: Any) -> str:
        """
        Return the token for one request, which is safe in URLs.

        The *params* are any JSON value. The order of keys does not matter.
        """
        expires = ceil(self._clock() + self._lifetime)
        return self._ring.seal(_PURPOSE, expires, bound=_encode_sorted([method, params]))

    def is_fresh(self, token: str, method: str, params: Any) -> bool:
        """
        Return whether *token*, which `sign` returned for the same request, has not expired.

        Raises:
            InvalidParams: If the token is malformed, changed, or for another request.
        """
        try:
            self._ring.open(_PURPOSE, token, self._clock(), bound=_encode_sorted([method, params]))
        except TokenRefusedError as refused:
            if refused.refusal is Refusal.EXPIRED:
                return False
            raise InvalidParams(_REASONS[refused.refusal]) from None
        return True
