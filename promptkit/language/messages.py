"""Messages and workflows, and how a prompt's result becomes a workflow."""

from collections.abc import Iterable, Iterator, Sequence
from io import IOBase
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, TypeAlias, overload

import attrs

from promptkit.language.content import Content, Role, Text, plain_text
from promptkit.language.validation import Unsendable, checked_role, describe, is_role_tuple

if TYPE_CHECKING:
    from promptkit.language.media import Showable

__all__ = [
    "Joinable",
    "Message",
    "Part",
    "Renderable",
    "Workflow",
    "block_of",
    "message_of",
    "messages_of",
    "workflow_of",
]

#: What `user` and `assistant` take. ``None``, ``False`` and blank text are left out.
Part: TypeAlias = "str | Content | Showable | Literal[False] | None"

#: What ``+`` joins with a message or a workflow. Text and content become user turns.
Joinable: TypeAlias = "str | Content | Message | Workflow"

#: What a prompt may return or yield.
Renderable: TypeAlias = "str | Content | Showable | Message | Workflow | Iterable[Renderable] | None"


def block_of(value: object) -> Content | None:
    """
    Return *value* as a content block, or None if it is empty. Raises Unsendable if it is not content.
    """
    if isinstance(value, str):
        return plain_text(str.__str__(value)) if value and not value.isspace() else None
    if isinstance(value, Text):
        return value if value.text and not value.text.isspace() else None
    if isinstance(value, Content):
        return value
    if value is None or value is False:
        return None
    from promptkit.language.media import Image, png_of  # most prompts show neither an image nor a figure

    if (png := png_of(value)) is not None:
        return Image(png)
    raise Unsendable(value)


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
            return any(item in text for text in self.content.texts)
        if isinstance(item, Content):
            return item == self.content
        msg = f"a message contains text or content, not {describe(item)}"
        raise TypeError(msg)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Workflow):
            return other.messages == (self,)
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
    found = tuple(messages)
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

    It compares by value, iterates and slices like a tuple, and ``str()`` shows it as a
    transcript. ``in`` finds a string within its texts, a content block, a message, or a workflow as
    a run of messages. ``+`` joins it with workflows, messages, content and
    strings; strings and content become user turns.

    Args:
        messages:
            `Message` values.

    Raises:
        TypeError: If *messages* cannot be iterated over, or one of them is not a `Message`.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """

    messages: tuple[Message, ...] = attrs.field(default=(), converter=_messages)

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
        All text in it, without roles, with a blank line between messages.
        """
        return "\n\n".join(filter(None, (message.text for message in self.messages)))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Workflow):
            ends = range(len(item.messages), len(self.messages) + 1)
            return any(self.messages[end - len(item.messages) : end] == item.messages for end in ends)
        return any(_fits(message, item) for message in self.messages)

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
        return self.messages == other.messages if isinstance(other, Workflow) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.messages[0] if len(self.messages) == 1 else self.messages)

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.messages))

    def __format__(self, spec: str) -> NoReturn:
        _refuse_format(self)

    def __repr__(self) -> str:
        return f"Workflow([{', '.join(map(repr, self.messages))}])"

    def __add__(self, other: Joinable) -> "Workflow":
        tail = _joinable(other)
        return NotImplemented if tail is None else workflow_of(self.messages + tail)

    def __radd__(self, other: Joinable) -> "Workflow":
        head = _joinable(other)
        return NotImplemented if head is None else workflow_of(head + self.messages)


def _fits(message: Message, item: object) -> bool:
    return message == item if isinstance(item, Message | Workflow) else item in message


def _refuse_format(turns: Message | Workflow) -> NoReturn:
    kind = type(turns).__name__
    msg = (
        f"a {kind} is not text, and its roles would be lost in an f-string: "
        "join turns with +, or yield them; write .text for its words, or str(...) for a transcript"
    )
    raise TypeError(msg)


def workflow_of(messages: tuple[Message, ...]) -> Workflow:
    """
    Make a workflow without checks, for speed.
    """
    made = _new(Workflow)
    _set_messages(made, messages)
    return made


def message_of(role: Role, content: Content) -> Message:
    """
    Make a message without checks, for speed.
    """
    made = _new(Message)
    _set_role(made, role)
    _set_content(made, content)
    return made


_new: Final = object.__new__

#: Setters for the fields of a new message or workflow, whose classes are frozen.
_set_role, _set_content = (vars(Message)[name].__set__ for name in ("role", "content"))
_set_messages: Final = vars(Workflow)["messages"].__set__


def _joinable(value: Any) -> tuple[Message, ...] | None:
    """Return the messages that ``+`` joins, or None if *value* cannot be joined."""
    if isinstance(value, Workflow):
        return value.messages
    if isinstance(value, str | Content | Message):
        return tuple(messages_of(value))
    return None


def messages_of(value: Any, path: tuple[int, ...] = ()) -> list[Message]:
    """
    Return what a prompt returned or yielded as messages. Text and content become user turns.

    Args:
        value:
            Text, content, a message, a workflow, None, or a sequence or iterator of these.

        path:
            The position of *value* in the whole result, outermost index first.

    Raises:
        Unsendable: If it contains anything else; the error says what, and where.
    """
    if isinstance(value, Workflow):
        return list(value.messages)
    if isinstance(value, Message):
        return [value]
    if type(value) is not list:  # what generators yield is in a list
        try:
            block = block_of(value)
        except Unsendable:
            # Not sets, which have no order, and not files, whose lines are not messages.
            is_sequence = isinstance(value, Sequence | Iterator) and not is_role_tuple(value)
            if not is_sequence or isinstance(value, bytes | bytearray | memoryview | range | IOBase):
                raise Unsendable(value, path) from None
        else:
            return [] if block is None else [message_of("user", block)]
    return [message for i, item in enumerate(value) for message in messages_of(item, (*path, i))]
