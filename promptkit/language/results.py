"""Conversion of prompts' results, whether returned or yielded, to workflows."""

from collections.abc import Iterator, Sequence
from io import IOBase
from typing import Any, Final

from promptkit.language.blocks import to_block
from promptkit.language.bounds import MAX_REPLY_BYTES, ByteCounter
from promptkit.language.messages import (
    CachePosition,
    Message,
    Workflow,
    make_message,
    make_workflow,
    resolve_points,
    shift_points,
    system_text,
)
from promptkit.language.text import Text
from promptkit.language.validation import UnsendableError, is_role_tuple

#: The number of messages up to which a result is not measured, for speed. Most prompts have no more.
UNCOUNTED_MESSAGES: Final = 4


def convert_result(result: Any, limit: int = MAX_REPLY_BYTES) -> Workflow:
    """
    Convert the result of a prompt to a workflow. Text and content become user turns.

    Args:
        result:
            Text, content, a message, a workflow, None, or a sequence or iterator of these.

        limit:
            The size limit for a reply, in bytes.

    Raises:
        UnsendableError: If *result* contains any other value; the error contains the path to that value.

        TooLongError: If *result* does not fit into a reply.

        ValueError: If system parts in *result* have different annotations.
    """
    builder = MessageBuilder(limit)
    builder.add(result)
    return builder.build()


class MessageBuilder:
    """
    A builder that collects messages, system parts and cache points into a workflow.

    Args:
        limit:
            The size limit for a reply, in bytes.
    """

    __slots__ = ("_counted", "_counter", "_messages", "_points", "_systems", "_uncounted_until")

    def __init__(self, limit: int = MAX_REPLY_BYTES) -> None:
        self._messages: list[Message] = []
        self._systems: list[Text] = []
        self._points: list[CachePosition] = []
        self._counter = ByteCounter(limit)
        self._counted, self._uncounted_until = 0, UNCOUNTED_MESSAGES

    def add(self, value: Any, path: tuple[int, ...] = ()) -> None:
        """
        Add the content of *value*.

        Args:
            value:
                Anything that `convert_result` accepts.

            path:
                The position of *value* in the prompt's result: indexes, outermost first.

        Raises:
            UnsendableError: If *value* contains a value that no message can contain.

            TooLongError: If the result does not fit into a reply.
        """
        if isinstance(value, Workflow):
            if value.system is not None or value.cache_points:
                self._add_system(value)
            self._messages += value.messages
        elif isinstance(value, Message):
            self._messages.append(value)
        elif not self._add_block(value, path):
            for position, item in enumerate(value):
                self.add(item, (*path, position))
        if len(self._messages) > self._uncounted_until:
            self._count()

    def build(self) -> Workflow:
        """Build the workflow. Raises ValueError if its system parts have different annotations."""
        system = system_text(*self._systems) if self._systems else None
        points = resolve_points(self._points, system) if self._points else ()
        return make_workflow(tuple(self._messages), system, None, points)

    def _add_block(self, value: Any, path: tuple[int, ...]) -> bool:
        """Add *value* if it is a single block or empty. Return False if it is a sequence or an iterator."""
        if type(value) is list:
            return False
        try:
            block = to_block(value)
        except UnsendableError:
            # Sets are rejected because they are unordered, and files because their lines are not messages.
            is_sequence = isinstance(value, Sequence | Iterator) and not is_role_tuple(value)
            if not is_sequence or isinstance(value, bytes | bytearray | memoryview | range | IOBase):
                raise UnsendableError(value, path) from None
            return False
        if block is not None:
            self._messages.append(make_message("user", block))
        return True

    def _add_system(self, workflow: Workflow) -> None:
        """Add the system part and the cache points of a workflow."""
        if workflow.cache_points:
            self._points += shift_points(
                workflow.cache_points, workflow.system, len(self._messages), self._systems
            )
        self._counter.count(workflow.system)
        if workflow.system is not None:
            self._systems.append(workflow.system)

    def _count(self) -> None:
        for message in self._messages[self._counted :]:
            self._counter.count(message)
        self._counted = len(self._messages)
        self._uncounted_until = self._counted + UNCOUNTED_MESSAGES
