"""The messages that a prompt sends, inferred from its source or taken from a rendering."""

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
from promptkit.lints.static_analysis import MAX_PATHS, Scope, execution_paths, list_choices, list_items

_TYPE_KINDS: Final[dict[type[Content], Kind]] = {
    Text: "text",
    Image: "image",
    Audio: "recording",
    EmbeddedResource: "document",
    ResourceLink: "link",
}

#: Display names of content that is not text.
_DISPLAY_NAMES: Final[Mapping[Kind, str]] = {
    "image": "an image",
    "recording": "a recording",
    "document": "an embedded resource",
    "link": "a link to a resource",
}

#: The roles of the messages that promptkit's functions create.
_ROLES: Final[dict[Any, str]] = {user: "user", assistant: "assistant", system: "system"}

#: The kinds of content that the methods of resources create.
_METHOD_KINDS: Final[dict[str, Kind]] = {"embed": "document", "link": "link"}


class SentMessage(Struct, frozen=True):
    """
    A message that a prompt sends.

    Args:
        role:
            ``"user"``, ``"assistant"``, ``"system"`` (only if inferred from source), or ``"unknown"``.

        kind:
            The kind of content.

        node:
            The expression that creates the message; None if the message is from a rendering.
    """

    role: str
    kind: Kind
    node: ast.expr | None = None

    @property
    def name(self) -> str | None:
        """The display name of content that is not text, such as "an image"."""
        return _DISPLAY_NAMES.get(self.kind)


#: Messages in order.
Conversation: TypeAlias = tuple[SentMessage, ...]


class SentMessages(Struct, frozen=True):
    """
    The messages that a prompt sends.

    Args:
        conversations:
            The messages of each execution path.

        content:
            All messages of a rendering, or all content other than text that the source creates.
    """

    conversations: Sequence[Conversation]
    content: Iterable[SentMessage]

    @classmethod
    def from_rendering(cls, workflow: Workflow) -> "SentMessages":
        """Return the messages of a rendering."""
        sent = tuple(
            SentMessage(each.role, _TYPE_KINDS.get(type(each.content), "unknown")) for each in workflow.sent
        )
        return cls([sent], sent)

    @classmethod
    def from_source(cls, scope: Scope) -> "SentMessages":
        """Infer the messages that a function can send, without analyzing the functions that it calls."""
        return cls(_conversations_in(scope), _content_in(scope))


def _conversations_in(scope: Scope) -> list[Conversation]:
    if own_nodes(scope.node, ast.Yield, ast.YieldFrom):
        body: list[ast.stmt] = getattr(scope.node, "body", [])
        paths = (path for path in execution_paths(body) if not (path and isinstance(path[-1], ast.Raise)))
        results = [[value for step in path if (value := _sent_value(step))] for path in paths]
    else:
        results = [[node.value] for node in own_nodes(scope.node, ast.Return) if node.value is not None]
    return [conversation for values in results for conversation in _combinations(values, scope)]


def _sent_value(step: ast.stmt) -> ast.expr | None:
    """Return the expression that a statement of a generator yields or returns; None if there is none."""
    value = getattr(step, "value", None)
    if isinstance(value, ast.Yield | ast.YieldFrom):
        return value.value
    return value if isinstance(step, ast.Return) else None


def _content_in(scope: Scope) -> Iterator[SentMessage]:
    for node in own_nodes(scope.node, ast.Call, ast.Attribute):
        match node:
            case ast.Call(ast.Name() as callee) | (ast.Attribute() as callee):
                kind = content_kind(callee, scope)
                if kind is not None and kind != "text":
                    yield SentMessage("unknown", kind, node)


def get_role(function: Any) -> str | None:
    """Return the role of the turns that `user`, `assistant` or `system` creates; None for other functions."""
    return next((role for turn, role in _ROLES.items() if turn is function), None)


def content_kind(callee: ast.expr, scope: Scope) -> Kind | None:
    """Return the kind of content that a callable such as `Image` or a resource's `embed` creates, or None."""
    owner = scope.global_value(callee)
    if isinstance(callee, ast.Attribute) and owner is None:
        owner = scope.global_value(callee.value)
        if isinstance(owner, Resource):
            return _METHOD_KINDS.get(callee.attr)
    return _TYPE_KINDS.get(owner) if isinstance(owner, type) and issubclass(owner, Content) else None


def _conversations(node: ast.expr, scope: Scope) -> list[Conversation]:  # noqa: C901, PLR0911 (a list of cases)
    """Return the conversations that an expression can create, one per combination of alternatives."""
    if choices := list_choices(node):
        return [each for choice in choices for each in _conversations(choice, scope)]
    if (
        isinstance(node, ast.Name)
        and node.id not in scope.untracked_names
        and node.id not in scope.appended_values
    ):
        assigned = scope.resolve(node)
        if assigned is not node:
            return _conversations(assigned, scope)
    match node:
        case ast.List() | ast.Tuple() | ast.ListComp() | ast.GeneratorExp():
            return _combinations(list_items(node), scope)
        case ast.Constant(value) if value in (None, False) or not str(value).strip():
            return [()]
        case ast.Call(callee) if scope.global_value(callee) is cache_point:
            return [()]
        case _ if scope.is_text(node):  # text becomes a user turn
            return [(SentMessage("user", "text", node),)]
        case ast.BinOp(op=ast.Add()):
            return _combinations(list_items(node), scope)
        case ast.Call(callee, parts) if (role := get_role(scope.global_value(callee))) is not None:
            return [_join_turn(role, messages) for messages in _combinations(parts, scope)]
        case ast.Call(callee) if (kind := content_kind(callee, scope)) is not None:
            return [(SentMessage("user", kind, node),)]
    return [(SentMessage("unknown", "unknown", node),)]


def _combinations(items: Iterable[ast.expr], scope: Scope) -> list[Conversation]:
    alternatives = (_conversations(item, scope) for item in items)
    return [tuple(chain.from_iterable(chosen)) for chosen in islice(product(*alternatives), MAX_PATHS)]


def _join_turn(role: str, parts: Conversation) -> Conversation:
    """Return the messages of a turn, joining adjacent text. Unknown parts are treated as text."""
    blocks: list[SentMessage] = []
    for is_text, run in groupby(parts, key=lambda part: part.kind in ("text", "unknown")):
        messages = list(run)
        if is_text:
            is_known = all(message.kind == "text" for message in messages)
            messages = [SentMessage(role, "text" if is_known else "unknown", messages[0].node)]
        blocks += (SentMessage(role, message.kind, message.node) for message in messages)
    return tuple(blocks)
