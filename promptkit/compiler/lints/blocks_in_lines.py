"""Lint for blocks of Markdown, such as a code fence, that an f-string puts into the middle of a line."""

import ast
from typing import Final

from promptkit.compiler.lints.names import Names
from promptkit.errors.diagnostics import Location, Report, Rule
from promptkit.errors.sources import Function, own_nodes, span_of
from promptkit.fragments.markdown import BLOCKS

__all__ = ["lint_blocks"]

#: Strings with holes; since Python 3.14, there are two kinds.
_STRINGS: Final = tuple(getattr(ast, kind) for kind in ("JoinedStr", "TemplateStr") if hasattr(ast, kind))

#: Stands for what fills a hole.
_HOLE: Final = "\0"


def lint_blocks(function: Function, names: Names, report: Report) -> None:
    """Report blocks that share a line of an f-string with text, or with one another."""
    for string in own_nodes(function, *_STRINGS):
        texts = [_text(part, names) for part in string.values]
        for i, part in enumerate(string.values):
            block = _block(part, names)
            before, after = "".join(texts[:i]).rpartition("\n")[2], "".join(texts[i + 1 :]).partition("\n")[0]
            # What fills a hole right beside the block may end, or begin, with the end of a line.
            shares = (before.strip() and before[-1] != _HOLE) or (after.strip() and after[0] != _HOLE)
            if block is not None and shares:
                report.add(
                    Rule.BLOCK_IN_LINE,
                    f"{block}(...) shares a line with other text, so that Markdown does not see it",
                    f"write a blank line between them, or user('...', {block}(...)), which does",
                    Location(report.location.file, *span_of(report.location.file, part.value)),
                )


def _text(part: ast.expr, names: Names) -> str:
    """What is known of the text of a part of an f-string: of a block, that it is not blank."""
    if isinstance(part, ast.Constant):
        return str(part.value)
    return _block(part, names) or _HOLE


def _block(part: ast.expr, names: Names) -> str | None:
    """The name of the fragment that fills a hole, if it is a block."""
    value = getattr(part, "value", None)
    if isinstance(value, ast.Name) and value.id not in names.arguments:
        value = names.assigned_once(value.id)
    made = names.value(value.func) if isinstance(value, ast.Call) else None
    return next((block.__name__ for block in BLOCKS if block is made), None)
