"""
Sessions of clients that open one with ``initialize``, without a store.

The session id is a sealed token of what the client said then. Every worker and replica with the same keys
opens it. It proves nothing about who sends it; if somebody asks that, it is of use to that client alone.

See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#session-management.
"""

import os
import time
from collections.abc import Callable, Mapping
from functools import lru_cache
from itertools import accumulate
from math import ceil
from typing import Any, Final

import msgspec
from msgspec import Struct

from promptkit.protocol import wire
from promptkit.protocol.key_ring import OVERHEAD, KeyRing, TokenRefusedError
from promptkit.protocol.revisions import REVISIONS, Revision

#: How many characters a session id has at most. With the other headers of a reply it has to fit into 4 KiB,
#: which is all that nginx takes unless it is told otherwise.
MAX_LENGTH: Final = 2048

#: How long a session id is valid, in seconds. Some clients report an ended session as an error instead of
#: opening another, so it is longer than programs mostly run. After this a replaced key is needed no more.
LIFETIME_S: Final = 30 * 24 * 3600.0

_PURPOSE: Final = "session id"

#: How many session ids are known without being verified again.
_KNOWN: Final = 512

#: How much of it a payload may take, in bytes.
_MAX_PAYLOAD: Final = (MAX_LENGTH - OVERHEAD) * 3 // 4


class SealedSession(Struct, frozen=True):
    """
    What a client said when it opened the session.

    Args:
        revision:
            The revision that was agreed on.

        client:
            The client's name and version, None if they are unknown.

        capabilities:
            What the client can do. It must not be changed.

        expires:
            Until when the session lasts, in seconds since 1970.
    """

    revision: Revision
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]
    expires: int


class _Payload(Struct, array_like=True):
    """What a session id holds; the random part makes each unlike every other."""

    random: bytes
    revision: str
    client: wire.ClientInfo | None
    capabilities: dict[str, Any]


_encode: Final = msgspec.json.encode
_decode: Final = msgspec.json.Decoder(_Payload).decode

_SIZE_WITHOUT: Final = len(_encode(_Payload(bytes(12), next(iter(REVISIONS)), None, {})))


class Sessions:
    """
    Issues session ids, and opens them.

    Args:
        ring:
            The keys that ids are sealed with.

        lifetime:
            How long an id is valid, in seconds.

        clock:
            Returns the time, in seconds since 1970.
    """

    def __init__(
        self, ring: KeyRing, lifetime: float = LIFETIME_S, clock: Callable[[], float] = time.time
    ) -> None:
        self._ring = ring
        self._lifetime = lifetime
        self._clock = clock
        # It keeps what was opened, and not what was refused: that is raised.
        self._verified = lru_cache(_KNOWN)(self._verify)

    def seal(
        self,
        revision: Revision,
        client: wire.ClientInfo | None,
        capabilities: Mapping[str, Any],
        owner: str = "",
    ) -> str:
        """
        Return a new session id, of 2,048 characters at most.

        What does not fit is left out: of the client's name and version, and of each capability, the largest
        first.

        Args:
            revision:
                The revision that was agreed on.

            client:
                The client's name and version.

            capabilities:
                What the client can do, as it came.

            owner:
                Whose session it is, if somebody has asked: it is open to nobody else.
        """
        kept = _fitting(client, capabilities)
        payload = _Payload(
            os.urandom(12),
            revision.date,
            client if None in kept else None,
            {name: value for name, value in capabilities.items() if name in kept},
        )
        expires = ceil(self._clock() + self._lifetime)
        return self._ring.seal(_PURPOSE, expires, _encode(payload), bound=owner.encode())

    def open(self, session_id: str, owner: str = "") -> SealedSession | None:
        """
        Return the session with this id; None if it has ended or never was, so that the client opens another.

        Args:
            session_id:
                Any text.

            owner:
                Who sends it.
        """
        if len(session_id) > MAX_LENGTH:
            return None
        try:
            session = self._verified(session_id, owner, self._ring.secrets)
        except (TokenRefusedError, msgspec.DecodeError):
            return None
        return session if session is not None and self._clock() <= session.expires else None

    def _verify(self, session_id: str, owner: str, _known_by: tuple[bytes, ...]) -> SealedSession | None:
        """Open an id; what is kept of it is of no use once there are other keys."""
        payload, expires = self._ring.open(_PURPOSE, session_id, self._clock(), bound=owner.encode())
        said = _decode(payload)
        revision = REVISIONS.get(said.revision)
        if revision is None:
            return None
        return SealedSession(revision, said.client, said.capabilities, expires)


def _fitting(client: wire.ClientInfo | None, capabilities: Mapping[str, Any]) -> set[str | None]:
    """The names of the capabilities that fit into a session id, and None if the client does."""
    # Of the two braces around each, one stands for its comma.
    sizes: dict[str | None, int] = {name: len(_encode({name: one})) - 1 for name, one in capabilities.items()}
    if client is not None:
        sizes[None] = len(_encode(client))
    smallest_first = sorted(sizes, key=sizes.__getitem__)
    ends = accumulate(sizes[name] for name in smallest_first)
    room = _MAX_PAYLOAD - _SIZE_WITHOUT
    return {name for name, end in zip(smallest_first, ends, strict=True) if end <= room}
