"""Suppressions: ``# promptkit: ignore[PK311]`` takes back a finding about its line."""

import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Final

from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.errors.exceptions import nearest
from promptkit.errors.rules import IGNORABLE, Rule
from promptkit.errors.sources import text_of

__all__ = ["lint_suppressions", "rule_of", "without_suppressed"]

_COMMENT: Final = re.compile(r"#\s*promptkit:\s*ignore\b(?:\[([^\]]*)\])?")

#: Since Python 3.12, an f-string is several tokens.
_FSTRING_START: Final = getattr(tokenize, "FSTRING_START", None)
_FSTRING_END: Final = getattr(tokenize, "FSTRING_END", None)


def rule_of(code: str) -> Rule:
    """
    Return the rule that is to be ignored.

    Args:
        code:
            Its code: ``PK311``.

    Raises:
        ValueError: If there is no such rule, or if it is an error: what an error concerns is not served,
            and somebody has to be told why.
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


def lint_suppressions(file: Path) -> Iterator[Diagnostic]:
    """
    Report comments that name no code, or a code that cannot be ignored.

    Args:
        file:
            A recipe.
    """
    for comment in _comments(str(file)):
        reasons = []
        for code in comment.codes:
            try:
                rule_of(code)
            except ValueError as error:
                reasons.append(str(error))
        if not comment.codes:
            reasons.append("name the codes that it is about, as in # promptkit: ignore[PK311]")
        for reason in reasons:
            message = f"{file.name}: this comment ignores nothing"
            yield Diagnostic(Rule.BAD_SUPPRESSION, message, reason, comment.location)


class _Comment:
    """One comment: its codes, where it stands, and the first line that it is about."""

    def __init__(self, file: str, token: tokenize.TokenInfo, found: re.Match[str], first: int) -> None:
        line, column = token.start
        begin = column + found.start() + 1
        self.codes = [code.strip() for code in (found[1] or "").split(",") if code.strip()]
        self.location = Location(file, line, begin, begin + len(found[0]))
        self.lines = range(first, line + 1)


def _suppressed(file: str) -> frozenset[tuple[int, str]]:
    """The lines of a file, and the codes that are ignored there."""
    return frozenset(
        (line, code) for comment in _comments(file) for line in comment.lines for code in comment.codes
    )


def _comments(file: str) -> Iterator[_Comment]:
    text = text_of(file)
    if "promptkit:" not in text:
        return
    # A comment behind a string of several lines is about all of them: no comment can stand inside.
    first: dict[int, int] = {}
    opened: list[int] = []
    try:
        for token in tokenize.generate_tokens(StringIO(text).readline):
            begin, end = token.start[0], token.end[0]
            if token.type == _FSTRING_START:
                opened.append(begin)
            elif token.type == _FSTRING_END:
                begin = opened.pop()
            if end > begin and token.type in (tokenize.STRING, _FSTRING_END):
                first[end] = first.get(begin, begin)
            if token.type == tokenize.COMMENT and (found := _COMMENT.search(token.string)):
                yield _Comment(file, token, found, first.get(begin, begin))
    except (tokenize.TokenError, SyntaxError):  # importing the file has reported that
        return
