"""
Positions in authors' source files, for diagnostics to point at.

Files are read only once something is wrong, or by `promptkit check`.
"""

import ast
import linecache
import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from io import StringIO
from typing import Final, NamedTuple, TypeAlias, TypeVar

from promptkit.files.reading import MAX_SOURCE_BYTES

#: What ``def`` and ``async def`` make.
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

N = TypeVar("N", bound=ast.AST)

#: Nodes with a scope of their own, whose ``return`` and ``yield`` are not the function's.
SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)

#: Nodes that hold no others, and nearly half of a source.
_LEAVES: Final = (ast.Name, ast.Constant)


#: The text of the file that was read last, with the lines that it was made of.
_TEXTS: Final = dict[str, tuple[list[str], str]]()


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


def forget_sources() -> None:
    """
    Drop the sources that were read until now: the files may have changed.
    """
    _TEXTS.clear()
    for read in (_tree, _nodes_of, _own_nodes, _functions):
        read.cache_clear()


def text_of(file: str) -> str:
    """
    Return the text of a file; ``""`` if it cannot be read.
    """
    lines = _lines(file)
    known = _TEXTS.get(file)
    if known is None or known[0] is not lines:  # for each diagnostic, the same text is asked for again
        _TEXTS.clear()
        known = _TEXTS[file] = lines, "".join(lines)
    return known[1]


def _lines(file: str) -> list[str]:
    # A pipe or a device may never end, so it is not read. What does not exist, linecache may know.
    with suppress(OSError, ValueError):
        status = os.stat(file)
        if not (stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES):
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
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # as the file is now
        return None


def nodes_of(tree: ast.AST, *kinds: type[N]) -> list[N]:
    """
    Return the nodes of a syntax tree whose types are *kinds*, outer ones before those that they hold.
    """
    return [node for node in _nodes_of(tree) if isinstance(node, kinds)]


@lru_cache(maxsize=8)  # several lints look at one tree after the other
def _nodes_of(tree: ast.AST) -> list[ast.AST]:
    found = [tree]
    for node in found:
        found += nodes_below(node)
    return found


def own_nodes(function: ast.AST, *kinds: type[N]) -> list[N]:
    """
    Return the nodes in a function's body whose types are *kinds*, outside of inner functions and classes.
    """
    return [node for node in _own_nodes(function) if isinstance(node, kinds)]


@lru_cache(maxsize=64)
def _own_nodes(function: ast.AST) -> list[ast.AST]:
    body = getattr(function, "body", [])
    found = list[ast.AST]()
    ahead: list[ast.AST] = [body] if isinstance(body, ast.expr) else body[::-1]
    while ahead:
        found.append(node := ahead.pop())
        if not isinstance(node, SCOPES):
            ahead += reversed(nodes_below(node))
    return found


def nodes_below(node: ast.AST) -> list[ast.AST]:
    """
    Return the nodes that a node holds, but for operators and whether names are read: they hold nothing.
    """
    if isinstance(node, _LEAVES):
        return []
    found: list[ast.AST] = []
    for field in node._fields:
        value = getattr(node, field, None)
        if isinstance(value, list):
            found += [item for item in value if isinstance(item, ast.AST)]
        elif isinstance(value, ast.AST) and value._fields:
            found.append(value)
    return found


def plain_pieces(file: str, node: ast.JoinedStr) -> Iterator[str]:
    """
    Yield the plain strings that Python joins with the f-string beside them.
    """
    import tokenize

    last, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    segment = segment_of(file, (node.lineno, last, node.col_offset, end))
    depth = 0  # before Python 3.12, an f-string is one token
    for token in tokenize.generate_tokens(StringIO(f"({segment})").readline):
        kind = tokenize.tok_name[token.type]
        depth += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if kind == "STRING" and depth == 0 and not re.match("[rR]?[fF]", token.string):
            yield ast.literal_eval(token.string)


def segment_of(file: str, place: tuple[int, int, int, int]) -> str:
    """
    Return a piece of a file, ``""`` if the file has fewer lines.

    *place* is its first and last line, and its offsets there, as `ast` counts them.
    """
    first, last, start, end = place
    lines = _lines(file)[first - 1 : last]  # to take it out of the whole file would split all of it
    if len(lines) <= last - first:
        return ""
    here = ast.JoinedStr([], lineno=1, end_lineno=last - first + 1, col_offset=start, end_col_offset=end)
    return ast.get_source_segment("".join(lines), here) or ""


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


def parameters_of(function: Function | ast.Lambda) -> Iterator[ast.arg]:
    """
    Yield the parameters of a function.
    """
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from filter(None, (arguments.vararg, arguments.kwarg))
