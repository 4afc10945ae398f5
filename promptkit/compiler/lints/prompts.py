"""Lints of one prompt: its body, its docstring, its annotations and its examples."""

import ast
import inspect
import re
import sys
from reprlib import repr as short_repr
from typing import Any, Final

from promptkit.catalog.arguments import Argument, Arguments
from promptkit.compiler.docstrings import read_descriptions
from promptkit.compiler.lints.messages import Source, lint_messages
from promptkit.compiler.lints.unsendable_values import lint_values
from promptkit.compiler.prompts import Prompt
from promptkit.conversion.annotations import FORWARD, annotations_of, notes_of, resolved
from promptkit.conversion.kinds import fits
from promptkit.conversion.unstructuring import text_of
from promptkit.errors.diagnostics import Diagnostic, Location, Report, Rule
from promptkit.errors.exceptions import ArgumentErrors, nearest
from promptkit.errors.sources import Function, function_at, line_of, own_nodes, span_of

__all__ = ["lint_prompt"]

#: Packages whose notes in ``Annotated`` are for other frameworks.
_OTHER_FRAMEWORKS: Final = ("pydantic", "annotated_types", "typer")


def lint_prompt(prompt: Prompt[..., Any], arguments: Arguments | None) -> tuple[Diagnostic, ...]:
    """
    Return probable mistakes in a prompt.

    Args:
        prompt:
            The prompt.

        arguments:
            Its compiled arguments, if it can be served.
    """
    report = Report(f"prompt {prompt.options.name!r}", prompt.location)
    if (source := Source.of(prompt.function, prompt.location)) is not None:
        _lint_body(source.syntax, report)
        if arguments is not None:
            lint_values(source.syntax, source.names, report)
            lint_messages(source, report)
    _lint_docstring(prompt, report)
    _lint_notes(prompt, report)
    for argument in arguments.ordered if arguments else ():
        _lint_examples(argument, report)
    return tuple(report.without_duplicates())


def _lint_body(function: Function, report: Report) -> None:
    """Report a function that never returns or yields anything, unless it always raises."""
    if _returns_something(function):
        return
    place = report.location
    last = function.body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.Call | ast.JoinedStr | ast.BinOp):
        at: Location | str = Location(place.file, *span_of(place.file, last))
        remedy = "put 'return' in front of this line"
        if _prints(last):
            remedy = "return the text: no client sees what is printed"
    else:
        at, remedy = "def", "return text or messages, or yield them"
    report.add(Rule.SAYS_NOTHING, "it never returns or yields anything", remedy, at)


def _prints(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
            return True
    return False


def _returns_something(function: Function) -> bool:
    """Whether a function yields, returns something, or always raises."""
    if own_nodes(function, ast.Yield, ast.YieldFrom):
        return True
    if not all(_is_none(node.value) for node in own_nodes(function, ast.Return)):
        return True
    return _raises(function.body)


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _raises(body: list[ast.stmt]) -> bool:
    """Whether a body always raises, judging by its last statement."""
    match body[-1:]:
        case [ast.Raise()]:
            return True
        case [ast.If(body=then, orelse=otherwise)]:
            return _raises(then) and _raises(otherwise)
        case [ast.With(body=inner) | ast.AsyncWith(body=inner)]:
            return _raises(inner)
        case [ast.Try(body=inner, handlers=handlers, orelse=otherwise)]:
            return _raises(otherwise or inner) and all(_raises(handler.body) for handler in handlers)
    return False


def _lint_docstring(prompt: Prompt[..., Any], report: Report) -> None:
    described = read_descriptions(prompt.function.__doc__)
    parameters = inspect.signature(prompt.function, **FORWARD).parameters if described else {}
    for name in described:
        if name in parameters:
            continue
        meant = nearest(name, parameters)
        report.add(
            Rule.STRAY_DESCRIPTION,
            f"the docstring describes {name!r}, which is not a parameter",
            f"did you mean {meant!r}?" if meant else "take it out of the docstring, or add the parameter",
            _in_docstring(name, report.location),
        )


def _in_docstring(name: str, place: Location) -> Location:
    """Where the docstring of the function at *place* describes *name*."""
    function = function_at(place.file, place.line)
    first = function.body[0] if function else None
    if first is None or first.end_lineno is None:
        return place
    described = re.compile(rf"^\s*(?:[:@]\w+\s+(?:[^:]*\s)?)?(?:[\w*]+,\s*)*\**({re.escape(name)})\b")
    for line in range(first.lineno, first.end_lineno + 1):
        if found := described.match(line_of(place.file, line)):
            return Location(place.file, line, found.start(1) + 1, found.end(1) + 1)
    return place


def _lint_notes(prompt: Prompt[..., Any], report: Report) -> None:
    """Report what ``Annotated`` holds for another framework: promptkit does not read it."""
    if sys.modules.keys().isdisjoint(_OTHER_FRAMEWORKS):
        return
    function = inspect.unwrap(prompt.function)
    for name, annotation in annotations_of(function).items():
        try:
            notes = notes_of(resolved(annotation, function, prompt.names))
        except Exception:  # noqa: BLE001, S112 (compiling it has reported that)
            continue
        for note in notes:
            module = type(note).__module__.partition(".")[0]
            if name != "return" and module in _OTHER_FRAMEWORKS:
                report.add(
                    Rule.FOREIGN_NOTE,
                    f"parameter {name!r} has {type(note).__name__}(...) of {module}, which is not read",
                    "describe it with Arg('...'), and limit it with msgspec.Meta(ge=..., pattern=..., ...)",
                    name,
                )


def _lint_examples(argument: Argument, report: Report) -> None:
    """Report examples and completions that the parameter would refuse."""
    complete = argument.arg.complete
    completions = complete if isinstance(complete, list | tuple) else ()
    for kind, values in (("example", argument.arg.examples), ("completion", completions)):
        for value in values:
            if not _is_accepted(argument, value):
                shown = kind if argument.arg.secret else f"{kind} {short_repr(value)}"
                report.add(
                    Rule.BAD_EXAMPLE,
                    f"parameter {argument.name!r} would refuse its {shown}",
                    f"give what it takes: {argument.reader.expected}",
                    argument.name,
                )


def _is_accepted(argument: Argument, value: Any) -> bool:
    """Whether a client could send *value*, or the text of it."""
    if value is None:
        return fits(value, argument.annotation)
    try:
        sent = text_of(value) if fits(value, argument.annotation) else value
        Arguments("", (argument,)).read({argument.name: sent})
    except ArgumentErrors:
        return False
    except TypeError:  # it cannot be written as text, so it cannot be checked
        return True
    return True
