"""
The bodies of requests as JSON, quickly.

Most workflows are turns of text. Of those with the same turns, the bodies differ in these texts alone: what
stands between them is made once, by the vendor's own function, and kept.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.language.messages import Workflow, message_of, workflow_of
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import Role

#: What a prompt says: a workflow, or one text of the user, as most do.
Said: TypeAlias = Workflow | str

#: Who speaks, turn by turn, as `Workflow.shown` has it.
_Roles: TypeAlias = tuple[Role | Literal["system"], ...]

_ONE_TEXT: Final[_Roles] = ("user",)

#: How many sequences of turns are kept.
_MOST: Final = 64

#: Stands for a text. JSON has it as it is.
_HOLE: Final = "a hole of promptkit, of number {}."


class _Template(Struct, frozen=True):
    """What stands between texts."""

    #: What stands before the first.
    head: bytes
    #: Which text stands at each place, and what stands behind it.
    rest: tuple[tuple[int, bytes], ...]

    def filled(self, texts: list[str]) -> bytes:
        encode, found = msgspec.json.encode, [self.head]
        for number, behind in self.rest:
            found += (encode(texts[number])[1:-1], behind)
        return b"".join(found)


class Bodies:
    """
    Makes bodies.

    Args:
        make:
            Makes the body of a workflow.

        answer:
            The type of the answer that all workflows ask for.
    """

    def __init__(self, make: Callable[[Workflow], dict[str, Any]], answer: Any = None) -> None:
        self._make = make
        self._answer = answer
        self._templates: dict[_Roles, _Template | None] = {}

    def of(self, said: Said) -> msgspec.Raw:
        """
        Return the body of a workflow, or of one text of the user.

        Raises:
            Exception: What makes the body raises.

            UnicodeEncodeError: If a text has half of a character.
        """
        if isinstance(said, str):
            roles, texts = _ONE_TEXT, [said]
        else:
            shown = said.shown
            roles = tuple([one.role for one in shown])
            texts = [one.content.text for one in shown if type(one.content) is Text]
            if len(texts) < len(shown) or said.cache_points or said.answer is not self._answer:
                return self._made(said)
        template = self._templates.get(roles)
        if template is None and roles not in self._templates and len(self._templates) < _MOST:
            template = self._templates[roles] = self._template(roles)
        if template is None:
            return self._made(self._workflow(roles, texts))
        return msgspec.Raw(template.filled(texts))

    def _made(self, workflow: Workflow) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(self._make(workflow)))

    def _workflow(self, roles: _Roles, texts: list[str]) -> Workflow:
        shown = tuple(map(message_of, roles, map(plain_text, texts)))
        if roles[:1] != ("system",):
            return workflow_of(shown, None, self._answer)
        return workflow_of(shown[1:], plain_text(texts[0]), self._answer)

    def _template(self, roles: _Roles) -> _Template | None:
        """What all workflows of these turns share; None if their texts do not stand in it as they are."""
        texts = [_HOLE.format(number) for number in range(len(roles))]
        data, holes = bytes(self._made(self._workflow(roles, texts))), [text.encode() for text in texts]
        if any(data.count(hole) != 1 for hole in holes):
            return None
        rest: list[tuple[int, bytes]] = []
        for number in sorted(range(len(holes)), key=lambda number: data.index(holes[number]), reverse=True):
            data, _, behind = data.partition(holes[number])
            rest.append((number, behind))
        return _Template(data, tuple(reversed(rest)))
