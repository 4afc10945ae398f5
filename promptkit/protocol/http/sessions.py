"""
Sessions of clients that send ``initialize``, without a session store.

The session id is a sealed token with the result of the handshake. Every worker and replica with the same keys
can open it. It does not authenticate the client; with authentication, it is bound to its owner.

See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from math import ceil
from typing import Any, Final

import msgspec
from msgspec import Struct

from promptkit.protocol import wire
from promptkit.protocol.key_ring import OVERHEAD, InvalidTokenError, KeyRing
from promptkit.protocol.revisions import REVISIONS, Revision

#: The maximum length of a session id, in characters. With the other headers of a response it must fit into
#: 4 KiB, nginx's default.
MAX_LENGTH: Final = 2048

#: The validity of a session id, in seconds. Some clients report an expired session as an error instead of
#: opening a new one, so it exceeds the usual run time of programs. After this time, a replaced key can be
#: removed.
LIFETIME_S: Final = 30 * 24 * 3600.0

_PURPOSE: Final = "session id"

#: The size of the cache of verified session ids.
_CACHED_IDS: Final = 512

#: The maximum size of the payload of a session id, in bytes.
_MAX_PAYLOAD: Final = (MAX_LENGTH - OVERHEAD) * 3 // 4


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


class _Payload(Struct, array_like=True):
    """The payload of a session id. The random part makes each id unique."""

    random: bytes
    revision: str
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]


_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.Decoder(_Payload).decode


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
        self, ring: KeyRing, lifetime: float = LIFETIME_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._ring = ring
        self._lifetime = lifetime
        self._clock = clock
        # Rejected ids raise an exception, so they are not cached.
        self._verify_cached = lru_cache(_CACHED_IDS)(self._verify)

    def seal(
        self,
        revision: Revision,
        client: wire.ClientInfo | None,
        capabilities: Mapping[str, Any],
        owner: str = "",
    ) -> str:
        """
        Return a new session id, of 2,048 characters at most.

        If the client's name and version and its capabilities do not fit, they are omitted.

        Args:
            revision:
                The negotiated revision.

            client:
                The client's name and version.

            capabilities:
                The client's capabilities.

            owner:
                The caller's identity, if authenticated: only the same caller can open the session.
        """
        payload = _encode(_Payload(os.urandom(12), revision.date, client, dict(capabilities)))
        if len(payload) > _MAX_PAYLOAD:
            payload = _encode(_Payload(os.urandom(12), revision.date, None, {}))
        expires = ceil(self._clock() + self._lifetime)
        return self._ring.seal(_PURPOSE, expires, payload, bound=owner.encode())

    def open(self, session_id: str, owner: str = "") -> SealedSession | None:
        """
        Return the session with this id, or None if it has expired or never existed.

        Args:
            session_id:
                Any text.

            owner:
                The caller's identity, if authenticated.
        """
        if len(session_id) > MAX_LENGTH:
            return None
        try:
            session = self._verify_cached(session_id, owner, self._ring.secrets)
        except (InvalidTokenError, msgspec.DecodeError):
            return None
        return session if session is not None and self._clock() <= session.expires else None

    def _verify(self, session_id: str, owner: str, _keys: tuple[bytes, ...]) -> SealedSession | None:
        """Open an id. The keys are a parameter so that the cache is invalidated when they change."""
        payload, expires = self._ring.open(_PURPOSE, session_id, self._clock(), bound=owner.encode())
        decoded = _decode(payload)
        revision = REVISIONS.get(decoded.revision)
        if revision is None:
            return None
        return SealedSession(revision, decoded.client, decoded.capabilities, expires)
