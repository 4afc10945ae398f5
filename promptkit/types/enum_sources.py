"""Meanings of enumeration members: the string literals below them in the source."""

import ast
import inspect
import re
import sys
from collections.abc import Mapping
from enum import Enum
from itertools import pairwise
from tokenize import TokenError
from typing import Final
from weakref import WeakKeyDictionary

from promptkit.errors.sources import text_of

_meanings: Final[WeakKeyDictionary[type[Enum], Mapping[str, str]]] = WeakKeyDictionary()


def meanings_of(kind: type[Enum]) -> Mapping[str, str]:
    """
    Return the meaning of each member that has one, on one line without a final period, by member name.

    The source is read once for each class.
    """
    if (meanings := _meanings.get(kind)) is None:
        meanings = _meanings[kind] = _read_meanings(kind)
    return meanings


def _read_meanings(kind: type[Enum]) -> Mapping[str, str]:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    source = text_of(file) if file else ""
    starts = re.finditer(rf"^[ \t]*class[ \t]+{re.escape(kind.__name__)}\b", source, re.MULTILINE)
    for start in reversed(list(starts)):  # a later class replaces an earlier one with its name
        literals = _literals_in(source[start.start() :])
        if kind.__members__.keys() <= literals.keys():
            return {name: literals[name] for name in kind.__members__ if literals[name]}
    return {}


def _literals_in(source: str) -> dict[str, str]:
    """Return the literal below each name in the class that starts *source*; ``""`` for names without one."""
    try:  # parsing only the class is faster than parsing its file
        block = "".join(inspect.getblock(source.splitlines(keepends=True)))
        tree = ast.parse(f"if True:\n{block}" if block[0].isspace() else block)
    except (SyntaxError, ValueError, TokenError):  # the file has changed, or the class is in a string
        return {}
    definitions = (node for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    body = next((definition.body for definition in definitions), [])
    literals = dict[str, str]()
    for statement, following in pairwise((*body, ast.Pass())):
        match statement, following:
            case ast.Assign([ast.Name(name)]), ast.Expr(ast.Constant(str(text))):
                literals[name] = " ".join(text.split()).removesuffix(".")
            case ast.Assign([ast.Name(name)]), _:
                literals[name] = ""
    return literals
