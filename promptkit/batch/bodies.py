"""
The bodies of requests as JSON, quickly.

Most workflows are turns of text. Of those with the same turns, the bodies differ in these texts alone: what
stands between them is made once, by the vendor's own function, and kept.
"""

from collections.abc import Callable
from typing import Any, Final, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.language.messages import Workflow, message_of, workflow_of
from promptkit.language.text import Text, plain_text

__all__ = ["Bodies"]

#: Who speaks, turn by turn, as `Workflow.shown` has it.
_Roles: TypeAlias = tuple[str, ...]

#: How many sequences of turns are kept.
_MOST: Final = 64

#: Stands for a text. Nothing says it, and JSON has it as it is.
_HOLE: Final = "a hole of promptkit, of number {}."


class _Template(Struct, frozen=True):
    """What stands between texts."""

    #: One more than there are texts.
    pieces: tuple[bytes, ...]
    #: Which text stands at each place.
    order: tuple[int, ...]

    def filled(self, texts: list[str]) -> bytes:
        encode = msgspec.json.encode
        found = [self.pieces[0]]
        for number, piece in zip(self.order, self.pieces[1:], strict=True):
            found += (encode(texts[number])[1:-1], piece)
        return b"".join(found)


class Bodies:
    """
    Makes bodies.

    Args:
        make:
            Makes the body of a workflow.
    """

    def __init__(self, make: Callable[[Workflow], dict[str, Any]]) -> None:
        self._make = make
        self._templates: dict[_Roles, _Template | None] = {}

    def of(self, workflow: Workflow) -> msgspec.Raw:
        """
        Return the body of a workflow.

        Raises:
            Exception: What makes the body raises.

            UnicodeEncodeError: If a text has half of a character.
        """
        shown = workflow.shown
        texts = [one.content.text for one in shown if type(one.content) is Text]
        if len(texts) < len(shown) or workflow.cache_points:
            return msgspec.Raw(msgspec.json.encode(self._make(workflow)))
        roles = tuple([one.role for one in shown])
        if roles not in self._templates and len(self._templates) < _MOST:
            self._templates[roles] = self._template(roles, workflow)
        template = self._templates.get(roles)
        if template is None:
            return msgspec.Raw(msgspec.json.encode(self._make(workflow)))
        return msgspec.Raw(template.filled(texts))

    def _template(self, roles: _Roles, workflow: Workflow) -> _Template | None:
        """What all workflows of these turns share; None if their texts do not stand in it as they are."""
        holes = [_HOLE.format(number) for number in range(len(roles))]
        contents = list(map(plain_text, holes))
        system = contents.pop(0) if workflow.system is not None else None
        messages = tuple(
            message_of(one.role, content) for one, content in zip(workflow.messages, contents, strict=True)
        )
        data = msgspec.json.encode(self._make(workflow_of(messages, system, workflow.answer))).decode()
        if any(data.count(hole) != 1 for hole in holes):
            return None
        order = sorted(range(len(holes)), key=lambda number: data.index(holes[number]))
        pieces = []
        for number in order:
            piece, _, data = data.partition(holes[number])
            pieces.append(piece.encode())
        return _Template((*pieces, data.encode()), tuple(order))
