"""Messages and workflows: who says what, in which order, and how they are joined."""

from collections.abc import Iterable, Iterator, Sequence
from io import IOBase
from typing import Any, Final, Literal, NoReturn, TypeAlias, overload

import attrs

from promptkit.language.content import Content, Role, Text, plain_text
from promptkit.language.media import Image
from promptkit.language.showable import Showable, png_of
from promptkit.language.unsendable import Unsendable, describe, is_role_tuple
from promptkit.language.validation import checked_role

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

#: What a turn is made of. ``None``, ``False`` and blank text vanish.
Part: TypeAlias = str | Content | Showable | Literal[False] | None

#: What ``+`` joins with a message or a workflow; text and content are user turns.
Joinable: TypeAlias = "str | Content | Message | Workflow"

#: What a prompt may return or yield, apart from being asynchronous.
Renderable: TypeAlias = "str | Content | Showable | Message | Workflow | Iterable[Renderable] | None"


def block_of(value: object) -> Content | None:
    """
    Return *value* as one content block, or None if it is empty.

    Raises:
        Unsendable: If it is neither text nor content.
    """
    if isinstance(value, str):
        return plain_text(str.__str__(value)) if value and not value.isspace() else None
    if isinstance(value, Text):
        return value if value.text and not value.text.isspace() else None
    if isinstance(value, Content):
        return value
    if value is None or value is False:
        return None
    if (png := png_of(value)) is not None:
        return Image(png)
    raise Unsendable(value)


def _block(content: "str | Content | Showable") -> Content:
    """
    Return *content* as the one block of a message.
    """
    block = block_of(content)
    if block is None:
        msg = "a message holds one content block: the content is empty"
        raise ValueError(msg)
    return block


@attrs.frozen(repr=False, eq=False)
class Message:
    """
    One content block and who says it.

    ``+`` joins it with messages, workflows, content and strings to a `Workflow`. It equals the
    workflow of itself alone, so ``workflow[1] == assistant("...")`` says what it seems to.

    Args:
        role:
            ``"user"`` or ``"assistant"``.

        content:
            Exactly one block, as on the wire; a string is a `Text`.

    Raises:
        ValueError: If *role* is no role, or *content* is empty.

        TypeError: If *content* is nothing that a message can hold.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """

    role: Role = attrs.field(converter=checked_role)
    content: Content = attrs.field(converter=_block)

    @property
    def text(self) -> str:
        """
        All text in it: that of documents too, their URIs, and what links say.
        """
        return "\n".join(self.content.texts)

    def __contains__(self, item: object) -> bool:
        """
        Whether its text contains a string, or it holds a content block.
        """
        if isinstance(item, str):
            return any(item in text for text in self.content.texts)
        if isinstance(item, Content):
            return item == self.content
        msg = f"a message contains text or content, not {describe(item)}"
        raise TypeError(msg)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Workflow):
            other = other.messages[0] if len(other.messages) == 1 else None
        if not isinstance(other, Message):
            return NotImplemented if other is not None else False
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
    """
    Return *messages* as a tuple, if that is what they are.
    """
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
    transcript. A string is ``in`` it if any text of it contains that. ``+`` joins it with
    workflows, messages, content and strings; a bare string or content is a user turn.

    Args:
        messages:
            The messages, `Message` values.

    Raises:
        TypeError: If one of them is something else.
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
        All text in it, without roles: a blank line stands between messages.
        """
        return "\n\n".join(filter(None, (message.text for message in self.messages)))

    def __contains__(self, item: object) -> bool:
        """
        Whether a message's text contains a string, or there is such content, message or part.
        """
        if isinstance(item, Workflow):
            ends = range(len(item.messages), len(self.messages) + 1)
            return any(self.messages[end - len(item.messages) : end] == item.messages for end in ends)
        return any(_fits(message, item) for message in self.messages)

    def index(self, value: Any, start: int = 0, stop: int | None = None) -> int:
        """
        Return the position of the first message that contains, or is, *value*.

        Args:
            value:
                What ``in`` takes: a string, content, or a message.

            start:
                Where to begin.

            stop:
                Where to end.

        Raises:
            ValueError: If there is none.
        """
        for position in range(*slice(start, stop).indices(len(self.messages))):
            if _fits(self.messages[position], value):
                return position
        msg = f"no message of the workflow is or contains {describe(value)}"
        raise ValueError(msg)

    def count(self, value: Any) -> int:
        """
        Return how many messages contain, or are, *value*: what ``in`` takes.
        """
        return sum(_fits(message, value) for message in self.messages)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Message):
            return other == self
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
        if (tail := _joinable(other)) is None:
            return NotImplemented
        return workflow_of(self.messages + tail)

    def __radd__(self, other: Joinable) -> "Workflow":
        if (head := _joinable(other)) is None:
            return NotImplemented
        return workflow_of(head + self.messages)


def _fits(message: Message, item: object) -> bool:
    """
    Return whether *message* is *item*, or contains it.
    """
    return message == item if isinstance(item, Message | Workflow) else item in message


def _refuse_format(turns: Message | Workflow) -> NoReturn:
    """
    Raise TypeError: in an f-string, roles would become words.
    """
    kind = type(turns).__name__
    msg = (
        f"a {kind} is no text, and its roles would be lost in an f-string: join turns with +, or yield them; "
        "write .text for its words, or str(...) for a transcript"
    )
    raise TypeError(msg)


def workflow_of(messages: tuple[Message, ...]) -> Workflow:
    """
    Return the workflow of what are known to be messages.
    """
    made = _new(Workflow)
    _set_messages(made, messages)
    return made


def message_of(role: Role, content: Content) -> Message:
    """
    Return the message of what are known to be a role and content.
    """
    made = _new(Message)
    _set_role(made, role)
    _set_content(made, content)
    return made


_new: Final = object.__new__

#: The fields of messages and workflows, which nothing sets once they are made.
_set_role, _set_content = (vars(Message)[name].__set__ for name in ("role", "content"))
_set_messages: Final = vars(Workflow)["messages"].__set__


def _joinable(value: Any) -> tuple[Message, ...] | None:
    """
    Return what ``+`` makes of *value*, or None if it cannot be joined.
    """
    if isinstance(value, Workflow):
        return value.messages
    if isinstance(value, str | Content | Message):
        return tuple(messages_of(value))
    return None


def messages_of(value: Any, path: tuple[int, ...] = ()) -> list[Message]:
    """
    Return the messages that a prompt's result stands for.

    Args:
        value:
            What the author's function returned or yielded: text, content, a message, a
            workflow, None, or a sequence or iterator of these. Text and content are user turns.

        path:
            Where *value* stands in that result.

    Raises:
        Unsendable: If something in it is none of these; it says what, and where.
    """
    if isinstance(value, Workflow):
        return list(value.messages)
    if isinstance(value, Message):
        return [value]
    try:
        block = block_of(value)
    except Unsendable:
        # A set has no order, and the lines of a file are not its messages.
        is_sequence = isinstance(value, Sequence | Iterator)
        if not is_sequence or isinstance(value, bytes | bytearray | memoryview | range | IOBase):
            raise Unsendable(value, path) from None
        if isinstance(value, tuple) and is_role_tuple(value):
            raise Unsendable(value, path) from None
        return [message for i, item in enumerate(value) for message in messages_of(item, (*path, i))]
    return [] if block is None else [message_of("user", block)]
