"""
Checks: what a project wants found in its prompts, by ``promptkit check`` and by ``pytest --promptkit``.

The configuration takes back all findings of a rule, and ``# promptkit: ignore[PK311]`` one about its line.
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

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.exceptions import nearest
from promptkit.errors.rules import IGNORABLE, Rule
from promptkit.errors.sources import nodes_of, text_of, tree_of
from promptkit.language.messages import Workflow

__all__ = ["Checks", "lint_suppressions", "rule_of", "without_suppressed"]

# Lints are imported where they are used: most commands use none.

_COMMENT: Final = re.compile(r"#\s*promptkit:\s*ignore\b(?:\[([^\]]*)\])?")

_NAME_CODES: Final = "name the codes that it is about, as in # promptkit: ignore[PK311]"


class Checks(Struct, frozen=True):
    """
    What is looked for, and what is passed over.

    Args:
        clients:
            The clients that the prompts are meant for, by the names that commands take.

        ignore:
            The codes of findings that are not reported.
    """

    clients: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def of_catalog(self, catalog: Catalog) -> tuple[Diagnostic, ...]:
        """
        Return all that is wrong with a catalog that was compiled with lints, and what clients lose of it.
        """
        if not self.clients:
            return catalog.diagnostics
        from promptkit.compiler.lints.clients import lint_client

        lost = (found for client in self.clients for found in lint_client(client, catalog))
        return (*catalog.diagnostics, *lost)

    def of_rendering(
        self, prompt: CompiledPrompt, workflow: Workflow, known: Iterable[Diagnostic] = ()
    ) -> tuple[Diagnostic, ...]:
        """
        Return all that is wrong with a rendering, and what clients lose of it.

        Args:
            prompt:
                The prompt.

            workflow:
                What it has rendered to.

            known:
                What was found in sources, which show a better place for the same.
        """
        from promptkit.compiler.lints.clients import lint_workflow
        from promptkit.compiler.lints.prompts import lint_first_message

        said = {(one.rule, one.message) for one in known}
        found = [*lint_first_message(prompt, workflow)]
        found += (one for client in self.clients for one in lint_workflow(client, prompt, workflow))
        return tuple(one for one in found if (one.rule, one.message) not in said)

    def kept(self, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return what is not ignored, by the configuration or on its line, each once."""
        return without_suppressed(one for one in dict.fromkeys(found) if one.rule.value not in self.ignore)


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
    rule = next((rule for rule in Rule if rule.value == code), None)
    if rule is None:
        meant = nearest(code, sorted(rule.value for rule in IGNORABLE))
        hint = f"; did you mean {meant!r}?" if meant else ": write one that promptkit check prints"
        msg = f"there is no code {code!r}{hint}"
        raise ValueError(msg)
    if rule not in IGNORABLE:
        msg = f"{code} is an error that cannot be ignored: mend what it is about"
        raise ValueError(msg)
    return rule


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
