"""Lints of commands: values of callers that a program may read as its options."""

import ast
from collections.abc import Iterator
from pathlib import PurePath
from typing import Final

from promptkit.errors.diagnostics import Report, Rule
from promptkit.errors.sources import nodes_of
from promptkit.lints.control_flow import choices_of
from promptkit.lints.name_resolution import Scope

__all__ = ["lint_command"]

#: Words behind which a program reads no options; git knows both.
_ENDS: Final = ("--", "--end-of-options")


def lint_command(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report parameters that stand in a command before the word behind which there are no options."""
    if not isinstance(node, ast.Call) or not _runs(node.func, scope):
        return
    words = [word.value if isinstance(word, ast.Constant) else None for word in node.args]
    end = next((word for word in words if word in _ENDS), None)
    for word in node.args[: words.index(end)] if end is not None else ():
        for name in _begins_with(word, scope):
            fault = f"{name!r} stands before {end!r} in a command, which may read its value as an option"
            hint = (
                "write '--end-of-options' before it, if the command knows that, as git does; "
                "or refuse such values: Annotated[str, msgspec.Meta(pattern='^[^-]')]"
            )
            report.add(Rule.READ_AS_OPTION, fault, hint, word)


def _runs(called: ast.expr, scope: Scope) -> bool:
    """Whether what is called is a function that runs a command. It is not imported for that."""
    value = scope.value(called)
    module, name = getattr(value, "__module__", None), getattr(value, "__name__", None)
    return module == "promptkit.workspace.commands" and name in ("run", "run_async")


def _begins_with(word: ast.expr, scope: Scope) -> Iterator[str]:
    """The parameters whose text a word may begin with."""
    match word:
        case ast.Name(name) if name in scope.arguments and not scope.stored[name]:
            if _is_any_text(scope.arguments[name], scope):
                yield name
        case ast.JoinedStr([ast.FormattedValue(inner), *_]) | ast.Starred(inner):
            yield from _begins_with(inner, scope)
    for choice in choices_of(word):
        yield from _begins_with(choice, scope)


def _is_any_text(annotation: ast.expr | None, scope: Scope) -> bool:
    """Whether a parameter takes text or paths, and no pattern says how they begin."""
    if annotation is None or any(note.arg == "pattern" for note in nodes_of(annotation, ast.keyword)):
        return False
    kinds = [scope.value(name) for name in nodes_of(annotation, ast.Name)]
    return any(kind is str or (isinstance(kind, type) and issubclass(kind, PurePath)) for kind in kinds)
