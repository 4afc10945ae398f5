"""One sentence of the specification, as a claim about the server."""

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

#: Those of which every request says which one it is.
MODERN: Final = ALL[4:]

#: The one that has batches.
BATCHES: Final = ALL[1:2]

_MOVED: Final = {
    "basic/patterns/cancellation": "basic/utilities/cancellation",
    "basic/patterns/progress": "basic/utilities/progress",
    "basic/transports/stdio": "basic/transports#stdio",
}

#: Where pages stood in the revisions that had them elsewhere, or had only a link to the schema.
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
    What one or several revisions ask of a server.

    What a page tells as a fact, without one of the words of RFC 2119, counts as a MUST if
    clients rely on it. The "must" and "should" in small letters of the schema's comments count
    as if they were capitals.

    Args:
        id:
            What tests are tagged with: the page in short, and what it is about.

        strength:
            MUST, MUST NOT, SHOULD, SHOULD NOT, or MAY where it is done though it need not be.

        revisions:
            Those whose pages say it.

        page:
            Where the newest of them says it, below the revision's address.

        claim:
            What the server does.

        left_out:
            Why it does not, if it does not.
    """

    id: str
    strength: str
    revisions: tuple[str, ...]
    page: str
    claim: str
    left_out: str = ""

    def url(self, revision: str) -> str:
        """
        Return the address of what *revision*, one of the `revisions`, says.
        """
        page, mark, anchor = self.page.partition("#")
        found = _EARLIER[revision].get(page, page)
        if "#" not in found:
            found += mark + anchor
        return f"https://modelcontextprotocol.io/specification/{revision}/{found}"
