"""
Positions in authors' source files, for diagnostics to point at.

Files are read only once something is wrong, or by `promptkit check`.
"""

import ast
import linecache
import os
import re
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import lru_cache
from io import StringIO
from itertools import chain
from typing import Final, NamedTuple, TypeAlias, TypeVar, cast

__all__ = [
    "Function",
    "Span",
    "function_at",
    "line_of",
    "names_in",
    "nodes_of",
    "own_nodes",
    "parameters_of",
    "plain_pieces",
    "span_at",
    "span_of",
    "span_of_part",
    "text_of",
    "tree_of",
]

#: What ``def`` and ``async def`` make.
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

N = TypeVar("N", bound=ast.AST)

#: Nodes by what they are, each with its position among all.
_ByKind: TypeAlias = dict[type[ast.AST], list[tuple[int, ast.AST]]]

#: Fields of nodes that hold a text, a number, an operator, or whether a name is read or written.
_LEAVES: Final = frozenset(
    ("arg", "attr", "conversion", "ctx", "id", "kind", "level", "module", "op", "ops", "type_comment")
)

#: By kind of node, the fields that may hold nodes.
_FIELDS: Final = {
    kind: tuple(field for field in kind._fields if field not in _LEAVES)
    for kind in vars(ast).values()
    if isinstance(kind, type) and issubclass(kind, ast.AST)
}

#: Nodes with a scope of their own, whose ``return`` and ``yield`` are not the function's.
_SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Span(NamedTuple):
    """
    A piece of a line: the line and both columns count from 1, in characters; *end* is the column behind it.
    """

    line: int
    column: int
    end: int


def line_of(file: str, line: int) -> str:
    """
    Return a line of a file, without its line end; ``""`` if the file has fewer lines.
    """
    lines = _lines(file)
    return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else ""


def function_at(file: str, line: int) -> Function | None:
    """
    Return the function that begins on *line*, decorators included, or None.
    """
    return _functions(text_of(file)).get(line)


def text_of(file: str) -> str:
    """
    Return the text of a file; ``""`` if it cannot be read.
    """
    return "".join(_lines(file))


def _lines(file: str) -> list[str]:
    # A pipe or a device may never end, so it is not read.
    try:
        is_special = not stat.S_ISREG(os.stat(file).st_mode)
    except (OSError, ValueError):  # linecache may know it all the same
        is_special = False
    if is_special:
        return []
    linecache.checkcache(file)
    return linecache.getlines(file)


def tree_of(file: str) -> ast.Module | None:
    """
    Return the syntax tree of a file, or None if it no longer parses.
    """
    return _tree(text_of(file))


@lru_cache(maxsize=2)  # a file's diagnostics are looked for one after the other
def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError):  # the file has changed since it was imported
        return None


def nodes_of(tree: ast.Module, *kinds: type[N]) -> list[N]:
    """
    Return the nodes of a syntax tree whose types are *kinds*, outer ones before those that they hold.
    """
    return _of_kinds(_nodes_of(tree), kinds)


@lru_cache(maxsize=2)
def _nodes_of(tree: ast.Module) -> _ByKind:
    return _by_kind(_with_below(tree))


def _with_below(top: ast.AST) -> list[ast.AST]:
    """Every node but operators and the like, which `ast.walk` would visit as well."""
    found = [top]
    for node in found:
        found += _below(node)
    return found


def names_in(expression: ast.expr) -> list[ast.Name]:
    """
    Return the names in an expression, outer ones before those that they hold.
    """
    return [node for node in _with_below(expression) if isinstance(node, ast.Name)]


def own_nodes(function: Function, *kinds: type[N]) -> list[N]:
    """
    Return the nodes in a function's body whose types are *kinds*, outside of inner functions and classes.
    """
    return _of_kinds(_own_nodes(function), kinds)


@lru_cache(maxsize=64)  # many lints look at one function after the other
def _own_nodes(function: Function) -> _ByKind:
    found, ahead = list[ast.AST](), list[ast.AST](reversed(function.body))
    while ahead:
        found.append(node := ahead.pop())
        if not isinstance(node, _SCOPES):
            ahead += reversed(_below(node))
    return _by_kind(found)


def _by_kind(nodes: Iterable[ast.AST]) -> _ByKind:
    found: _ByKind = defaultdict(list)
    for position, node in enumerate(nodes):
        found[type(node)].append((position, node))
    return dict(found)


def _of_kinds(nodes: _ByKind, kinds: tuple[type[N], ...]) -> list[N]:
    """The nodes of some kinds, in the order of all."""
    found = sorted(chain.from_iterable(nodes.get(kind, ()) for kind in kinds))
    return cast("list[N]", [node for _, node in found])


def _below(node: ast.AST) -> list[ast.AST]:
    """The nodes that a node holds."""
    found: list[ast.AST] = []
    for field in _FIELDS[type(node)]:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST):
            found.append(value)
    return found


def plain_pieces(file: str, node: ast.JoinedStr) -> Iterator[str]:
    """
    Yield the plain strings that Python joins with the f-string beside them.
    """
    import tokenize

    # To take it out of the whole file would split all of it.
    first, last = node.lineno, node.end_lineno or node.lineno
    here = ast.JoinedStr([], lineno=1, end_lineno=last - first + 1)
    here.col_offset, here.end_col_offset = node.col_offset, node.end_col_offset
    segment = ast.get_source_segment("".join(_lines(file)[first - 1 : last]), here) or ""
    depth = 0  # before Python 3.12, an f-string is one token
    for token in tokenize.generate_tokens(StringIO(f"({segment})").readline):
        kind = tokenize.tok_name[token.type]
        depth += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if kind == "STRING" and depth == 0 and not re.match("[rR]?[fF]", token.string):
            yield ast.literal_eval(token.string)


@lru_cache(maxsize=2)
def _functions(source: str) -> dict[int, Function]:
    """Return every function in *source* by the line on which it or its first decorator begins."""
    tree = _tree(source)
    functions: list[Function] = nodes_of(tree, ast.FunctionDef, ast.AsyncFunctionDef) if tree else []
    return {min(n.lineno for n in (node, *node.decorator_list)): node for node in functions}


def span_of(file: str, node: ast.stmt | ast.expr | ast.arg) -> Span:
    """
    Return where *node* stands; of several lines, the first one.
    """
    end = node.end_col_offset if node.end_lineno == node.lineno else None
    return span_at(file, node.lineno, node.col_offset, end)


def span_at(file: str, line: int, start: int, end: int | None) -> Span:
    """
    Return the span between two offsets of a line in UTF-8 bytes, as `ast` counts them.
    """
    data = line_of(file, line).encode(errors="surrogatepass")
    characters = [len(data[:offset].decode(errors="replace")) for offset in (start, end or len(data))]
    return Span(line, characters[0] + 1, max(characters) + 1)


def span_of_part(file: str, line: int, part: str) -> Span | None:
    """
    Return where the function that begins on *line* has one of its parts, or None.

    *part* is the name of a parameter, ``"return"`` for the return annotation, or ``"def"`` for
    the function's name.
    """
    function = function_at(file, line)
    if function is None:
        return None
    if part == "def":
        return _span_of_name(file, function)
    if part == "return":
        return span_of(file, function.returns) if function.returns else None
    found = (argument for argument in parameters_of(function) if argument.arg == part)
    return next((span_of(file, argument) for argument in found), None)


def _span_of_name(file: str, function: Function) -> Span:
    line = function.lineno
    found = re.search(rf"\bdef\s+({re.escape(function.name)})\b", line_of(file, line))
    return Span(line, found.start(1) + 1, found.end(1) + 1) if found else span_of(file, function)


def parameters_of(function: Function) -> Iterator[ast.arg]:
    """
    Yield the parameters of a function.
    """
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from filter(None, (arguments.vararg, arguments.kwarg))
