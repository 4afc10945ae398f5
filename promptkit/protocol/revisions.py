"""
The dated revisions of the protocol, and the features of each.

Other modules check the features of a revision, and never its date.
"""

from typing import Final

from msgspec import Struct, structs


class Revision(Struct, frozen=True, eq=False):
    """
    One published revision of the protocol.

    Args:
        date:
            The date by which the revision is named.

        stateless:
            Whether requests do not need a session, because their metadata names the revision. Results then
            have a ``resultType``. In other revisions, client and server negotiate once, with ``initialize``.

        audio:
            Whether a message can contain audio.

        resource_links:
            Whether a message can contain a link to a resource.

        titles:
            Whether prompts, arguments and tools have a title.

        metadata:
            Whether prompts and tools have a ``_meta``.

        dates:
            Whether annotations can have a date.

        icons:
            Whether prompts and tools have icons.

        tool_annotations:
            Whether a tool has annotations that describe its behavior.

        completions:
            Whether completion has its own capability.

        batches:
            Whether a client can send several messages as one array.

        progress_messages:
            Whether a progress notification can have a message.

        elicitation:
            Whether the server can ask the user for input.

        elicitation_modes:
            Whether an elicitation has a mode, and a form can offer multiple choice.

        empty_lists:
            Whether the server must declare its capabilities even for lists that are empty, because it serves
            these lists as well.

        resource_not_found:
            Whether there is a separate error code for unknown resources.

    See Also:
        https://modelcontextprotocol.io/specification/versioning
    """

    date: str
    stateless: bool = False
    audio: bool = True
    resource_links: bool = True
    titles: bool = True
    metadata: bool = True
    dates: bool = True
    icons: bool = True
    tool_annotations: bool = True
    completions: bool = True
    batches: bool = False
    progress_messages: bool = True
    elicitation: bool = True
    elicitation_modes: bool = True
    empty_lists: bool = False
    resource_not_found: bool = True


_MARCH_2025: Final = Revision(
    "2025-03-26",
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
            tool_annotations=False,
            completions=False,
            batches=False,
            progress_messages=False,
        ),
        _MARCH_2025,
        Revision("2025-06-18", icons=False, elicitation_modes=False),
        Revision("2025-11-25"),
        Revision("2026-07-28", stateless=True, empty_lists=True, resource_not_found=False),
    )
}

LATEST_HANDSHAKE: Final = [revision for revision in REVISIONS.values() if not revision.stateless][-1]

#: The revisions that a request can name.
MODERN: Final = {date: revision for date, revision in REVISIONS.items() if revision.stateless}


def negotiate(proposed: str) -> Revision:
    """
    Return the revision to use in the answer to ``initialize``.

    This is the *proposed* revision if it has a handshake, otherwise the newest revision that has one.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation
    """
    revision = REVISIONS.get(proposed)
    return revision if revision is not None and not revision.stateless else LATEST_HANDSHAKE
