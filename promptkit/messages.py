"""Messages and workflows: who says what, in which order, and how they are joined."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from io import IOBase
from pathlib import Path
from reprlib import repr as short_repr
from typing import Any, Final, Literal, TypeAlias, overload

import attrs

from promptkit.content import Content, Image, Role, Text, plain_text
from promptkit.fields import checked_role
from promptkit.media import Showable, png_of

__all__ = [
    "Joinable",
    "Message",
    "Part",
    "Renderable",
    "Unsendable",
    "Workflow",
    "assistant",
    "joined",
    "messages_of",
    "user",
]

#: What a turn is made of. ``None``, ``False`` and blank text vanish.
Part: TypeAlias = str | Content | Showable | Literal[False] | None

#: What ``+`` joins with a message or a workflow; text and content are user turns.
Joinable: TypeAlias = "str | Content | Message | Workflow"

#: What a prompt may return or yield, apart from being asynchronous.
Renderable: TypeAlias = "str | Content | Showable | Message | Workflow | Iterable[Renderable] | None"


class Unsendable(TypeError):
    """
    A value that no message can hold.

    Args:
        value:
            The value.

        path:
            Where it stands in what was returned, outermost position first.
    """

    def __init__(self, value: object, path: tuple[int, ...] = ()) -> None:
        super().__init__(value, path)
        self.value = value
        self.path = path

    def __str__(self) -> str:
        return f"{describe(self.value)}: {_remedy(self.value)}"


def describe(value: object) -> str:
    """
    Return *value* as an error names it: ``an int (3)``.
    """
    kind = type(value).__name__
    article = "an" if kind[:1].lower() in "aeiou" else "a"
    return f"{article} {kind} ({short_repr(value)})"


def _remedy(value: object) -> str:  # noqa: C901, PLR0911 (a list of cases)
    """
    Return what the author should write in place of *value*.
    """
    if isinstance(value, bytes | bytearray):
        return "say what the bytes are, with Image(...), Audio(...) or EmbeddedResource(..., blob=...)"
    if isinstance(value, Path):
        return "read it, with .read_text() or Image.from_path(...)"
    if isinstance(value, Mapping):
        return "show it as text, with promptkit.fragments.json_block(...)"
    if isinstance(value, Message | Workflow):
        return "join turns with +, as in user(...) + message"
    if hasattr(value, "embed") and hasattr(value, "link"):
        return "show it with .embed(...), or link to it with .link(...)"
    if hasattr(value, "__await__"):
        return "await it, in an `async def` prompt"
    if hasattr(value, "__aiter__"):
        return "iterate over it with `async for`, in an `async def` prompt"
    if isinstance(value, IOBase):
        return "read it, with .read()"
    if isinstance(value, set | frozenset):
        return "put it in order, with sorted(...)"
    if isinstance(value, Iterable):
        return "unpack it, with *"
    if callable(value):
        return "call it"
    return "make it text, with str(...) or an f-string"


def _content(value: object) -> Content | None:
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
    block = _content(content)
    if block is None:
        msg = "a message holds one content block: the content is empty"
        raise ValueError(msg)
    return block


@attrs.frozen(repr=False)
class Message:
    """
    One content block and who says it.

    ``+`` joins it with messages, workflows, content and strings to a `Workflow`.

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

    def __str__(self) -> str:
        return f"[{self.role}]\n{self.content}"

    def __repr__(self) -> str:
        return f"Message({self.role!r}, {self.content!r})"

    def __add__(self, other: "Joinable") -> "Workflow":
        return joined((self,)) + other

    def __radd__(self, other: "Joinable") -> "Workflow":
        return other + joined((self,))


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


@attrs.frozen(repr=False)
class Workflow(Sequence[Message]):
    """
    Messages in order: what a prompt renders to.

    It compares by value, iterates and slices like a tuple, and ``str()`` shows it as a
    transcript. ``+`` joins it with workflows, messages, content and strings; a bare string
    or content is a user turn.

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

    def __str__(self) -> str:
        return "\n\n".join(map(str, self.messages))

    def __repr__(self) -> str:
        return f"Workflow([{', '.join(map(repr, self.messages))}])"

    def __add__(self, other: Joinable) -> "Workflow":
        if (tail := _joinable(other)) is None:
            return NotImplemented
        return joined(self.messages + tail)

    def __radd__(self, other: Joinable) -> "Workflow":
        if (head := _joinable(other)) is None:
            return NotImplemented
        return joined(head + self.messages)


def joined(messages: tuple[Message, ...]) -> Workflow:
    """
    Return the workflow of what are known to be messages.
    """
    made = _new(Workflow)
    _set_messages(made, messages)
    return made


def _message(role: Role, content: Content) -> Message:
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


def user(*parts: Part) -> Workflow:
    """
    Return what the user says, as a workflow.

    Args:
        *parts:
            Text and content in order. Neighbouring strings and `Text` become one text
            block, a blank line between them (as long as their annotations agree); every
            other part is a message of its own. ``None``, ``False`` and blank text vanish.

    Raises:
        TypeError: If a part is something else; it names the part and what to write.
    """
    return _turn("user", parts)


def assistant(*parts: Part) -> Workflow:
    """
    Return what the assistant says, as a workflow. *parts* are those of `user`.

    Raises:
        TypeError: If a part is something else; it names the part and what to write.
    """
    return _turn("assistant", parts)


def _turn(role: Role, parts: tuple[Part, ...]) -> Workflow:
    """
    Return *parts* as consecutive messages of one role.
    """
    if len(parts) == 1 and type(text := parts[0]) is str and text and not text.isspace():
        return joined((_message(role, plain_text(text)),))  # most turns are that
    blocks: list[Content] = []
    run: list[str] = []  # plain text that is not joined yet
    for position, part in enumerate(parts, 1):
        if isinstance(part, str):  # most parts are, and need no block of their own
            if part and not part.isspace():
                run.append(part)
            continue
        try:
            block = _content(part)
        except Unsendable as unsendable:
            msg = f"{role}(...): part {position} is {unsendable}"
            raise TypeError(msg) from None
        if isinstance(block, Text) and not block.annotated:
            run.append(block.text)
        elif block is not None:
            _close(run, blocks)
            last = blocks[-1] if blocks else None
            if isinstance(block, Text) and isinstance(last, Text) and block.annotations == last.annotations:
                blocks[-1] = last + block
            else:
                blocks.append(block)
    _close(run, blocks)
    return joined(tuple([_message(role, block) for block in blocks]))


def _close(run: list[str], blocks: list[Content]) -> None:
    """
    Move the texts in *run* to *blocks*, as one block.
    """
    if run:
        blocks.append(plain_text("\n\n".join(run)))
        run.clear()


def messages_of(value: object, path: tuple[int, ...] = ()) -> list[Message]:
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
        block = _content(value)
    except Unsendable:
        # A set has no order, and the lines of a file are not its messages.
        if not isinstance(value, Sequence | Iterator) or isinstance(value, bytes | bytearray | IOBase):
            raise Unsendable(value, path) from None
        return [message for i, item in enumerate(value) for message in messages_of(item, (*path, i))]
    return [] if block is None else [_message("user", block)]
