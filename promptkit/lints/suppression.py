"""
Suppression: which findings are not reported.

The configuration takes back all findings of a rule, and ``# promptkit: ignore[PK207]`` one about its line.
"""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Final

from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule, rule_of
from promptkit.errors.sources import nodes_of, text_of, tree_of

__all__ = ["lint_suppressions", "without_suppressed"]

_COMMENT: Final = re.compile(r"#\s*promptkit:\s*ignore\b(?:\[([^\]]*)\])?")

_NAME_CODES: Final = "name the codes that it is about, as in # promptkit: ignore[PK207]"


def without_suppressed(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return *diagnostics* without those that a comment on their line takes back."""
    suppressed = cache(_suppressed)
    return tuple(
        one
        for one in diagnostics
        if not one.is_ignorable or (one.location.line, one.rule.value) not in suppressed(one.location.file)
    )


def lint_suppressions(file: Path) -> list[Diagnostic]:
    """
    Return what is wrong with comments that name no code, or a code that cannot be ignored.

    Args:
        file:
            A recipe.
    """
    report = Report(file.name, Location(str(file)))
    for codes, place, _ in _comments(str(file)):
        for fault in filter(None, map(_fault_of, codes or [""])):
            report.add(Rule.BAD_SUPPRESSION, "this comment has no effect", fault, place)
    return report.found


def _fault_of(code: str) -> str | None:
    """Why a code cannot be ignored."""
    try:
        rule_of(code)
    except ValueError as error:
        return str(error) if code else _NAME_CODES
    return None


def _suppressed(file: str) -> set[tuple[int, str]]:
    """The lines of a file, and the codes that are ignored there."""
    return {each for codes, _, lines in _comments(file) for each in product(lines, codes)}


def _comments(file: str) -> Iterator[tuple[list[str], Location, range]]:
    """The comments in a file: the codes that each names, where it stands, and the lines that it is about."""
    text = text_of(file)
    if "promptkit:" not in text or (tree := tree_of(file)) is None:
        return
    # A comment behind a string of several lines is about all of them.
    strings = nodes_of(tree, ast.Constant, ast.JoinedStr)
    first = {node.end_lineno: node.lineno for node in strings if node.end_lineno != node.lineno}
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT and (found := _COMMENT.search(token.string)):
            line, column = token.start
            begin = column + found.start() + 1
            codes = [code.strip() for code in (found[1] or "").split(",") if code.strip()]
            place = Location(file, line, begin, begin + len(found[0]))
            yield codes, place, range(first.get(line, line), line + 1)
