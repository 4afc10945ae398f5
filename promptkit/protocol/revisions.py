"""
The dated revisions of the protocol, and what each of them has.

A revision's date is written here and nowhere else, and no other module asks which
revision this is, only what it has.
"""

from enum import Enum
from typing import Final

from msgspec import Struct, structs

__all__ = ["LATEST_HANDSHAKE", "MODERN", "REVISIONS", "Era", "Revision", "negotiate"]


class Era(Enum):
    """
    How a revision is agreed upon.
    """

    HANDSHAKE = "once, by an initialize request"
    MODERN = "in the metadata of every request"


class Revision(Struct, frozen=True, eq=False):
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

        completions:
            Whether completion is a capability, and not only a method.

        batches:
            Whether several messages may come as one array.

        progress_messages:
            Whether a report of progress may say something.

        elicitation:
            Whether the user may be asked for something.

        elicitation_modes:
            Whether a question says how it is asked, and a form may offer several choices at once.

        empty_lists:
            Whether a list that has nothing in it is declared, too: what is not declared is not answered.

        resource_not_found:
            Whether a resource that there is not has an error code of its own.

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
    completions: bool = True
    batches: bool = False
    progress_messages: bool = True
    elicitation: bool = True
    elicitation_modes: bool = True
    empty_lists: bool = False
    resource_not_found: bool = True

    @property
    def stateless(self) -> bool:
        """
        Whether a request says all that is needed to answer it, and a result what it is.
        """
        return self.era is Era.MODERN


_MARCH_2025: Final = Revision(
    "2025-03-26",
    Era.HANDSHAKE,
    resource_links=False,
    titles=False,
    metadata=False,
    dates=False,
    icons=False,
    batches=True,
    elicitation=False,
    elicitation_modes=False,
)

#: Every released revision, oldest first.
REVISIONS: Final = {
    revision.date: revision
    for revision in (
        structs.replace(
            _MARCH_2025,
            date="2024-11-05",
            audio=False,
            completions=False,
            batches=False,
            progress_messages=False,
        ),
        _MARCH_2025,
        Revision("2025-06-18", Era.HANDSHAKE, icons=False, elicitation_modes=False),
        Revision("2025-11-25", Era.HANDSHAKE),
        Revision("2026-07-28", Era.MODERN, empty_lists=True, resource_not_found=False),
    )
}

LATEST_HANDSHAKE: Final = [r for r in REVISIONS.values() if r.era is Era.HANDSHAKE][-1]

#: The revisions that a request may name.
MODERN: Final = {date: revision for date, revision in REVISIONS.items() if revision.stateless}


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
