"""Messages and workflows."""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, overload

import attrs

from promptkit.language.blocks import block_of, system_block, system_text
from promptkit.language.bounds import all_of
from promptkit.language.cache_points import moved_points, settled_points
from promptkit.language.content import Content
from promptkit.language.text import Text
from promptkit.language.validation import Role, checked_role, describe

if TYPE_CHECKING:
    from promptkit.language.media import Showable

#: What ``+`` joins with a message or a workflow. Text and content become user turns.
Joinable: TypeAlias = "str | Content | Message | Workflow"


def _block(content: "str | Content | Showable") -> Content:
    block = block_of(content)
    if block is None:
        msg = "a message holds one content block: the content is empty"
        raise ValueError(msg)
    return block


@attrs.frozen(repr=False, eq=False)
class Message:
    """
    One content block and its role.

    ``+`` joins it with messages, workflows, content and strings to a `Workflow`. It equals a
    workflow of this message alone, so that ``workflow[1] == assistant("...")`` can be true.

    Args:
        role:
            Who says it: ``"user"`` or ``"assistant"``.

        content:
            One content block; a string becomes a `Text`.

    Raises:
        ValueError: If *role* is unknown, or *content* is empty.

        TypeError: If *content* is neither text nor other content.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """

    role: Role = attrs.field(converter=checked_role)
    content: Content = attrs.field(converter=_block)

    @property
    def text(self) -> str:
        """
        All text in it, including the text of documents and links, and their URIs.
        """
        return "\n".join(self.content.texts)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item in self.content
        if isinstance(item, Content):
            return item == self.content
        msg = f"a message contains text or content, not {describe(item)}"
        raise TypeError(msg)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Workflow):
            return other.messages == (self,) and other.system is None
        if not isinstance(other, Message):
            return NotImplemented
        return self.role == other.role and self.content == other.content

    def __hash__(self) -> int:
        return hash((self.role, self.content))

    def __str__(self) -> str:
        return f"[{self.role}]\n{self.content!s}"

    def __format__(self, spec: str) -> NoReturn:
        _refuse_format(self)

    def __repr__(self) -> str:
        return f"Message({self.role!r}, {self.content!r})"

    def __add__(self, other: "Joinable") -> "Workflow":
        return workflow_of((self,)) + other

    def __radd__(self, other: "Joinable") -> "Workflow":
        return other + workflow_of((self,))


def _messages(messages: "Iterable[Message]") -> "tuple[Message, ...]":
    if not isinstance(messages, Iterable):
        msg = f"Workflow takes messages in a list, not {describe(messages)}: make it with user(...)"
        raise TypeError(msg)
    found = tuple(all_of(messages, "Workflow is given "))
    for position, message in enumerate(found):
        if not isinstance(message, Message):
            msg = (
                f"Workflow takes messages, and item {position} is {describe(message)}: make it with user(...)"
            )
            raise TypeError(msg)
    return found


@attrs.frozen(repr=False, eq=False)
class Workflow(Sequence[Message]):
    """
    Messages in order: what a prompt renders to.

    It compares by value, iterates over its messages and slices like a tuple, and ``str()`` shows it as
    a transcript. ``in`` finds a string within its texts, a content block, a message, or a workflow as
    a run of messages. ``+`` joins it with workflows, messages, content and strings; strings and
    content become user turns, and system parts are joined with a blank line between.

    Args:
        messages:
            `Message` values.

        system:
            The system part, as `system` makes it; None if there is none. Slices have none. MCP has no
            such role: clients receive it as the first message, of the user.

    Attributes:
        answer:
            The type of the answer, as the prompt's ``answer=`` says it; None if it says nothing. It is
            not compared, and sums and slices have none.

        cache_points:
            Where each `cache_point` stands: a message, counted from 0, and the character of its text that it
            stands before. Character 0 is before that message, behind all that comes before it; message -1
            is the system part. They are neither compared nor shown, and slices have none.

    Raises:
        TypeError: If *messages* cannot be iterated over, or one of them is not a `Message`; or if
            *system* is not text.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """

    messages: tuple[Message, ...] = attrs.field(default=(), converter=_messages)
    system: Text | None = attrs.field(default=None, converter=system_block)
    answer: Any = attrs.field(default=None, init=False)
    cache_points: tuple[tuple[int, int], ...] = attrs.field(default=(), init=False)

    @property
    def sent(self) -> tuple[Message, ...]:
        """
        The messages as MCP has them: the system part is the first, of the user.
        """
        return self._messages_after("user")

    @property
    def shown(self) -> tuple[Message, ...]:
        """
        The messages as people read them: the system part is the first, of a role of its own.
        """
        return self._messages_after("system")

    def _messages_after(self, role: "Role | Literal['system']") -> tuple[Message, ...]:
        return self.messages if self.system is None else (message_of(role, self.system), *self.messages)

    def __len__(self) -> int:
        return len(self.messages)

    def __iter__(self) -> Iterator[Message]:
        return iter(self.messages)

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> "Workflow": ...
    def __getitem__(self, index: int | slice) -> "Message | Workflow":
        if isinstance(index, slice):
            return Workflow(self.messages[index])
        return self.messages[index]

    @property
    def text(self) -> str:
        """
        All text in it, without roles, with a blank line between messages. The system part is first.
        """
        return "\n\n".join(filter(None, (message.text for message in self.sent)))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Workflow):
            ends = range(len(item.messages), len(self.messages) + 1)
            has_run = any(self.messages[end - len(item.messages) : end] == item.messages for end in ends)
            return has_run and item.system in (None, self.system)
        is_in_system = self.system is not None and not isinstance(item, Message) and _fits(self.sent[0], item)
        return is_in_system or any(_fits(message, item) for message in self.messages)

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """
        Return the position of the first message that contains *value*, or equals it.

        Args:
            value:
                A string, content, or a message.

            start:
                The first position to look at; negative ones count from the end.

            stop:
                The position to stop before; None for the end.

        Returns:
            The position, counted from 0.

        Raises:
            ValueError: If there is no such message.

            TypeError: If *value* has another type.
        """
        for position in range(*slice(start, stop).indices(len(self.messages))):
            if _fits(self.messages[position], value):
                return position
        msg = f"no message of the workflow is or contains {describe(value)}"
        raise ValueError(msg)

    def count(self, value: Any) -> int:
        """
        Return how many messages contain *value*, or equal it.

        Args:
            value:
                A string, content, or a message.

        Returns:
            The number of messages.

        Raises:
            TypeError: If *value* has another type.
        """
        return sum(_fits(message, value) for message in self.messages)

    def __eq__(self, other: object) -> bool:
        # Beside a message, Python asks the message.
        if not isinstance(other, Workflow):
            return NotImplemented
        return self.messages == other.messages and self.system == other.system

    def __hash__(self) -> int:
        if self.system is not None:
            return hash((self.messages, self.system))
        return hash(self.messages[0] if len(self.messages) == 1 else self.messages)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.shown))

    def __format__(self, spec: str) -> NoReturn:
        _refuse_format(self)

    def __repr__(self) -> str:
        system = "" if self.system is None else f", system={self.system!r}"
        return f"Workflow([{', '.join(map(repr, self.messages))}]{system})"

    def __add__(self, other: Joinable) -> "Workflow":
        tail = other if isinstance(other, Workflow) else _joinable(other)
        return NotImplemented if tail is None else _sum(self, tail)

    def __radd__(self, other: Joinable) -> "Workflow":
        return NotImplemented if (head := _joinable(other)) is None else _sum(head, self)


def _fits(message: Message, item: object) -> bool:
    return message == item if isinstance(item, Message | Workflow) else item in message


def _refuse_format(turns: Message | Workflow) -> NoReturn:
    kind = type(turns).__name__
    msg = (
        f"a {kind} is not text, and its roles would be lost in an f-string: "
        "join turns with +, or yield them; write .text for its words, or str(...) for a transcript"
    )
    raise TypeError(msg)


def workflow_of(
    messages: tuple[Message, ...],
    system: Text | None = None,
    answer: Any = None,
    cache_points: tuple[tuple[int, int], ...] = (),
) -> Workflow:
    """
    Make a workflow without checks, for speed.
    """
    made = _new(Workflow)
    _set_messages(made, messages)
    _set_system(made, system)
    _set_answer(made, answer)
    _set_cache_points(made, cache_points)
    return made


def message_of(role: "Role | Literal['system']", content: Content) -> Message:
    """Make a message without checks, for speed."""
    made = _new(Message)
    _set_role(made, role)
    _set_content(made, content)
    return made


_new: Final = object.__new__

#: Setters for the fields of a new message or workflow, whose classes are frozen.
_set_role, _set_content = (vars(Message)[name].__set__ for name in ("role", "content"))
_set_messages, _set_system, _set_answer, _set_cache_points = (
    vars(Workflow)[name].__set__ for name in ("messages", "system", "answer", "cache_points")
)


def _joinable(value: Any) -> Workflow | None:
    """Return what ``+`` joins, as a workflow; None if it cannot be joined."""
    if isinstance(value, Workflow):
        return value
    if isinstance(value, Message):
        return workflow_of((value,))
    if isinstance(value, str | Content):
        block = block_of(value)
        return workflow_of(() if block is None else (message_of("user", block),))
    return None


def _sum(head: Workflow, tail: Workflow) -> Workflow:
    system = tail.system if head.system is None else system_text(head.system, tail.system)
    points: tuple[tuple[int, int], ...] = ()
    if head.cache_points or tail.cache_points:
        before = () if head.system is None else (head.system,)
        of_head = moved_points(head.cache_points, head.system)
        of_tail = moved_points(tail.cache_points, tail.system, len(head.messages), before)
        points = settled_points((*of_head, *of_tail), system)
    return workflow_of(head.messages + tail.messages, system, None, points)
