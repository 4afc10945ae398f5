"""Names that nothing defines, found as Python itself looks them up: by its bytecode."""

import ast
import builtins
import dis
import sys
from collections.abc import Iterable, Iterator
from types import CodeType
from typing import Final

from promptkit.errors.sources import nodes_of

__all__ = ["undefined_names"]

#: What looks a name up in the module, and then among Python's own; in the body of a class, in that first.
_LOADS: Final = ("LOAD_GLOBAL", "LOAD_NAME")


def undefined_names(
    tree: ast.Module, defined: Iterable[str], code: CodeType | None = None
) -> Iterator[tuple[str, int, int]]:
    """
    Return each name that would be an error once it is looked up.

    Args:
        tree:
            A module. What its import runs has been looked up by then, and may be found as well.

        defined:
            The names that it has after its import.

        code:
            What its import has executed, if that is known: to compile it again takes long.

    Returns:
        Each name with its line, counted from 1, and its column, counted in bytes from 0.
    """
    known = {*vars(builtins), *defined}
    # To look at instructions takes long, so it is done only where there is another name.
    codes = [below for below in _codes(_whole(tree, code)) if not known.issuperset(below.co_names)]
    if not codes:
        return iter(())
    known.update(name for code in codes for name in _named(code, "STORE_GLOBAL"))
    expected = _expected(tree)
    found = (place for code in codes for place in _looked_up(code, known))
    # Of a `finally`, there is code for each way to it.
    return (place for place in dict.fromkeys(found) if place[1:] not in expected)


def _whole(tree: ast.Module, executed: CodeType | None) -> CodeType:
    """The code of a module, with the names that assertions look up: they are left out with ``python -O``."""
    if executed is not None and sys.flags.optimize == 0:
        return executed
    code: CodeType = compile(tree, "", "exec", dont_inherit=True, optimize=0)
    return code


def _looked_up(code: CodeType, known: set[str]) -> Iterator[tuple[str, int, int]]:
    """Where *code* looks up a name that is neither known nor its own."""
    known = known.union(_named(code, "STORE_NAME"))
    for step in dis.get_instructions(code):
        place = step.positions
        if step.opname in _LOADS and step.argval not in known and place is not None:
            yield step.argval, place.lineno or code.co_firstlineno, place.col_offset or 0


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of all functions, and of classes, but not of annotations that are evaluated on demand."""
    for inner in code.co_consts:
        if isinstance(inner, CodeType) and inner.co_name != "__annotate__":
            yield inner
            yield from _codes(inner)


def _named(code: CodeType, instruction: str) -> Iterator[str]:
    return (step.argval for step in dis.get_instructions(code) if step.opname == instruction)


def _expected(tree: ast.Module) -> set[tuple[int, int]]:
    """Where a name may be missing, as the error is caught."""
    return {
        (node.lineno, node.col_offset)
        for guard in nodes_of(tree, ast.Try)
        if any(map(_catches, guard.handlers))
        for statement in guard.body
        for node in ast.walk(statement)
        if isinstance(node, ast.Name)
    }


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    return any(isinstance(node, ast.Name) and node.id == "NameError" for node in ast.walk(handler.type))
