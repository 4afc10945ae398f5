"""Prompts that are not served, as their file is no recipe by its name."""

import ast
from pathlib import Path
from typing import Final

from promptkit.errors.diagnostics import Diagnostic, Location, Rule, printable
from promptkit.errors.sources import Function, tree_of

__all__ = ["unserved_prompts"]

_DECORATORS: Final = frozenset({"prompt", "resource"})


def unserved_prompts(path: str) -> Diagnostic | None:
    """
    Return what to say of a file that is no recipe by its name; None if it has no prompts, or tests besides.
    """
    if (tree := tree_of(path)) is None or any(map(_is_test, tree.body)):
        return None
    first = next(filter(_is_prompt, tree.body), None)
    if not isinstance(first, Function):
        return None
    file = Path(path)
    why = "is a package's own file" if file.name == "__init__.py" else "is pytest's by its name"
    return Diagnostic(
        Rule.NOT_SERVED,
        printable(f"{first.name!r} is not served: {file.name} {why}"),
        printable(f"rename the file to {_served_name(file, first.name)}, or move its prompts to such a file"),
        Location(path, first.lineno),
    )


def _is_test(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.ClassDef):
        return statement.name.startswith("Test")
    return isinstance(statement, Function) and statement.name.startswith("test") and not _is_prompt(statement)


def _is_prompt(statement: ast.stmt) -> bool:
    return isinstance(statement, Function) and any(map(_makes_prompt, statement.decorator_list))


def _makes_prompt(decorator: ast.expr) -> bool:
    made = decorator.func if isinstance(decorator, ast.Call) else decorator
    return getattr(made, "attr", getattr(made, "id", None)) in _DECORATORS


def _served_name(file: Path, function: str) -> str:
    """A name for *file* that has none of what keeps it from being served."""
    own = file.stem.removeprefix("test_").removesuffix("_test")
    stem = function if own in {"", "__init__", "conftest"} else own
    return f"{stem}_prompts.py" if file.with_name(f"{stem}.py").exists() else f"{stem}.py"
