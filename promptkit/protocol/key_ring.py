"""
The key ring: seals tokens that clients store and send back, and opens them again.

The bearer of a token can read its payload, but only a server with the keys can create or change a token. The
``requestState`` of a request is such a token, and so is the id of a session: every worker and replica with
the same keys can open it, so no session store is needed.

See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management.
"""

import os
import re
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from math import ceil
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import InvalidParams
from promptkit.protocol.revisions import REVISIONS, Revision

#: Keys, or a function that returns the current keys.
Keys: TypeAlias = Iterable[bytes] | Callable[[], tuple[bytes, ...]]

#: The minimum length of a key, in bytes: the length of the HMAC's output.
MIN_KEY_BYTES: Final = 32

#: The version of the token format, in each token and in the key derivation.
_VERSION: Final = "v2"

#: The version, the key's id, the expiry in seconds since 1970, an optional payload, and the MAC.
_TOKEN: Final = re.compile(
    rf"({_VERSION}\.[0-9a-f]{{8}}\.([0-9]{{1,15}})(?:\.([\w-]+))?)\.([\w-]{{43}})", re.ASCII
)

#: The maximum length of a token without its payload, which takes four characters for every three bytes.
OVERHEAD: Final = len(f"{_VERSION}.{'':8}.{'':15}..{'':43}")

#: A JSON array delimits its parts, so that no two lists of parts encode to the same bytes.
_encode: Final = msgspec.json.encode


class InvalidTokenError(ValueError):
    """No key of the ring has sealed the text for this purpose and context."""


class TokenExpiredError(InvalidTokenError):
    """The token has expired."""


class KeyRing:
    """
    A list of keys. The first key seals tokens, and each key can open the tokens that it has sealed.

    To replace a key while tokens are in use, add the new key after the old one on every server, then move it
    to the front, and remove the old key once its last token has expired.

    Args:
        keys:
            The secrets, of 32 bytes or more, or a function that returns them. The function is called whenever
            keys are used. If there are no keys, the ring uses *own*.

        audience:
            The server's name. Servers with other names reject the tokens, even with the same keys.

        own:
            The key to use if no *keys* are given. By default, it is random, so that only this object and its
            copies in forked processes can open its tokens.

    Attributes:
        is_shared:
            Whether *keys* were given, so that other servers may have the same keys.

    Raises:
        ValueError: If a key is too short.
    """

    def __init__(self, keys: Keys = (), audience: str = "", own: bytes | None = None) -> None:
        initial_keys = tuple(dict.fromkeys(keys() if callable(keys) else keys))
        shortest = min(map(len, initial_keys), default=MIN_KEY_BYTES)
        if shortest < MIN_KEY_BYTES:
            msg = (
                f"a key of {shortest} bytes can be guessed: use 32 bytes, for example secrets.token_bytes(32)"
            )
            raise ValueError(msg)
        self.audience = audience
        self.is_shared = bool(initial_keys)
        secrets = initial_keys or (own or os.urandom(MIN_KEY_BYTES),)
        self._current: Callable[[], tuple[bytes, ...]] = keys if callable(keys) else lambda: secrets

    @property
    def secrets(self) -> tuple[bytes, ...]:
        """The current keys. The first one seals tokens."""
        return self._current()

    def seal(self, purpose: str, expires: int, payload: bytes = b"", *, bound: bytes = b"") -> str:
        """
        Return a token of letters, digits and ``-._``, which is safe in URLs and headers.

        Args:
            purpose:
                The use of the token. Each purpose has its own key, derived from the ring's.

            expires:
                The expiry, in seconds since 1970: a whole number that is not negative.

            payload:
                The content of the token, which the bearer can read.

            bound:
                The context of the token. The token does not contain these bytes, but can only be opened with
                them.
        """
        secret = self.secrets[0]
        key_id = _derive(secret, [_VERSION, "key id"])[:4].hex()  # does not reveal anything about the key
        head = f"{_VERSION}.{key_id}.{expires}" + (f".{_base64url(payload)}" if payload else "")
        return f"{head}.{self._mac(secret, purpose, head, bound)}"

    def open(self, purpose: str, token: str, now: float, *, bound: bytes = b"") -> tuple[bytes, int]:
        """
        Return the payload and the expiry of a token.

        Args:
            purpose:
                The purpose that was passed to `seal`.

            token:
                Any text.

            now:
                The time, in seconds since 1970.

            bound:
                The context that was passed to `seal`.

        Raises:
            InvalidTokenError: If no key of this ring has sealed the text for this purpose and context.

            TokenExpiredError: If the token has expired.
        """
        from hmac import compare_digest

        if not (parts := _TOKEN.fullmatch(token)):
            raise InvalidTokenError
        head, expires, payload, mac = parts.groups()
        # The MAC covers the text and is compared as text, so that only one spelling is accepted.
        macs = [self._mac(secret, purpose, head, bound) for secret in self.secrets]
        if not any(compare_digest(own, mac) for own in macs):
            raise InvalidTokenError
        if now > int(expires):
            raise TokenExpiredError
        return urlsafe_b64decode((payload or "") + "=="), int(expires)  # excess padding is ignored

    def digest(self, purpose: str, data: bytes) -> str:
        """Return a digest of *data*. Guesses at *data* can only be tested with the ring's first key."""
        return self._mac(self.secrets[0], purpose, "", data)

    def _mac(self, secret: bytes, purpose: str, head: str, bound: bytes) -> str:
        import hmac  # not needed before the first token

        derived = _derive(secret, [_VERSION, "token", purpose, self.audience])
        # A head never contains a zero byte, so its end is unambiguous.
        return _base64url(hmac.digest(derived, b"%b\0%b" % (head.encode(), bound), "sha256"))


def _derive(secret: bytes, info: list[str]) -> bytes:
    """Derive 32 bytes with the HKDF of RFC 5869, with SHA-256 and without a salt."""
    import hmac

    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, _encode(info) + b"\1", "sha256")


def _base64url(data: bytes) -> str:
    return urlsafe_b64encode(data).rstrip(b"=").decode()


_REQUEST_STATE: Final = "requestState"

#: Sorted keys give equal values equal bytes. The signed value is a JSON array, which delimits its parts, so
#: that no two requests encode to the same bytes.
_encode_sorted: Final = msgspec.json.Encoder(order="sorted").encode


class RequestStateSigner:
    """
    Signs and verifies the ``requestState`` of requests.

    Args:
        ring:
            The keys that sign the tokens. The default ring has one random key, so that only this object
            accepts its tokens.

        lifetime:
            How long a token is valid, in seconds.

        clock:
            A function that returns the time, in seconds since 1970.

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
        Return a token that is valid only for one request, and is safe in URLs.

        *params* can be any JSON value. The order of its keys does not matter.
        """
        expires = ceil(self._clock() + self._lifetime)
        return self._ring.seal(_REQUEST_STATE, expires, bound=_encode_sorted([method, params]))

    def is_fresh(self, token: str, method: str, params: Any) -> bool:
        """
        Return whether a token that `sign` returned for the same request has not expired yet.

        Raises:
            InvalidParams: If the token is malformed, was changed, or belongs to another request.
        """
        try:
            self._ring.open(_REQUEST_STATE, token, self._clock(), bound=_encode_sorted([method, params]))
        except TokenExpiredError:
            return False
        except InvalidTokenError:
            msg = "requestState was not issued by this server for this request: send the request without it"
            raise InvalidParams(msg) from None
        return True


#: The maximum length of a session id, in characters. Together with the other headers of a response, it must
#: fit into 4 KiB, nginx's default.
MAX_SESSION_ID: Final = 2048

#: How long a session id is valid, in seconds. Some clients report an expired session as an error instead of
#: opening a new session, so the lifetime exceeds the usual run time of programs. A key that has been replaced
#: can be removed after this time.
SESSION_LIFETIME_S: Final = 30 * 24 * 3600.0

_SESSION_ID: Final = "session id"

#: The maximum number of verified session ids in the cache.
_CACHED_IDS: Final = 512

#: The maximum size of a session id's payload, in bytes.
_MAX_SESSION_PAYLOAD: Final = (MAX_SESSION_ID - OVERHEAD) * 3 // 4


class SealedSession(Struct, frozen=True):
    """
    The result of a handshake.

    Args:
        revision:
            The negotiated revision.

        client:
            The client's name and version, if known.

        capabilities:
            The client's capabilities. They must not be modified.

        expires:
            The expiry of the session, in seconds since 1970.
    """

    revision: Revision
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]
    expires: int


class _SessionPayload(Struct, array_like=True):
    """The payload of a session id. The random part makes each id unique."""

    random: bytes
    revision: str
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]


_decode_session: Final = msgspec.json.Decoder(_SessionPayload).decode


class Sessions:
    """
    Issues sealed session ids, and opens them again.

    Args:
        ring:
            The keys that seal the ids.

        lifetime:
            How long an id is valid, in seconds.

        clock:
            A function that returns the time, in seconds since 1970.
    """

    def __init__(
        self, ring: KeyRing, lifetime: float = SESSION_LIFETIME_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._ring = ring
        self._lifetime = lifetime
        self._clock = clock
        # Ids that are rejected with an exception are not cached.
        self._verify_cached = lru_cache(_CACHED_IDS)(self._verify)

    def seal(
        self,
        revision: Revision,
        client: wire.ClientInfo | None,
        capabilities: Mapping[str, Any],
        owner: str = "",
    ) -> str:
        """
        Return a new session id of at most 2,048 characters.

        If the client's name, version and capabilities do not fit, they are omitted.

        Args:
            revision:
                The negotiated revision.

            client:
                The client's name and version.

            capabilities:
                The client's capabilities.

            owner:
                The identity of an authenticated caller. Only the same caller can open the session.
        """
        payload = _encode(_SessionPayload(os.urandom(12), revision.date, client, dict(capabilities)))
        if len(payload) > _MAX_SESSION_PAYLOAD:
            payload = _encode(_SessionPayload(os.urandom(12), revision.date, None, {}))
        expires = ceil(self._clock() + self._lifetime)
        return self._ring.seal(_SESSION_ID, expires, payload, bound=owner.encode())

    def open(self, session_id: str, owner: str = "") -> SealedSession | None:
        """
        Return the session with this id, or None if the id has expired or was not issued to this owner.

        Args:
            session_id:
                Any text.

            owner:
                The identity of an authenticated caller.
        """
        if len(session_id) > MAX_SESSION_ID:
            return None
        try:
            session = self._verify_cached(session_id, owner, self._ring.secrets)
        except (InvalidTokenError, msgspec.DecodeError):
            return None
        return session if session is not None and self._clock() <= session.expires else None

    def _verify(self, session_id: str, owner: str, _keys: tuple[bytes, ...]) -> SealedSession | None:
        """Open an id. The keys are a parameter so that cached results are not used after the keys change."""
        payload, expires = self._ring.open(_SESSION_ID, session_id, self._clock(), bound=owner.encode())
        decoded = _decode_session(payload)
        revision = REVISIONS.get(decoded.revision)
        if revision is None:
            return None
        return SealedSession(revision, decoded.client, decoded.capabilities, expires)
