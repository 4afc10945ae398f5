"""Conversations: which messages a prompt sends, as far as its source shows them, or a rendering does."""

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, islice, product
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.clients.profiles import Kind
from promptkit.declarations.resources import Resource
from promptkit.errors.sources import own_nodes
from promptkit.language.content import Content
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Workflow
from promptkit.language.text import Text
from promptkit.language.turns import assistant, cache_point, system, user
from promptkit.lints.control_flow import MOST_WAYS, choices_of, items_of, ways_through
from promptkit.lints.name_resolution import Scope

_KINDS: Final[dict[type[Content], Kind]] = {
    Text: "text",
    Image: "image",
    Audio: "recording",
    EmbeddedResource: "document",
    ResourceLink: "link",
}

#: How what is no text is named to people.
_NAMES: Final[Mapping[Kind, str]] = {
    "image": "an image",
    "recording": "a recording",
    "document": "an embedded resource",
    "link": "a link to a resource",
}

#: The roles of what functions make.
_ROLES: Final[dict[Any, str]] = {user: "user", assistant: "assistant", system: "system"}

#: What the methods of classes of content, and of resources, make.
_METHODS: Final[dict[str, Kind]] = {"embed": "document", "link": "link"}


class SentMessage(Struct, frozen=True):
    """
    One message.

    Args:
        role:
            Who says it: ``"user"``, ``"assistant"``, ``"system"`` in a source, or ``"unknown"``.

        kind:
            What it holds.

        node:
            The expression that makes it, if it was found in a source.
    """

    role: str
    kind: Kind
    node: ast.expr | None = None

    @property
    def name(self) -> str | None:
        """What content that is no text is called, as in *an image*."""
        return _NAMES.get(self.kind)


#: Messages in order.
Conversation: TypeAlias = tuple[SentMessage, ...]


class SentMessages(Struct, frozen=True):
    """
    What a prompt sends.

    Args:
        conversations:
            Its messages, for each way through it.

        content:
            What it makes other than text, wherever that stands.
    """

    conversations: Sequence[Conversation]
    content: Iterable[SentMessage]

    @classmethod
    def of_rendering(cls, workflow: Workflow) -> "SentMessages":
        """Return the messages of a rendering; all of them are its content."""
        sent = tuple(
            SentMessage(each.role, _KINDS.get(type(each.content), "unknown")) for each in workflow.sent
        )
        return cls([sent], sent)

    @classmethod
    def of_source(cls, scope: Scope) -> "SentMessages":
        """Return what a function may send. Functions that it calls are not followed."""
        return cls(_conversations_in(scope), _content_in(scope))


def _conversations_in(scope: Scope) -> list[Conversation]:
    if own_nodes(scope.syntax, ast.Yield, ast.YieldFrom):
        body: list[ast.stmt] = getattr(scope.syntax, "body", [])
        sending = (way for way in ways_through(body) if not (way and isinstance(way[-1], ast.Raise)))
        ways = [[each for step in way if (each := _yielded(step))] for way in sending]
    else:
        ways = [[node.value] for node in own_nodes(scope.syntax, ast.Return) if node.value is not None]
    return [conversation for way in ways for conversation in _joined(way, scope)]


def _yielded(step: ast.stmt) -> ast.expr | None:
    value = getattr(step, "value", None)
    return value.value if isinstance(value, ast.Yield | ast.YieldFrom) else None


def _content_in(scope: Scope) -> Iterator[SentMessage]:
    for node in own_nodes(scope.syntax, ast.Call, ast.Attribute):
        match node:
            case ast.Call(ast.Name() as maker) | (ast.Attribute() as maker):
                kind = kind_made(maker, scope)
                if kind is not None and kind != "text":
                    yield SentMessage("unknown", kind, node)


def role_of(maker: Any) -> str | None:
    """Return the role of what a function makes, if it is `user`, `assistant` or `system`."""
    return next((role for turn, role in _ROLES.items() if turn is maker), None)


def kind_made(maker: ast.expr, scope: Scope) -> Kind | None:
    """Return which content a class or a method makes: `Image`, `Image.from_path`, a resource's `embed`."""
    made = scope.value(maker)
    if isinstance(maker, ast.Attribute) and made is None:
        made = scope.value(maker.value)
        if isinstance(made, Resource):
            return _METHODS.get(maker.attr)
    return _KINDS.get(made) if isinstance(made, type) and issubclass(made, Content) else None


def _conversations(node: ast.expr, scope: Scope) -> list[Conversation]:  # noqa: C901, PLR0911 (a list of cases)
    """The messages that an expression stands for, one conversation for each way it may turn out."""
    if choices := choices_of(node):
        return [each for choice in choices for each in _conversations(choice, scope)]
    if isinstance(node, ast.Name) and node.id not in scope.untracked and node.id not in scope.appended:
        assigned = scope.behind(node)
        if assigned is not node:
            return _conversations(assigned, scope)
    match node:
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.GeneratorExp():
            return _joined(items_of(node), scope)
        case ast.Constant(value) if value in (None, False) or not str(value).strip():
            return [()]
        case ast.Call(called) if scope.value(called) is cache_point:
            return [()]
        case _ if scope.is_text(node):  # it is the user's
            return [(SentMessage("user", "text", node),)]
        case ast.BinOp(op=ast.Add()):
            return _joined(items_of(node), scope)
        case ast.Call(called, parts) if (role := role_of(scope.value(called))) is not None:
            return [_turn(role, way) for way in _joined(parts, scope)]
        case ast.Call(maker) if (kind := kind_made(maker, scope)) is not None:
            return [(SentMessage("user", kind, node),)]
    return [(SentMessage("unknown", "unknown", node),)]


def _joined(items: Iterable[ast.expr], scope: Scope) -> list[Conversation]:
    each = (_conversations(item, scope) for item in items)
    return [tuple(chain.from_iterable(found)) for found in islice(product(*each), MOST_WAYS)]


def _turn(role: str, parts: Conversation) -> Conversation:
    """The messages of a turn: neighbouring texts are one, and what is not known is taken for text."""
    blocks: list[SentMessage] = []
    for is_text, run in groupby(parts, key=lambda part: part.kind in ("text", "unknown")):
        messages = list(run)
        if is_text:
            is_known = all(message.kind == "text" for message in messages)
            messages = [SentMessage(role, "text" if is_known else "unknown", messages[0].node)]
        blocks += (SentMessage(role, message.kind, message.node) for message in messages)
    return tuple(blocks)
