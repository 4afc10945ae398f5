"""
Authors' source files: their text, their syntax trees, and positions in them for diagnostics.

Source files are read for only three purposes: to lint them in `promptkit check`, to locate diagnostics, and
to find the meanings that authors write below the members of enumerations.
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

#: The nodes of ``def`` and ``async def``.
Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

N = TypeVar("N", bound=ast.AST)

#: Nodes with their own scope, whose ``return`` and ``yield`` do not belong to the function around them.
SCOPES: Final = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class Span(NamedTuple):
    """A part of a line. Lines and columns (in characters) are counted from 1, and *end* is exclusive."""

    line: int
    column: int
    end: int


def read_line(file: str, line: int) -> str:
    """Return a line of a file, without its line ending; ``""`` if the file has fewer lines."""
    lines = _lines(file)
    return lines[line - 1].rstrip("\n") if 0 < line <= len(lines) else ""


def function_at(file: str, line: int) -> Function | None:
    """Return the function whose first line, including decorators, is *line*; None if there is none."""
    return _functions(text_of(file)).get(line)


def text_of(file: str) -> str:
    """Return the text of a file; ``""`` if it cannot be read."""
    return "".join(_lines(file))


def _lines(file: str) -> list[str]:
    # Pipes and devices can be endless, so they are not read. linecache may have the lines of a missing file.
    with suppress(OSError, ValueError):
        status = os.stat(file)
        if not (stat.S_ISREG(status.st_mode) and status.st_size <= MAX_SOURCE_BYTES):
            return []
    linecache.checkcache(file)
    return linecache.getlines(file)


def tree_of(file: str) -> ast.Module | None:
    """Return the syntax tree of a file; None if the file cannot be parsed."""
    return _tree(text_of(file))


@lru_cache(maxsize=2)  # the diagnostics of one file follow each other
def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):  # the file has changed
        return None


def nodes_of(tree: ast.AST, *kinds: type[N]) -> list[N]:
    """Return the nodes of the given types in a syntax tree, parents before their children."""
    return [node for node in _nodes_of(tree) if isinstance(node, kinds)]


@lru_cache(maxsize=8)  # several lints walk the same tree
def _nodes_of(tree: ast.AST) -> list[ast.AST]:
    return list(ast.walk(tree))


def own_nodes(function: ast.AST, *kinds: type[N]) -> list[N]:
    """Return the nodes of the given types in a function's body, but not in inner functions and classes."""
    return [node for node in _own_nodes(function) if isinstance(node, kinds)]


@lru_cache(maxsize=64)
def _own_nodes(function: ast.AST) -> list[ast.AST]:
    body = getattr(function, "body", [])
    nodes = list[ast.AST]()
    pending: list[ast.AST] = [body] if isinstance(body, ast.expr) else body[::-1]
    while pending:
        nodes.append(node := pending.pop())
        if not isinstance(node, SCOPES):
            pending += reversed(list(ast.iter_child_nodes(node)))
    return nodes


def plain_pieces(file: str, node: ast.JoinedStr) -> Iterator[str]:
    """Yield the plain string literals that Python joins with an adjacent f-string."""
    import tokenize

    last, end = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    segment = segment_of(file, (node.lineno, last, node.col_offset, end))
    depth = 0  # before Python 3.12, an f-string is one token
    for token in tokenize.generate_tokens(StringIO(f"({segment})").readline):
        kind = tokenize.tok_name[token.type]
        depth += (kind == "FSTRING_START") - (kind == "FSTRING_END")
        if kind == "STRING" and depth == 0 and not re.match("[rR]?[fF]", token.string):
            yield ast.literal_eval(token.string)


def segment_of(file: str, position: tuple[int, int, int, int]) -> str:
    """
    Return the source text at a position in a file; ``""`` if the file has fewer lines.

    *position* contains the first line, last line, start offset and end offset, as `ast` counts them.
    """
    first, last, start, end = position
    lines = _lines(file)[first - 1 : last]  # get_source_segment would split the whole file
    if len(lines) <= last - first:
        return ""
    located = ast.JoinedStr([], lineno=1, end_lineno=last - first + 1, col_offset=start, end_col_offset=end)
    return ast.get_source_segment("".join(lines), located) or ""


@lru_cache(maxsize=2)
def _functions(source: str) -> dict[int, Function]:
    """Return the functions in *source*, keyed by the line on which each one or its first decorator starts."""
    tree = _tree(source)
    functions: list[Function] = nodes_of(tree, ast.FunctionDef, ast.AsyncFunctionDef) if tree else []
    return {min(n.lineno for n in (node, *node.decorator_list)): node for node in functions}


def span_of(file: str, node: ast.stmt | ast.expr | ast.arg) -> Span:
    """Return the span of *node*, or its span on the first line if it has several lines."""
    end = node.end_col_offset if node.end_lineno == node.lineno else None
    return span_at(file, node.lineno, node.col_offset, end)


def span_at(file: str, line: int, start: int, end: int | None) -> Span:
    """
    Return the span between two offsets in a line. If *end* is None, the span extends to the end of the line.

    Offsets are in UTF-8 bytes, as in `ast`.
    """
    data = read_line(file, line).encode(errors="surrogatepass")
    characters = [len(data[:offset].decode(errors="replace")) for offset in (start, end or len(data))]
    return Span(line, characters[0] + 1, max(characters) + 1)


def span_of_part(file: str, line: int, part: str) -> Span | None:
    """
    Return the span of a part of the function that starts on *line*; None if there is no such part.

    *part* is the name of a parameter, ``"return"`` for the return annotation, or ``"def"`` for the function's
    name.
    """
    function = function_at(file, line)
    if function is None:
        return None
    if part == "def":
        return _span_of_name(file, function)
    if part == "return":
        return span_of(file, function.returns) if function.returns else None
    matching = (argument for argument in parameters_of(function) if argument.arg == part)
    return next((span_of(file, argument) for argument in matching), None)


def _span_of_name(file: str, function: Function) -> Span:
    line = function.lineno
    match = re.search(rf"\bdef\s+({re.escape(function.name)})\b", read_line(file, line))
    return Span(line, match.start(1) + 1, match.end(1) + 1) if match else span_of(file, function)


def parameters_of(function: Function | ast.Lambda) -> Iterator[ast.arg]:
    """Yield the parameters of a function."""
    arguments = function.args
    yield from (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    yield from filter(None, (arguments.vararg, arguments.kwarg))
