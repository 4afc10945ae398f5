"""How what a prompt returns or yields becomes a workflow."""

from collections.abc import Iterable, Iterator, Sequence
from io import IOBase
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from promptkit.language.blocks import block_of, system_text
from promptkit.language.bounds import LONGEST_REPLY, Bound
from promptkit.language.cache_points import moved_points, settled_points
from promptkit.language.content import Content
from promptkit.language.messages import Message, Workflow, message_of, workflow_of
from promptkit.language.text import Text
from promptkit.language.validation import UnsendableError, is_role_tuple

if TYPE_CHECKING:
    from promptkit.language.media import Showable

#: What a prompt may return or yield.
Renderable: TypeAlias = "str | Content | Showable | Message | Workflow | Iterable[Renderable] | None"

#: So many messages are not counted: most prompts say no more, and lose no time.
FREE_MESSAGES: Final = 4


def workflow_from(result: Any, most: int = LONGEST_REPLY) -> Workflow:
    """
    Return what a prompt returned or yielded as a workflow. Text and content become user turns.

    Args:
        result:
            Text, content, a message, a workflow, None, or a sequence or iterator of these.

        most:
            How many bytes a reply may have.

    Raises:
        UnsendableError: If it contains anything else; the error says what, and where.

        TooLongError: If no reply may be so long.

        ValueError: If system parts in it have different annotations.
    """
    said = Said(most)
    said.add(result)
    return said.workflow()


class Said:
    """
    What a prompt has said so far.

    Args:
        most:
            How many bytes a reply may have.
    """

    __slots__ = ("_bound", "_counted", "_due", "_messages", "_points", "_systems")

    def __init__(self, most: int = LONGEST_REPLY) -> None:
        self._messages: list[Message] = []
        self._systems: list[Text] = []
        self._points: list[tuple[int, int]] = []
        self._bound = Bound(most)
        self._counted, self._due = 0, FREE_MESSAGES

    def add(self, value: Any, path: tuple[int, ...] = ()) -> None:
        """
        Add what is in *value*, which is at *path* in the whole result, outermost index first.

        Raises:
            UnsendableError: If it contains what no message can hold.

            TooLongError: If no reply may be so long.
        """
        if isinstance(value, Workflow):
            if value.system is not None or value.cache_points:
                self._add_beside(value)
            self._messages += value.messages
        elif isinstance(value, Message):
            self._messages.append(value)
        elif not self._add_block(value, path):
            for position, item in enumerate(value):
                self.add(item, (*path, position))
        if len(self._messages) > self._due:
            self._count()

    def workflow(self) -> Workflow:
        """
        Return it as a workflow. Raises ValueError if system parts in it have different annotations.
        """
        system = system_text(*self._systems) if self._systems else None
        if not self._points:
            return workflow_of(tuple(self._messages), system)

        return workflow_of(tuple(self._messages), system, None, settled_points(self._points, system))

    def _add_block(self, value: Any, path: tuple[int, ...]) -> bool:
        """Add a value that is one block, or nothing; return whether it is. If not, it has items in order."""
        if type(value) is list:
            return False
        try:
            block = block_of(value)
        except UnsendableError:
            # Not sets, which have no order, and not files, whose lines are not messages.
            is_sequence = isinstance(value, Sequence | Iterator) and not is_role_tuple(value)
            if not is_sequence or isinstance(value, bytes | bytearray | memoryview | range | IOBase):
                raise UnsendableError(value, path) from None
            return False
        if block is not None:
            self._messages.append(message_of("user", block))
        return True

    def _add_beside(self, workflow: Workflow) -> None:
        """Add what a workflow has besides its messages."""
        if workflow.cache_points:
            self._points += moved_points(
                workflow.cache_points, workflow.system, len(self._messages), self._systems
            )
        self._bound.take(workflow.system)
        if workflow.system is not None:
            self._systems.append(workflow.system)

    def _count(self) -> None:
        for message in self._messages[self._counted :]:
            self._bound.take(message)
        self._counted = len(self._messages)
        self._due = self._counted + FREE_MESSAGES
