"""
The dated revisions of the protocol, and what each of them has.

No other module names a date: others ask what a revision has, and not which one it is.
"""

from typing import Final

from msgspec import Struct, structs


class Revision(Struct, frozen=True, eq=False):
    """
    One published revision of the protocol.

    Args:
        stateless:
            Whether a request needs no session, as its metadata names the revision, and a result has a
            ``resultType``. In the others, client and server agree once, by an ``initialize`` request.

        audio:
            Whether a message may hold audio.

        resource_links:
            Whether a message may hold a link to a resource.

        titles:
            Whether prompts, arguments and tools have a title.

        metadata:
            Whether prompts and tools have a ``_meta``.

        dates:
            Whether annotations have a date.

        icons:
            Whether prompts and tools have icons.

        tool_annotations:
            Whether a tool says what to expect of a call.

        completions:
            Whether completion has a capability of its own.

        batches:
            Whether several messages may come as one array.

        progress_messages:
            Whether a progress notification may have a message.

        elicitation:
            Whether the server may ask the user for input.

        elicitation_modes:
            Whether an elicitation has a mode, and a form may let the user choose several values.

        empty_lists:
            Whether capabilities are declared for empty lists, too. What is not declared is not answered.

        resource_not_found:
            Whether a resource that does not exist has an error code of its own.

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

LATEST_HANDSHAKE: Final = [r for r in REVISIONS.values() if not r.stateless][-1]

#: The revisions that a request may name.
MODERN: Final = {date: revision for date, revision in REVISIONS.items() if revision.stateless}


def negotiate(proposed: str) -> Revision:
    """
    Return the revision for the answer to ``initialize``.

    It is the one that the client has *proposed*, if that has a handshake, else the newest that has one.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle#version-negotiation
    """
    revision = REVISIONS.get(proposed)
    return revision if revision is not None and not revision.stateless else LATEST_HANDSHAKE
