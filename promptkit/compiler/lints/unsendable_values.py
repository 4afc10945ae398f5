"""Lint of values that a prompt returns or yields and no message can hold, as far as its source shows."""

import ast
import inspect
from collections.abc import Iterator
from typing import Any, Final

from promptkit.compiler.lints.names import Names
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.resources import Resource
from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.sources import Function, own_nodes, span_of
from promptkit.language.return_remedies import remedy_for
from promptkit.language.validation import is_role_tuple

__all__ = ["lint_values"]

#: The value of an expression that is not known before it runs.
_UNKNOWN: Final = object()

#: How diagnostics name the kinds of values.
_KINDS: Final = {
    dict: "a dict",
    list: "a list",
    type(iter(())): "a generator",
    set: "a set",
    bytes: "bytes",
    int: "a number",
    float: "a number",
    bool: "True",
}


def lint_values(function: Function, names: Names, report: Report) -> None:
    """
    Report what a prompt returns, yields or gives to a turn that is not text, content or a message.

    Functions that it calls are not followed.

    Args:
        function:
            The syntax of the prompt's function.

        names:
            What its names stand for.

        report:
            Receives the diagnostics.
    """
    file = report.location.file
    for verb, node in _sent_expressions(function, names):
        for found, kind, remedy in _unsendable(node, names, is_part=verb is None):
            place = Location(file, *span_of(file, found))
            said = f"it {verb} {kind}" if verb else f"a part is {kind}"
            report.add(Rule.UNSENDABLE_VALUE, f"{said}, which no message can hold", remedy, place)


def _sent_expressions(function: Function, names: Names) -> Iterator[tuple[str | None, ast.expr]]:
    """What is returned, what is yielded, and (without a verb) the parts of turns."""
    for node in own_nodes(function, ast.Return, ast.Yield, ast.Call):
        match node:
            case ast.Return(value=ast.expr() as value):
                yield "returns", value
            case ast.Yield(value=ast.expr() as value):
                yield "yields", value
            case ast.Call(func=called, args=args) if _is_turn(called, names):
                for value in args:
                    yield None, value


def _is_turn(called: ast.expr, names: Names) -> bool:
    value = names.value(called)
    return getattr(value, "__module__", "") == "promptkit.language.turns"


def _unsendable(node: ast.expr, names: Names, *, is_part: bool) -> Iterator[tuple[ast.expr, str, str]]:
    """The expressions in *node* that no message can hold, what they are, and what to write."""
    node, items = _assigned(node, names)
    if not is_part:
        for item in items:
            yield from _unsendable(item, names, is_part=False)
    match node:
        case ast.IfExp(body=then, orelse=otherwise):
            below = [then, otherwise]
        case ast.BoolOp(values=values):
            below = values[-1:]
        case ast.List(elts=items) if not is_part:
            below = items
        case ast.Tuple(elts=items) if not is_part and not is_role_tuple(_sketch(node, names)):
            below = items
        case ast.ListComp(elt=item) | ast.GeneratorExp(elt=item) if not is_part:
            below = [item]
        case _:
            value = _sketch(node, names)
            is_unpacked = isinstance(value, list) and not is_part
            if (kind := _kind(value)) is not None and not is_unpacked:
                yield node, kind, remedy_for(value)
            return
    for expression in below:
        yield from _unsendable(expression, names, is_part=is_part)


def _assigned(node: ast.expr, names: Names) -> tuple[ast.expr, list[ast.expr]]:
    """The literal that a local name stands for if it has one value, and what is appended to it."""
    if not isinstance(node, ast.Name) or node.id in names.arguments:
        return node, []
    value = names.assigned_once(node.id)
    if isinstance(value, ast.Dict | ast.DictComp | ast.List | ast.Tuple | ast.Set | ast.SetComp | ast.Call):
        return value, names.appended.get(node.id, [])
    return node, []


def _sketch(node: ast.expr, names: Names) -> Any:  # noqa: C901, PLR0911 (a list of cases)
    """A value of the kind that an expression stands for, as far as its source shows that."""
    match node:
        case ast.Constant(value=value):
            return value
        case ast.JoinedStr():
            return ""
        case ast.Dict(keys=keys):
            shown = [key.value if isinstance(key, ast.Constant) else _UNKNOWN for key in keys]
            values = (item.value if isinstance(item, ast.Constant) else _UNKNOWN for item in node.values)
            return dict(zip(shown, values, strict=True))
        case ast.DictComp():
            return {}
        case ast.Set() | ast.SetComp():
            return set()
        case ast.Tuple(elts=items):
            return tuple(_sketch(item, names) for item in items)
        case ast.List() | ast.ListComp():
            return []
        case ast.GeneratorExp():
            return iter(())
        case ast.Lambda():
            return lambda: None
        case ast.Name(id=name) if name in names.arguments and name not in names.assigned:
            return _of_type(names.arguments[name], names)
        case ast.Name() | ast.Attribute():
            value = names.value(node)
            return _UNKNOWN if value is None else value
        case ast.Call(func=called):
            made = names.value(called)
            return _Coroutine() if _is_async(made) else _empty(made)
    return _UNKNOWN


def _empty(kind: Any) -> Any:
    """An empty value of a type that cannot be sent, or as a list may not be."""
    return kind() if kind in (int, float, bytes, dict, set, list) else _UNKNOWN


def _of_type(annotation: ast.expr | None, names: Names) -> Any:
    """A value of a parameter's type, if that type cannot be sent."""
    match annotation:
        case ast.Subscript(value=ast.Name(id="Annotated"), slice=ast.Tuple(elts=[inner, *_])):
            return _of_type(inner, names)
        case ast.Subscript(value=kind):
            return _of_type(kind, names)
        case ast.Name() | ast.Attribute():
            return _empty(names.value(annotation))
    return _UNKNOWN


class _Coroutine:
    """Stands for the result of an ``async def`` function that is not awaited."""

    def __await__(self) -> Iterator[None]:
        yield None


def _is_async(function: Any) -> bool:
    return callable(function) and inspect.iscoroutinefunction(inspect.unwrap(function))


def _kind(value: Any) -> str | None:
    """What *value* is called, if no message can hold it."""
    if value is _UNKNOWN or value is None or value is False or isinstance(value, str):
        return None
    if isinstance(value, tuple):
        turn = "a pair of strings" if len(value) == 2 else "a tuple that begins with a role"
        return turn if is_role_tuple(value) else "a tuple"
    if isinstance(value, Prompt | Resource):
        return (
            f"the {'prompt' if isinstance(value, Prompt) else 'resource'} {value.function.__name__!r} itself"
        )
    if isinstance(value, _Coroutine):
        return "a coroutine"
    if inspect.isroutine(value) or isinstance(value, type):
        return f"{getattr(value, '__name__', 'a function')!r} itself"
    return next((kind for known, kind in _KINDS.items() if type(value) is known), None)
