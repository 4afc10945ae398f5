"""
Fast encoding of request bodies as JSON.

Most workflows are turns of text. The bodies of workflows with the same roles differ only in their texts: the
JSON between the texts is created once, by the vendor's function, and cached.
"""

from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.language.messages import Workflow, message_of, workflow_of
from promptkit.language.text import Text, plain_text
from promptkit.language.validation import Role

#: A rendering of one row: a workflow, or a single user text, which most prompts return.
RenderedRow: TypeAlias = Workflow | str

#: The roles of the turns, as in `Workflow.shown`.
_Roles: TypeAlias = tuple[Role | Literal["system"], ...]

_SINGLE_USER_TEXT: Final[_Roles] = ("user",)

#: The maximum number of cached templates.
_MAX_TEMPLATES: Final = 64

#: A marker for a text, which JSON does not escape.
_MARKER: Final = "a placeholder of promptkit, number {}."


class _Template(Struct, frozen=True):
    """The JSON between texts."""

    #: The JSON before the first text.
    head: bytes
    #: For each text, its index and the JSON after it.
    segments: tuple[tuple[int, bytes], ...]

    def fill(self, texts: list[str]) -> bytes:
        encode, pieces = msgspec.json.encode, [self.head]
        for number, separator in self.segments:
            pieces += (encode(texts[number])[1:-1], separator)
        return b"".join(pieces)


class Bodies:
    """
    An encoder of request bodies.

    Args:
        make:
            Creates the body of a workflow.

        answer:
            The answer type of all workflows.
    """

    def __init__(self, make: Callable[[Workflow], dict[str, Any]], answer: Any = None) -> None:
        self._make = make
        self._answer = answer
        self._templates: dict[_Roles, _Template | None] = {}

    def of(self, rendering: RenderedRow) -> msgspec.Raw:
        """
        Encode the request body for a workflow, or for a single user text.

        Raises:
            Exception: Any exception raised by the function that creates the body.

            UnicodeEncodeError: If a text has a lone surrogate.
        """
        if isinstance(rendering, str):
            roles, texts = _SINGLE_USER_TEXT, [rendering]
        else:
            messages = rendering.shown
            roles = tuple([message.role for message in messages])
            texts = [message.content.text for message in messages if type(message.content) is Text]
            if len(texts) < len(messages) or rendering.cache_points or rendering.answer is not self._answer:
                return self._encode_body(rendering)
        template = self._templates.get(roles)
        if template is None and roles not in self._templates and len(self._templates) < _MAX_TEMPLATES:
            template = self._templates[roles] = self._template(roles)
        if template is None:
            return self._encode_body(self._workflow(roles, texts))
        return msgspec.Raw(template.fill(texts))

    def _encode_body(self, workflow: Workflow) -> msgspec.Raw:
        return msgspec.Raw(msgspec.json.encode(self._make(workflow)))

    def _workflow(self, roles: _Roles, texts: list[str]) -> Workflow:
        messages = tuple(map(message_of, roles, map(plain_text, texts)))
        if roles[:1] != ("system",):
            return workflow_of(messages, None, self._answer)
        return workflow_of(messages[1:], plain_text(texts[0]), self._answer)

    def _template(self, roles: _Roles) -> _Template | None:
        """Return the template of all workflows with these roles; None if texts are not embedded verbatim."""
        texts = [_MARKER.format(number) for number in range(len(roles))]
        data, markers = (
            bytes(self._encode_body(self._workflow(roles, texts))),
            [text.encode() for text in texts],
        )
        if any(data.count(marker) != 1 for marker in markers):
            return None
        segments: list[tuple[int, bytes]] = []
        for number in sorted(
            range(len(markers)), key=lambda number: data.index(markers[number]), reverse=True
        ):
            data, _, separator = data.partition(markers[number])
            segments.append((number, separator))
        return _Template(data, tuple(reversed(segments)))
