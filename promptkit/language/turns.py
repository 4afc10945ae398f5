"""Functions that create turns, system parts and cache points."""

from collections.abc import Iterable, Sequence
from typing import Literal, TypeAlias, final

from promptkit.language.blocks import to_block
from promptkit.language.content import Content, record_repr
from promptkit.language.media import Renderable
from promptkit.language.messages import (
    GAP,
    SYSTEM,
    CachePosition,
    Workflow,
    make_message,
    make_workflow,
    next_system_offset,
    resolve_points,
    system_text,
)
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import Role, UnsendableError, describe

#: Values that `user` and `assistant` accept. ``None``, ``False`` and blank text are omitted.
Part: TypeAlias = "str | Content | Renderable | CachePoint | Literal[False] | None"


@final
class CachePoint(Workflow):
    """A workflow without messages that marks its position as a cache point."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "cache_points", ((0, 0),))

    def __repr__(self) -> str:
        return record_repr("cache_point()")


def cache_point() -> CachePoint:
    """
    Mark the end of a prefix that is the same in every call, so that vendors can cache it.

    Use a cache point between the parts of `user`, `assistant` and `system`, or between turns. It adds no
    content: MCP clients do not receive it, and exported requests contain the vendor's cache marker at its
    position.

    Returns:
        A workflow without messages. Pass it as a part of a turn, yield it, or join it to turns with ``+``.
    """
    return CachePoint()


def user(*parts: Part) -> Workflow:
    """
    Create a user turn.

    Args:
        *parts:
            Strings, content, and objects that can be rendered as PNG, in order. Adjacent strings and
            `Text` with equal annotations become one block, with blank lines between them. Every other part
            becomes a separate message. ``None``, ``False`` and blank text are omitted. A `cache_point` marks
            its position.

    Returns:
        A workflow of the turn's messages, all with the role ``"user"``.

    Raises:
        TypeError: If a part has a different type; the message names the part and suggests a fix.

        MediaError: If an object is rendered as an image that cannot be sent.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """
    return _make_turn("user", parts)


def assistant(*parts: Part) -> Workflow:
    """
    Create an assistant turn.

    Args:
        *parts:
            The same values that `user` accepts.

    Returns:
        A workflow of the turn's messages, all with the role ``"assistant"``.

    Raises:
        TypeError: If a part has a different type; the message names the part and suggests a fix.

        MediaError: If an object is rendered as an image that cannot be sent.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """
    return _make_turn("assistant", parts)


def system(*parts: str | Text | CachePoint | Literal[False] | None) -> Workflow:
    """
    Create a system part: instructions to the model that precede all turns.

    MCP has no system role: clients receive the system part as the first message, with the role ``"user"``.
    Exported requests contain it where the vendor's API expects it.

    Args:
        *parts:
            Strings and `Text`, which are joined with blank lines between them. ``None``, ``False`` and blank
            text are omitted. A `cache_point` marks its position.

    Returns:
        A workflow without messages. Yield it, or join it to turns with ``+``.

    Raises:
        TypeError: If a part is not text; the message names the part.

        ValueError: If the annotations of `Text` values differ.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """
    texts: list[Text] = []
    points: list[CachePosition] = []
    for position, part in enumerate(parts, 1):
        if part is None or part is False:
            continue
        if isinstance(part, CachePoint):
            points.append((SYSTEM, next_system_offset(texts)))
            continue
        if not isinstance(part, str | Text):
            msg = (
                f"system(...): part {position} is {describe(part)}: system parts must be text; put it into a "
                "turn"
            )
            raise TypeError(msg)
        block = to_block(part)
        if isinstance(block, Text):
            texts.append(block)
    text = system_text(*texts)
    return make_workflow((), text, None, resolve_points(points, text))


def _make_turn(role: Role, parts: tuple[Part, ...]) -> Workflow:
    if len(parts) == 1 and type(text := parts[0]) is str and text and not text.isspace():
        return make_workflow((make_message(role, plain_text(text)),))  # most turns consist of one string
    blocks: list[Content] = []
    run: list[str] = []  # adjacent strings that become one block
    points: list[CachePosition] = []
    for position, part in enumerate(parts, 1):
        if isinstance(part, str):  # the most common kind of part
            if part and not part.isspace():
                run.append(part)
            continue
        if isinstance(part, CachePoint):
            points.append(_next_position(blocks, run))
            continue
        try:
            block = to_block(part)
        except UnsendableError as unsendable:
            msg = f"{role}(...): part {position} is {unsendable}"
            raise TypeError(msg) from None
        if isinstance(block, Text) and not block.annotated:
            run.append(block.text)
        elif block is not None:
            _flush_run(run, blocks)
            _append_or_join(block, blocks)
    _flush_run(run, blocks)
    messages = tuple([make_message(role, block) for block in blocks])
    return make_workflow(messages, None, None, _turn_points(points, blocks) if points else ())


def _flush_run(run: list[str], blocks: list[Content]) -> None:
    """Move the strings in *run*, if any, to *blocks* as one block."""
    if run:
        blocks.append(plain_text("\n\n".join(run)))
        run.clear()


def _append_or_join(block: Content, blocks: list[Content]) -> None:
    """Append *block* to *blocks*, or join it to the last block if both are text with equal annotations."""
    last = blocks[-1] if blocks else None
    if isinstance(block, Text) and isinstance(last, Text) and block.annotations == last.annotations:
        blocks[-1] = last + block
    else:
        blocks.append(block)


def _next_position(blocks: Sequence[Content], run: Sequence[str]) -> CachePosition:
    """
    Return the position at which the next part of a turn would start if it were joined to the preceding text.
    """
    if run:
        return len(blocks), len("\n\n".join(run)) + GAP
    if blocks and isinstance(last := blocks[-1], Text):
        return len(blocks) - 1, len(last.text) + GAP
    return len(blocks), 0


def _turn_points(points: Iterable[CachePosition], blocks: Sequence[Content]) -> tuple[CachePosition, ...]:
    """
    Return the final cache points of a turn, sorted.

    A cache point at the end of a message's text moves to the position after the message.
    """
    positions = {
        (message, offset) if not offset or offset < len(str(blocks[message])) else (message + 1, 0)
        for message, offset in points
    }
    return tuple(sorted(positions))
