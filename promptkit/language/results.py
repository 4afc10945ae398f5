"""How what a prompt returns or yields becomes a workflow."""

from collections.abc import Iterable, Iterator, Sequence
from io import IOBase
from typing import TYPE_CHECKING, Any, TypeAlias

from promptkit.language.blocks import block_of, system_text
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow, message_of, workflow_of
from promptkit.language.text import Text
from promptkit.language.validation import Unsendable, is_role_tuple

if TYPE_CHECKING:
    from promptkit.language.media import Showable

__all__ = ["Renderable", "workflow_from"]

#: What a prompt may return or yield.
Renderable: TypeAlias = "str | Content | Showable | Message | Workflow | Iterable[Renderable] | None"


def workflow_from(result: Any) -> Workflow:
    """
    Return what a prompt returned or yielded as a workflow. Text and content become user turns.

    Args:
        result:
            Text, content, a message, a workflow, None, or a sequence or iterator of these.

    Raises:
        Unsendable: If it contains anything else; the error says what, and where.

        ValueError: If system parts in it have different annotations.
    """
    messages: list[Message] = []
    systems: list[Text] = []
    points: list[tuple[int, int]] = []
    _collect(result, (), messages, systems, points)
    system = system_text(*systems) if systems else None
    if not points:
        return workflow_of(tuple(messages), system)
    from promptkit.language.cache_points import settled_points  # most workflows have none

    return workflow_of(tuple(messages), system, None, settled_points(points, system))


def _collect(
    value: Any,
    path: tuple[int, ...],
    messages: list[Message],
    systems: list[Text],
    points: list[tuple[int, int]],
) -> None:
    """Add what is in *value*, which is at *path* in the whole result, outermost index first."""
    if isinstance(value, Workflow):
        if value.system is not None or value.cache_points:
            _collect_beside(value, len(messages), systems, points)
        messages += value.messages
        return
    if isinstance(value, Message):
        messages.append(value)
        return
    if type(value) is not list:  # what generators yield is in a list
        try:
            block = block_of(value)
        except Unsendable:
            # Not sets, which have no order, and not files, whose lines are not messages.
            is_sequence = isinstance(value, Sequence | Iterator) and not is_role_tuple(value)
            if not is_sequence or isinstance(value, bytes | bytearray | memoryview | range | IOBase):
                raise Unsendable(value, path) from None
        else:
            if block is not None:
                messages.append(message_of("user", block))
            return
    for position, item in enumerate(value):
        _collect(item, (*path, position), messages, systems, points)


def _collect_beside(
    workflow: Workflow, messages: int, systems: list[Text], points: list[tuple[int, int]]
) -> None:
    """Add what a workflow has besides its messages. So many messages are before it."""
    if workflow.cache_points:
        from promptkit.language.cache_points import moved_points  # most workflows have none

        points += moved_points(workflow.cache_points, workflow.system, messages, systems)
    if workflow.system is not None:
        systems.append(workflow.system)
