"""Turns: `user` and `assistant` make messages from text and content, and `system` a system part from text."""

from typing import TYPE_CHECKING, Literal, TypeAlias, final

from promptkit.language.blocks import block_of, system_text
from promptkit.language.cache_points import next_in_system, next_in_turn, settled_in_turn, settled_points
from promptkit.language.content import Content
from promptkit.language.messages import Workflow, message_of, workflow_of
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import Role, UnsendableError, describe

if TYPE_CHECKING:
    from promptkit.language.media import Showable

#: What `user` and `assistant` take. ``None``, ``False`` and blank text are left out.
Part: TypeAlias = "str | Content | Showable | CachePoint | Literal[False] | None"


@final
class CachePoint(Workflow):
    """
    A workflow that says nothing, and marks the place where it stands.
    """

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__()
        object.__setattr__(self, "cache_points", ((0, 0),))

    def __repr__(self) -> str:
        return "cache_point()"


def cache_point() -> CachePoint:
    """
    Mark the end of what stays the same from call to call, so that a vendor may keep what is before it.

    It stands between parts of `user`, `assistant` and `system`, or between turns, and says nothing: MCP
    clients receive what they would without it. Requests to vendors have a mark there.

    Returns:
        A workflow without messages, to be given to a turn as a part, yielded, or joined by ``+``.
    """
    return CachePoint()


def user(*parts: Part) -> Workflow:
    """
    Make a turn of the user.

    Args:
        *parts:
            Strings, content, and objects that can show themselves as PNG, in order. Neighbouring
            strings and `Text` with equal annotations become one block, with a blank line between.
            Every other part is a message of its own. ``None``, ``False`` and blank text are left out, and a
            `cache_point` marks its place.

    Returns:
        A workflow of the turn's messages, all with the role ``"user"``.

    Raises:
        TypeError: If a part is something else; the message says which part, and what to write.

        MediaError: If an object shows itself as an image that cannot be sent.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """
    return _turn("user", parts)


def assistant(*parts: Part) -> Workflow:
    """
    Make a turn of the assistant.

    Args:
        *parts:
            As for `user`.

    Returns:
        A workflow of the turn's messages, all with the role ``"assistant"``.

    Raises:
        TypeError: If `user` would refuse a part; the message says which part, and what to write.

        MediaError: If an object shows itself as an image that cannot be sent.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """
    return _turn("assistant", parts)


def system(*parts: str | Text | CachePoint | Literal[False] | None) -> Workflow:
    """
    Make a system part: what is said to the model before all turns.

    MCP has no such role: clients receive it as the first message, of the user. Requests to vendors have
    it where the vendor wants it.

    Args:
        *parts:
            Strings and `Text`, which are joined with a blank line between. ``None``, ``False`` and blank
            text are left out, and a `cache_point` marks its place.

    Returns:
        A workflow without messages, to be yielded, or joined with turns by ``+``.

    Raises:
        TypeError: If a part is not text; the message says which part.

        ValueError: If the annotations of `Text` values differ.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#promptmessage
    """
    texts: list[Text] = []
    points: list[tuple[int, int]] = []
    for position, part in enumerate(parts, 1):
        if part is None or part is False:
            continue
        if isinstance(part, CachePoint):
            points.append(next_in_system(texts))
            continue
        if not isinstance(part, str | Text):
            msg = (
                f"system(...): part {position} is {describe(part)}: a system part is text; put it into a turn"
            )
            raise TypeError(msg)
        block = block_of(part)
        if isinstance(block, Text):
            texts.append(block)
    text = system_text(*texts)
    if not points:
        return workflow_of((), text)

    return workflow_of((), text, None, settled_points(points, text))


def _turn(role: Role, parts: tuple[Part, ...]) -> Workflow:
    if len(parts) == 1 and type(text := parts[0]) is str and text and not text.isspace():
        return workflow_of((message_of(role, plain_text(text)),))  # the fast path: most turns are one string
    blocks: list[Content] = []
    run: list[str] = []  # neighbouring texts, to be joined
    points: list[tuple[int, int]] = []
    for position, part in enumerate(parts, 1):
        if isinstance(part, str):  # most parts are
            if part and not part.isspace():
                run.append(part)
            continue
        if isinstance(part, CachePoint):
            points.append(next_in_turn(blocks, run))
            continue
        try:
            block = block_of(part)
        except UnsendableError as unsendable:
            msg = f"{role}(...): part {position} is {unsendable}"
            raise TypeError(msg) from None
        if isinstance(block, Text) and not block.annotated:
            run.append(block.text)
        elif block is not None:
            _close(run, blocks)
            _append(block, blocks)
    _close(run, blocks)
    messages = tuple([message_of(role, block) for block in blocks])
    if not points:
        return workflow_of(messages)

    return workflow_of(messages, None, None, settled_in_turn(points, blocks))


def _close(run: list[str], blocks: list[Content]) -> None:
    """Move the texts in *run* to *blocks*, as one block."""
    if run:
        blocks.append(plain_text("\n\n".join(run)))
        run.clear()


def _append(block: Content, blocks: list[Content]) -> None:
    """Add a block, or join it to the last one."""
    last = blocks[-1] if blocks else None
    if isinstance(block, Text) and isinstance(last, Text) and block.annotations == last.annotations:
        blocks[-1] = last + block
    else:
        blocks.append(block)
