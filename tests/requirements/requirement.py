"""A requirement of the specification, as a claim about the server."""

from collections.abc import Mapping
from typing import Final

import attrs

__all__ = [
    "ALL",
    "BATCHES",
    "HANDSHAKE",
    "HANDSHAKE_SINCE_2025_03",
    "HANDSHAKE_SINCE_2025_06",
    "LAST_HANDSHAKE",
    "MODERN",
    "SINCE_2025_03",
    "SINCE_2025_06",
    "SINCE_2025_11",
    "THROUGH_2025_03",
    "THROUGH_2025_06",
    "Requirement",
]

ALL: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
SINCE_2025_03: Final = ALL[1:]
SINCE_2025_06: Final = ALL[2:]
SINCE_2025_11: Final = ALL[3:]
THROUGH_2025_03: Final = ALL[:2]
THROUGH_2025_06: Final = ALL[:3]

#: The revisions that are agreed on by an initialize request.
HANDSHAKE: Final = ALL[:4]
HANDSHAKE_SINCE_2025_03: Final = ALL[1:4]
HANDSHAKE_SINCE_2025_06: Final = ALL[2:4]
LAST_HANDSHAKE: Final = ALL[3:4]

#: The revisions in which every request names its revision.
MODERN: Final = ALL[4:]

#: The revision with batches.
BATCHES: Final = ALL[1:2]

_MOVED: Final = {
    "basic/patterns/cancellation": "basic/utilities/cancellation",
    "basic/patterns/progress": "basic/utilities/progress",
    "basic/transports/stdio": "basic/transports#stdio",
}

#: Pages that had another path in earlier revisions, or were only a link to the schema.
_EARLIER: Final[Mapping[str, Mapping[str, str]]] = {
    "2024-11-05": {**_MOVED, "basic": "basic/messages", "schema": "basic#schema"},
    "2025-03-26": {**_MOVED, "schema": "basic#schema"},
    "2025-06-18": _MOVED,
    "2025-11-25": _MOVED,
    "2026-07-28": {},
}


@attrs.frozen
class Requirement:
    """
    A requirement of one or several revisions.

    A fact that a page states without a keyword of RFC 2119 counts as a MUST if clients rely on it. In
    comments of the schema, "must" and "should" in lower case count like those in capitals.

    Args:
        id:
            The id that tests are marked with: a short name of the page, and the topic.

        strength:
            MUST, MUST NOT, SHOULD, SHOULD NOT, or MAY for an option that the server implements.

        revisions:
            The revisions with the requirement.

        page:
            The page in the newest of these revisions, relative to the revision's address.

        claim:
            The behavior of the server.

        exemption:
            The reason why the server does not comply, if so.
    """

    id: str
    strength: str
    revisions: tuple[str, ...]
    page: str
    claim: str
    exemption: str = ""

    def url(self, revision: str) -> str:
        """Return the address of the requirement in *revision*, one of its `revisions`."""
        page, mark, anchor = self.page.partition("#")
        path = _EARLIER[revision].get(page, page)
        if "#" not in path:
            path += mark + anchor
        return f"https://modelcontextprotocol.io/specification/{revision}/{path}"
