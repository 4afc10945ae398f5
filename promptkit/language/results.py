"""How what a prompt returns or yields becomes a workflow."""

from collections.abc import Iterable, Iterator, Sequence
from io import IOBase
from typing import TYPE_CHECKING, Any, TypeAlias

from promptkit.language.blocks import block_of
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow, message_of, system_text, workflow_of
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
    _collect(result, (), messages, systems)
    return workflow_of(tuple(messages), system_text(*systems) if systems else None)


def _collect(value: Any, path: tuple[int, ...], messages: list[Message], systems: list[Text]) -> None:
    """Add what is in *value*, which is at *path* in the whole result, outermost index first."""
    if isinstance(value, Workflow):
        messages += value.messages
        if value.system is not None:
            systems.append(value.system)
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
        _collect(item, (*path, position), messages, systems)
