"""Suppressions: ``# promptkit: ignore[PK311]`` takes back a finding about its line."""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Final

from msgspec import Struct

from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import nearest
from promptkit.errors.rules import IGNORABLE, Rule
from promptkit.errors.sources import nodes_of, text_of, tree_of

__all__ = ["lint_suppressions", "rule_of", "without_suppressed"]

_COMMENT: Final = re.compile(r"#\s*promptkit:\s*ignore\b(?:\[([^\]]*)\])?")

_NAME_CODES: Final = "name the codes that it is about, as in # promptkit: ignore[PK311]"


def rule_of(code: str) -> Rule:
    """
    Return the rule that is to be ignored.

    Args:
        code:
            Its code: ``PK311``.

    Raises:
        ValueError: If there is no such rule, or if it is an error: what an error concerns is not served,
            and somebody has to know why.
    """
    rules = {rule.value: rule for rule in Rule}
    if code not in rules:
        meant = nearest(code, sorted(rule.value for rule in IGNORABLE))
        msg = f"there is no code {code!r}" + (f"; did you mean {meant!r}?" if meant else "")
        raise ValueError(msg)
    if rules[code] not in IGNORABLE:
        msg = f"{code} is an error that cannot be ignored: mend what it is about"
        raise ValueError(msg)
    return rules[code]


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
    for comment in _comments(str(file)):
        for reason in map(_fault_of, comment.codes) if comment.codes else (_NAME_CODES,):
            if reason is not None:
                report.add(Rule.BAD_SUPPRESSION, "this comment has no effect", reason, comment.location)
    return report.found


def _fault_of(code: str) -> str | None:
    """Why a code cannot be ignored."""
    try:
        rule_of(code)
    except ValueError as error:
        return str(error)
    return None


class _Comment(Struct, frozen=True):
    """One comment: its codes, where it stands, and the lines that it is about."""

    codes: list[str]
    location: Location
    lines: range


def _suppressed(file: str) -> frozenset[tuple[int, str]]:
    """The lines of a file, and the codes that are ignored there."""
    return frozenset(
        (line, code) for comment in _comments(file) for line in comment.lines for code in comment.codes
    )


def _comments(file: str) -> Iterator[_Comment]:
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
            yield _Comment(codes, place, range(first.get(line, line), line + 1))
