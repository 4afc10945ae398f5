"""The modules of promptkit and their source."""

import ast
from functools import cache
from pathlib import Path
from typing import Final

import promptkit

PACKAGE: Final = Path(promptkit.__file__).parent


def _module_name(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


#: Each module of the package by its dotted name.
MODULES: Final = {_module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


@cache
def tree_of(module: str) -> ast.Module:
    """Return the syntax tree of a module of the package."""
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))
