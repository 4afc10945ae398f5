"""
The dated revisions of the protocol, and what each of them has.

A revision's date is written here and nowhere else, and no other module asks which
revision this is, only what it has.
"""

from enum import Enum
from typing import Final

import attrs

__all__ = ["LATEST_HANDSHAKE", "REVISIONS", "Era", "Revision", "negotiate"]


class Era(Enum):
    """
    How a revision is agreed upon.
    """

    HANDSHAKE = "once, by an initialize request"
    MODERN = "in the metadata of every request"


@attrs.frozen(eq=False)
class Revision:
    """
    One published revision of the protocol.

    Args:
        date:
            Its name on the wire.

        era:
            How client and server agree on it.

        audio:
            Whether a message may hold audio.

        resource_links:
            Whether a message may hold a link to a resource.

        titles:
            Whether prompts and arguments have a title.

        metadata:
            Whether prompts have a ``_meta``.

        dates:
            Whether annotations have a date.

        icons:
            Whether prompts have icons.

        batches:
            Whether several messages may come as one array.

    See Also:
        https://modelcontextprotocol.io/specification/versioning
    """

    date: str
    era: Era
    audio: bool = True
    resource_links: bool = True
    titles: bool = True
    metadata: bool = True
    dates: bool = True
    icons: bool = True
    batches: bool = False


_MARCH_2025: Final = Revision(
    "2025-03-26",
    Era.HANDSHAKE,
    resource_links=False,
    titles=False,
    metadata=False,
    dates=False,
    icons=False,
    batches=True,
)

#: Every released revision, oldest first.
REVISIONS: Final = {
    revision.date: revision
    for revision in (
        attrs.evolve(_MARCH_2025, date="2024-11-05", audio=False, batches=False),
        _MARCH_2025,
        Revision("2025-06-18", Era.HANDSHAKE, icons=False),
        Revision("2025-11-25", Era.HANDSHAKE),
        Revision("2026-07-28", Era.MODERN),
    )
}

LATEST_HANDSHAKE: Final = [r for r in REVISIONS.values() if r.era is Era.HANDSHAKE][-1]


def negotiate(proposed: str) -> Revision:
    """
    Return the revision to answer an ``initialize`` request with.

    Args:
        proposed:
            The date that the client proposes. It is taken if it is served with a
            handshake; else the newest such revision is the counter-offer.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation
    """
    revision = REVISIONS.get(proposed)
    return revision if revision is not None and revision.era is Era.HANDSHAKE else LATEST_HANDSHAKE
