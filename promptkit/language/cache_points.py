"""
Cache points: where they stand when parts, texts and workflows are joined.

A position is a message and the character of its text that the point stands before, as in
`Workflow.cache_points`. As long as more may follow, a point behind a text stands where the next part of it
would begin; when all is joined, it is settled where it stands.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

from promptkit.language.content import Content
from promptkit.language.text import Text

CachePosition: TypeAlias = tuple[int, int]

#: The number that the system part has among the messages.
SYSTEM: Final = -1

#: The blank line between joined texts.
_GAP: Final = len("\n\n")


def next_in_system(texts: Iterable[Text]) -> CachePosition:
    """
    Return where the next part of a system part of these texts begins.
    """
    return SYSTEM, sum(len(text.text) + _GAP for text in texts)


def next_in_turn(blocks: Sequence[Content], run: Sequence[str]) -> CachePosition:
    """
    Return where the next part of a turn begins if it joins the text before it: *run*, or the last block.
    """
    if run:
        return len(blocks), len("\n\n".join(run)) + _GAP
    if blocks and isinstance(last := blocks[-1], Text):
        return len(blocks) - 1, len(last.text) + _GAP
    return len(blocks), 0


def settled_in_turn(points: Iterable[CachePosition], blocks: Sequence[Content]) -> tuple[CachePosition, ...]:
    """
    Return the points of a turn of these blocks: where nothing joined the text, they stand behind it.
    """
    found = {
        (message, offset) if not offset or offset < len(str(blocks[message])) else (message + 1, 0)
        for message, offset in points
    }
    return tuple(sorted(found))


def moved_points(
    points: Iterable[CachePosition], system: Text | None, messages: int = 0, systems: Iterable[Text] = ()
) -> Iterator[CachePosition]:
    """
    Return the points of a workflow behind what it is joined to.

    Args:
        points:
            Where they stand in the workflow.

        system:
            Its system part.

        messages:
            How many messages are before it.

        systems:
            The system parts before it.
    """
    _, begin = next_in_system(systems)
    for message, offset in points:
        if message != SYSTEM:
            yield message + messages, offset
        elif system is None or offset < len(system.text):
            yield SYSTEM, begin + offset
        else:
            yield SYSTEM, begin + offset + _GAP


def settled_points(points: Iterable[CachePosition], system: Text | None) -> tuple[CachePosition, ...]:
    """
    Return the points of workflows that are joined, in order. *system* is the whole system part.
    """
    end = 0 if system is None else len(system.text)
    found = {(message, min(offset, end) if message == SYSTEM else offset) for message, offset in points}
    return tuple(sorted(found))
