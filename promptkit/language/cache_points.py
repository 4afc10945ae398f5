"""
Positions of cache points while parts, texts and workflows are joined.

A position is the index of a message and an offset into its text, as in `Workflow.cache_points`. While more
parts may follow, a point after a text has the offset at which the next part would start; once everything is
joined, such a point moves to the end of the text.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from promptkit.language.content import Content
from promptkit.language.text import Text

CachePosition: TypeAlias = tuple[int, int]

#: The message index of the system part.
SYSTEM: Final = -1

#: The blank line between joined texts.
_GAP: Final = len("\n\n")


def next_in_system(texts: Iterable[Text]) -> CachePosition:
    """Return the position after the *texts* of a system part."""
    return SYSTEM, sum(len(text.text) + _GAP for text in texts)


def next_in_turn(blocks: Sequence[Content], run: Sequence[str]) -> CachePosition:
    """Return the position of a turn's next part if it joins the text before it: *run*, or the last block."""
    if run:
        return len(blocks), len("\n\n".join(run)) + _GAP
    if blocks and isinstance(last := blocks[-1], Text):
        return len(blocks) - 1, len(last.text) + _GAP
    return len(blocks), 0


def turn_points(points: Iterable[CachePosition], blocks: Sequence[Content]) -> tuple[CachePosition, ...]:
    """Return the final points of a turn, moving a point at the end of a message's text after the message."""
    positions = {
        (message, offset) if not offset or offset < len(str(blocks[message])) else (message + 1, 0)
        for message, offset in points
    }
    return tuple(sorted(positions))


def shift_points(
    points: Iterable[CachePosition], system: Text | None, messages: int = 0, systems: Iterable[Text] = ()
) -> Iterator[CachePosition]:
    """
    Yield the points of a workflow, shifted by the content before it.

    Args:
        points:
            The positions in the workflow.

        system:
            The workflow's system part.

        messages:
            The number of messages before the workflow.

        systems:
            The system parts before the workflow's.
    """
    _, start = next_in_system(systems)
    for message, offset in points:
        if message != SYSTEM:
            yield message + messages, offset
        elif system is None or offset < len(system.text):
            yield SYSTEM, start + offset
        else:
            yield SYSTEM, start + offset + _GAP


def resolve_points(points: Iterable[CachePosition], system: Text | None) -> tuple[CachePosition, ...]:
    """Return the sorted points of joined workflows; *system* is the joined system part."""
    end = 0 if system is None else len(system.text)
    positions = {(message, min(offset, end) if message == SYSTEM else offset) for message, offset in points}
    return tuple(sorted(positions))
