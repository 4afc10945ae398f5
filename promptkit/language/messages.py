"""
`Message` and `Workflow`, and the positions of cache points in them.

`promptkit.language.turns` creates workflows, and `promptkit.language.results` converts the results of prompts
to workflows.

The position of a cache point consists of the index of a message and an offset into its text, as in
`Workflow.cache_points`. While more parts can follow, a cache point after text has the offset at which the
next part would start. After all parts have been joined, such a cache point moves to the end of the text.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any, Final, Literal, NoReturn, TypeAlias, overload

import attrs

from promptkit.language.blocks import to_block
from promptkit.language.bounds import read_all
from promptkit.language.content import Content, record_repr
from promptkit.language.media import Renderable
from promptkit.language.text import Text
from promptkit.language.validation import Role, checked_role, describe

#: Values that can be joined to a message or a workflow with ``+``. Text and content become user turns, and
#: None is ignored.
Joinable: TypeAlias = "str | Content | Message | Workflow | None"

CachePosition: TypeAlias = tuple[int, int]

#: The index that represents the system part in the position of a cache point.
SYSTEM: Final = -1

#: The length of the blank line that separates joined strings.
GAP: Final = len("\n\n")


def _system_part(text: str | Text | None) -> Text | None:
    """Convert *text* to a system part, or to None if it is blank. Raises TypeError if it is not text."""
    if text is None or isinstance(text, str | Text):
        block = to_block(text)
        return block if isinstance(block, Text) else None
    msg = f"the system part must be text, not {describe(text)}: create it with system(...)"
    raise TypeError(msg)


def system_text(*parts: Text | None) -> Text | None:
    """
    Join *parts* with blank lines between them. Return None if all are None.

    Raises ValueError if the annotations of the parts differ.
    """
    texts = [part for part in parts if part is not None]
    return reduce(add, texts) if texts else None


def _block(content: str | Content | Renderable) -> Content:
    block = to_block(content)
    if block is None:
        msg = "the content of a message is empty: pass text or other content"
        raise ValueError(msg)
    return block


@attrs.frozen(repr=False, eq=False)
class Message:
    """
    A content block with a role.

    ``+`` joins a message with another message, a workflow, content or a string, into a `Workflow`. A message
    is equal to a workflow that contains only that message, so ``workflow[1] == assistant("...")`` can be
    true.

    Args:
        role:
            The role of the message: ``"user"`` or ``"assistant"``.

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
        """All text in the message, including the text and URIs of documents and links."""
        return "\n".join(self.content.texts)

    def __contains__(self, item: object) -> bool:
        if isinstance(item, str):
            return item in self.content
        if isinstance(item, Content):
            return item == self.content
        msg = f"a message can be searched only for text or content, not for {describe(item)}"
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
        _raise_format_error(self)

    def __repr__(self) -> str:
        return record_repr(f"Message({self.role!r}, {self.content!r})")

    def __add__(self, other: Joinable) -> "Workflow":
        return make_workflow((self,)) + other

    def __radd__(self, other: Joinable) -> "Workflow":
        return other + make_workflow((self,))


def _checked_messages(messages: Iterable[Message]) -> tuple[Message, ...]:
    if not isinstance(messages, Iterable):
        msg = f"Workflow() takes a list of messages, not {describe(messages)}: create messages with user(...)"
        raise TypeError(msg)
    items = tuple(read_all(messages, "Workflow(...) got "))
    for position, message in enumerate(items):
        if not isinstance(message, Message):
            msg = (
                f"item {position} of a Workflow is {describe(message)}, not a message: create messages "
                "with user(...)"
            )
            raise TypeError(msg)
    return items


@attrs.frozen(repr=False, eq=False)
class Workflow(Sequence[Message]):
    """
    A sequence of messages: the result of rendering a prompt.

    Workflows are compared by value, can be iterated over, and can be sliced like a tuple. ``str()`` returns a
    transcript. ``in`` searches for a string within the texts, for a content block, for a message, or for the
    messages of another workflow, as one consecutive run. ``+`` joins a workflow with another workflow, a
    message, content or a string: strings and content become user turns, None is ignored, and system parts are
    joined with a blank line between them.

    Args:
        messages:
            The messages.

        system:
            The system part, which is text; None if there is none. Slices have no system part. MCP has no
            system role: clients receive the system part as the first message, with the role ``"user"``.

    Attributes:
        answer:
            The type of the answer, as declared with the prompt's ``answer=``; None if not declared. It is
            ignored in comparisons, and is None in the results of ``+`` and in slices.

        cache_points:
            The position of each `cache_point`: the index of a message and an offset into its text. Offset 0
            means before that message and after everything that precedes it. Index -1 means the system part.
            Cache points are ignored in comparisons and transcripts. Slices do not have them.

    Raises:
        TypeError: If *messages* is not iterable, if an item is not a `Message`, or if *system* is not
            text.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """

    messages: tuple[Message, ...] = attrs.field(default=(), converter=_checked_messages)
    system: Text | None = attrs.field(default=None, converter=_system_part)
    answer: Any = attrs.field(default=None, init=False)
    cache_points: tuple[CachePosition, ...] = attrs.field(default=(), init=False)

    @classmethod
    def from_messages(cls, messages: Iterable[Any]) -> "Workflow":
        """
        Create a workflow from the messages of another library.

        Each part of a message becomes a separate message, except for blank text, which is omitted. System
        messages become the system part, and a vendor's cache markers become cache points. Nothing is
        downloaded: the messages must contain images and documents as base64 or ``data:`` URIs.

        Args:
            messages:
                Dictionaries with ``role`` and ``content``, as in requests to OpenAI and Anthropic, or message
                objects: a ``PromptMessage`` of the official SDK, a ``Message`` of fastmcp, or messages of
                LangChain.

        Returns:
            The workflow. If the messages come from a request to a vendor, `promptkit.exports` would convert
            the workflow back to these messages.

        Raises:
            TypeError: If *messages* is not a list of such messages.

            ValueError: If a message has a role or a part that a workflow cannot represent, such as a tool
                call; the error contains the position of the message.

            MediaError: If an image or audio cannot be sent.
        """
        from promptkit.language.foreign_messages import convert_message  # few prompts need it

        if isinstance(messages, str | Mapping) or not isinstance(messages, Iterable):
            msg = f"Workflow.from_messages() takes a list of messages, not {describe(messages)}"
            raise TypeError(msg)
        turns: list[Message] = []
        systems: list[Text] = []
        points: list[CachePosition] = []
        for number, message in enumerate(read_all(messages, "Workflow.from_messages(...) got "), 1):
            role, parts = convert_message(message, f"message {number}")
            for content, is_cached in parts:
                if role != "system":
                    turns.append(make_message(role, content))
                elif isinstance(content, Text):
                    systems.append(content)
                else:
                    msg = (
                        f"message {number} is a system message with {describe(content)}: system messages can "
                        "contain only text"
                    )
                    raise ValueError(msg)
                if is_cached:
                    point = (SYSTEM, next_system_offset(systems)) if role == "system" else (len(turns), 0)
                    points.append(point)
        system = system_text(*systems)
        return make_workflow(tuple(turns), system, None, resolve_points(points, system))

    @property
    def sent(self) -> tuple[Message, ...]:
        """The messages as they are sent with MCP: the system part comes first, with the role ``"user"``."""
        return self._with_system("user")

    @property
    def shown(self) -> tuple[Message, ...]:
        """
        The messages as they are shown in a transcript.

        The system part comes first, with the role ``"system"``.
        """
        return self._with_system("system")

    def _with_system(self, role: Role | Literal["system"]) -> tuple[Message, ...]:
        return self.messages if self.system is None else (make_message(role, self.system), *self.messages)

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
        """All text without roles, with blank lines between messages. The system part comes first."""
        return "\n\n".join(filter(None, (message.text for message in self.sent)))

    def __contains__(self, item: object) -> bool:
        if isinstance(item, Workflow):
            ends = range(len(item.messages), len(self.messages) + 1)
            has_run = any(self.messages[end - len(item.messages) : end] == item.messages for end in ends)
            return has_run and item.system in (None, self.system)
        is_in_system = (
            self.system is not None and not isinstance(item, Message) and _contains(self.sent[0], item)
        )
        return is_in_system or any(_contains(message, item) for message in self.messages)

    def __eq__(self, other: object) -> bool:
        # If the other operand is a message, Python calls `Message.__eq__`.
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
        _raise_format_error(self)

    def __repr__(self) -> str:
        system = "" if self.system is None else f", system={self.system!r}"
        return record_repr(f"Workflow([{', '.join(map(repr, self.messages))}]{system})")

    def __add__(self, other: Joinable) -> "Workflow":
        tail = other if isinstance(other, Workflow) else _to_workflow(other)
        return NotImplemented if tail is None else _sum(self, tail)

    def __radd__(self, other: Joinable) -> "Workflow":
        return NotImplemented if (head := _to_workflow(other)) is None else _sum(head, self)


def _contains(message: Message, item: object) -> bool:
    return message == item if isinstance(item, Message | Workflow) else item in message


def _raise_format_error(turns: Message | Workflow) -> NoReturn:
    kind = type(turns).__name__
    msg = (
        f"a {kind} is not text, and its roles would be lost in an f-string: "
        "join turns with +, or yield them; use .text for its text, or str(...) for a transcript"
    )
    raise TypeError(msg)


def make_workflow(
    messages: tuple[Message, ...],
    system: Text | None = None,
    answer: Any = None,
    cache_points: tuple[CachePosition, ...] = (),
) -> Workflow:
    """Create a workflow without checks, for speed."""
    workflow = _new(Workflow)
    _set_messages(workflow, messages)
    _set_system(workflow, system)
    _set_answer(workflow, answer)
    _set_cache_points(workflow, cache_points)
    return workflow


def make_message(role: Role | Literal["system"], content: Content) -> Message:
    """Create a message without checks, for speed."""
    message = _new(Message)
    _set_role(message, role)
    _set_content(message, content)
    return message


_new: Final = object.__new__

#: Setters for the fields of new instances, because the classes are frozen.
_set_role, _set_content = (vars(Message)[name].__set__ for name in ("role", "content"))
_set_messages, _set_system, _set_answer, _set_cache_points = (
    vars(Workflow)[name].__set__ for name in ("messages", "system", "answer", "cache_points")
)


def next_system_offset(texts: Iterable[Text]) -> int:
    """Return the offset at which the next text would start if it followed *texts* in a system part."""
    return sum(len(text.text) + GAP for text in texts)


def shift_points(
    points: Iterable[CachePosition], system: Text | None, messages: int = 0, systems: Iterable[Text] = ()
) -> Iterator[CachePosition]:
    """
    Yield a workflow's cache points, shifted by the content that precedes the workflow.

    Args:
        points:
            The positions of the cache points in the workflow.

        system:
            The workflow's system part.

        messages:
            The number of messages that precede the workflow.

        systems:
            The system parts that precede the workflow's system part.
    """
    start = next_system_offset(systems)
    for message, offset in points:
        if message != SYSTEM:
            yield message + messages, offset
        elif system is None or offset < len(system.text):
            yield SYSTEM, start + offset
        else:
            yield SYSTEM, start + offset + GAP


def resolve_points(points: Iterable[CachePosition], system: Text | None) -> tuple[CachePosition, ...]:
    """
    Return the final cache points of joined content, sorted.

    Cache points beyond the end of *system*, the joined system part, move to its end.
    """
    end = 0 if system is None else len(system.text)
    positions = {(message, min(offset, end) if message == SYSTEM else offset) for message, offset in points}
    return tuple(sorted(positions))


def _to_workflow(value: Any) -> Workflow | None:
    """Convert an operand of ``+`` to a workflow. Return None if it cannot be joined."""
    if isinstance(value, Workflow):
        return value
    if isinstance(value, Message):
        return make_workflow((value,))
    if value is None or isinstance(value, str | Content):
        block = to_block(value)
        return make_workflow(() if block is None else (make_message("user", block),))
    return None


def _sum(head: Workflow, tail: Workflow) -> Workflow:
    system = tail.system if head.system is None else system_text(head.system, tail.system)
    before = () if head.system is None else (head.system,)
    head_points = shift_points(head.cache_points, head.system)
    tail_points = shift_points(tail.cache_points, tail.system, len(head.messages), before)
    points = resolve_points((*head_points, *tail_points), system)
    return make_workflow(head.messages + tail.messages, system, None, points)
