"""Turns: what the user says and what the assistant says, made of text and content."""

from promptkit.language.content import Content, Role, Text, plain_text
from promptkit.language.messages import Part, Workflow, block_of, message_of, workflow_of
from promptkit.language.unsendable import Unsendable

__all__ = ["assistant", "user"]


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
        return workflow_of((message_of(role, plain_text(text)),))  # most turns are that
    blocks: list[Content] = []
    run: list[str] = []  # plain text that is not joined yet
    for position, part in enumerate(parts, 1):
        if isinstance(part, str):  # most parts are, and need no block of their own
            if part and not part.isspace():
                run.append(part)
            continue
        try:
            block = block_of(part)
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
    return workflow_of(tuple([message_of(role, block) for block in blocks]))


def _close(run: list[str], blocks: list[Content]) -> None:
    """
    Move the texts in *run* to *blocks*, as one block.
    """
    if run:
        blocks.append(plain_text("\n\n".join(run)))
        run.clear()
