"""Meanings of enumeration members, which authors write as string literals below the members."""

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
    Return the meanings of an enumeration's members, keyed by member name. Members without one are omitted.

    Each meaning is on one line and has no final period. The source is read only once for each class.
    """
    if (meanings := _meanings.get(kind)) is None:
        meanings = _meanings[kind] = _parse_meanings(kind)
    return meanings


def _parse_meanings(kind: type[Enum]) -> Mapping[str, str]:
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    source = text_of(file) if file else ""
    starts = re.finditer(rf"^[ \t]*class[ \t]+{re.escape(kind.__name__)}\b", source, re.MULTILINE)
    for start in reversed(list(starts)):  # a later class replaces an earlier one with its name
        literals = _literals_in(source[start.start() :])
        if kind.__members__.keys() <= literals.keys():
            return {name: literals[name] for name in kind.__members__ if literals[name]}
    return {}


def _literals_in(source: str) -> dict[str, str]:
    """
    Return the string literal below each name in the class at the start of *source*; ``""`` if there is none.
    """
    try:  # parsing only the class is faster than parsing the whole file
        block = "".join(inspect.getblock(source.splitlines(keepends=True)))
        tree = ast.parse(f"if True:\n{block}" if block[0].isspace() else block)
    except (SyntaxError, ValueError, TokenError):  # the file has changed, or the match was inside a string
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
