"""Conversations: which messages a prompt sends, as far as its source shows them, or a rendering does."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby, islice, product
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct

from promptkit.compiler.lints.names import TEXT_METHODS, Names
from promptkit.compiler.resources import Resource
from promptkit.errors.sources import Function, own_nodes
from promptkit.language.content import Content, Text
from promptkit.language.documents import EmbeddedResource, ResourceLink
from promptkit.language.media import Audio, Image
from promptkit.language.messages import Workflow
from promptkit.language.turns import assistant, user

__all__ = [
    "NAMED",
    "Conversation",
    "Kind",
    "SentMessage",
    "content_in",
    "conversation_of",
    "conversations_in",
    "kind_made",
]

Kind: TypeAlias = Literal["text", "image", "recording", "document", "link", "unknown"]

_KINDS: Final[dict[type[Content], Kind]] = {
    Text: "text",
    Image: "image",
    Audio: "recording",
    EmbeddedResource: "document",
    ResourceLink: "link",
}

#: How what is no text is named to people.
NAMED: Final[Mapping[Kind, str]] = {
    "image": "an image",
    "recording": "a recording",
    "document": "an embedded resource",
    "link": "a link to a resource",
}

#: What the methods of classes of content, and of resources, make.
_METHODS: Final[dict[str, Kind]] = {"embed": "document", "link": "link"}

_ROLES: Final = {user: "user", assistant: "assistant"}

#: A function of very many branches is not followed into each combination of them.
_MOST: Final = 32


class SentMessage(Struct, frozen=True):
    """
    One message.

    Args:
        role:
            Who says it: ``"user"``, ``"assistant"``, or ``"unknown"``.

        kind:
            What it holds.

        node:
            The expression that makes it, if it was found in a source.
    """

    role: str
    kind: Kind
    node: ast.expr | None = None


#: Messages in order.
Conversation: TypeAlias = tuple[SentMessage, ...]


def conversation_of(workflow: Workflow) -> Conversation:
    """Return the messages of a rendering."""
    return tuple(SentMessage(each.role, _KINDS.get(type(each.content), "unknown")) for each in workflow)


def conversations_in(function: Function, names: Names) -> tuple[Conversation, ...]:
    """
    Return the conversations that a function may send, one for each way through it.

    A loop is taken to run once. Functions that it calls are not followed.

    Args:
        function:
            The function's syntax.

        names:
            What its names stand for.
    """
    if own_nodes(function, ast.Yield, ast.YieldFrom):
        return tuple(_yielded(function.body, names))
    returned = [node.value for node in own_nodes(function, ast.Return) if node.value is not None]
    return tuple(each for value in returned for each in _conversations(value, names))


def content_in(function: Function, names: Names) -> Iterator[SentMessage]:
    """Yield what a function makes other than text, wherever it stands. Its role is not known."""
    for node in own_nodes(function, ast.Call, ast.Attribute):
        match node:
            case ast.Call(func=ast.Name() as maker) | (ast.Attribute() as maker):
                kind = kind_made(maker, names)
                if kind is not None and kind != "text":
                    yield SentMessage("unknown", kind, node)


def kind_made(maker: ast.expr, names: Names) -> Kind | None:
    """Return which content a class or a method makes: `Image`, `Image.from_path`, a resource's `embed`."""
    made = names.value(maker)
    if isinstance(made, type) and issubclass(made, Content):
        return _KINDS.get(made)
    if isinstance(maker, ast.Attribute):
        owner = names.value(maker.value)
        if isinstance(owner, Resource):
            return _METHODS.get(maker.attr)
        if isinstance(owner, type) and issubclass(owner, Content):
            return _KINDS.get(owner)
    return None


def _yielded(body: Iterable[ast.stmt], names: Names) -> list[Conversation]:
    """What a generator yields, one after the other."""
    found: list[Conversation] = [()]
    for statement in body:
        below = _of_statement(statement, names)
        found = [before + after for before, after in islice(product(found, below), _MOST)]
    return found


def _of_statement(statement: ast.stmt, names: Names) -> list[Conversation]:  # noqa: PLR0911 (a list of cases)
    match statement:
        case ast.Expr(value=ast.Yield(value=ast.expr() as value) | ast.YieldFrom(value=value)):
            return _conversations(value, names)
        case ast.Return(value=ast.expr() as value):
            return _conversations(value, names)
        case ast.If(body=then, orelse=otherwise):
            return _yielded(then, names) + _yielded(otherwise, names)
        case ast.For(body=body) | ast.AsyncFor(body=body) | ast.While(body=body):
            return _yielded(body, names)
        case ast.With(body=body) | ast.AsyncWith(body=body):
            return _yielded(body, names)
        case ast.Try(body=body, orelse=otherwise, finalbody=last):
            return _yielded([*body, *otherwise, *last], names)
        case ast.Match(cases=cases):
            return [each for case in cases for each in _yielded(case.body, names)]
    return [()]


def _conversations(  # noqa: PLR0911 (a list of cases)
    node: ast.expr, names: Names, followed: frozenset[str] = frozenset()
) -> list[Conversation]:
    """The messages that an expression stands for, one conversation for each way it may turn out."""
    if _is_text(node, names):
        return [_texts(node)]
    match node:
        case ast.Constant(value=None | False):
            return [()]
        case ast.IfExp(body=then, orelse=otherwise):
            return _conversations(then, names, followed) + _conversations(otherwise, names, followed)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _joined([left, right], names, followed)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return _joined(items, names, followed)
        case ast.Name(id=name) if name not in followed and (value := _assigned(name, names)) is not None:
            return _conversations(value, names, followed | {name})
        case ast.Call(func=called, args=parts) if (role := _role(called, names)) is not None:
            return _turns(role, _joined(parts, names, followed))
        case ast.Call(func=maker) if (kind := kind_made(maker, names)) is not None:
            return [(SentMessage("user", kind, node),)]
    return [(SentMessage("unknown", "unknown", node),)]


def _texts(node: ast.expr) -> Conversation:
    """A text is a message of the user, unless it is blank."""
    is_blank = isinstance(node, ast.Constant) and not str(node.value).strip()
    return () if is_blank else (SentMessage("user", "text", node),)


def _joined(items: Iterable[ast.expr], names: Names, followed: frozenset[str]) -> list[Conversation]:
    each = (_conversations(item, names, followed) for item in items)
    return [sum(found, ()) for found in islice(product(*each), _MOST)]


def _role(called: ast.expr, names: Names) -> str | None:
    value = names.value(called)
    return next((role for function, role in _ROLES.items() if value is function), None)


def _turns(role: str, ways: Iterable[Conversation]) -> list[Conversation]:
    """The messages of a turn: neighbouring texts are one, and what is not known is taken for text."""
    found = []
    for parts in ways:
        blocks: list[SentMessage] = []
        runs = groupby(parts, key=lambda part: part.kind in ("text", "unknown"))
        for is_text, run in runs:
            messages = list(run)
            if is_text:
                known = all(message.kind == "text" for message in messages)
                blocks.append(SentMessage(role, "text" if known else "unknown", messages[0].node))
            else:
                blocks += (SentMessage(role, message.kind, message.node) for message in messages)
        found.append(tuple(blocks))
    return found


def _is_text(node: ast.expr, names: Names) -> bool:  # noqa: PLR0911 (a list of cases)
    match node:
        case ast.Constant(value=str()) | ast.JoinedStr():
            return True
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _is_text(left, names) and _is_text(right, names)
        case ast.Call(func=ast.Attribute(value=value, attr=attribute)) if attribute in TEXT_METHODS:
            return _is_text(value, names)
        case ast.Call(func=called):
            return _module_of(names.value(called)).startswith("promptkit.fragments")
        case ast.Name(id=name) if name in names.local:
            annotation = names.arguments.get(name)
            return name not in names.assigned and annotation is not None and _is_str(annotation, names)
        case ast.Name() | ast.Attribute():
            return isinstance(names.value(node), str)
    return False


def _is_str(annotation: ast.expr, names: Names) -> bool:
    match annotation:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *_])):
            return _is_str(inner, names)
    return names.value(annotation) is str


def _module_of(value: Any) -> str:
    return getattr(value, "__module__", None) or ""


def _assigned(name: str, names: Names) -> ast.expr | None:
    """The value of a local name that is assigned once, and not changed since."""
    is_changed = name in names.arguments or name in names.appended or name in names.untracked
    return None if is_changed else names.assigned_once(name)
