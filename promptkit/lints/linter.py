"""Runs the lints, on files and on compiled prompts, and leaves out what a comment suppresses."""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import cache
from io import StringIO
from itertools import product
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.compiled import Declaration
from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule, rule_of
from promptkit.errors.sources import nodes_of, text_of, tree_of
from promptkit.language.messages import Workflow
from promptkit.lints.clients import lint_client, lint_workflow
from promptkit.lints.files import lint_source
from promptkit.lints.prompts import lint_first_message, lint_prompt, with_lints
from promptkit.lints.skills import lint_skill
from promptkit.loader.recipes import LoadedFile

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


def lint_file(loaded: LoadedFile, declarations: Iterable[Declaration]) -> Iterator[Diagnostic]:
    """
    Yield what is probably not meant in one file.

    Args:
        loaded:
            What was imported from the file.

        declarations:
            What it declares, compiled.
    """
    for declaration in declarations:
        compiled: Any = declaration.compiled
        if isinstance(declaration.definition, Prompt):
            arguments = compiled.arguments if isinstance(compiled, CompiledPrompt) else None
            with suppress(RecursionError):  # a source may be nested more deeply than lints can follow
                yield from lint_prompt(declaration.definition, arguments)
        elif declaration.key[0] == "skill" and compiled is not None:
            yield from lint_skill(compiled)
    if loaded.file is not None and loaded.file.suffix == ".py":
        with suppress(RecursionError):
            yield from lint_source(loaded.file)
        yield from lint_suppressions(loaded.file)


def lint_catalog(catalog: Catalog) -> Catalog:
    """Return *catalog* with what is probably not meant in all files together, less what comments suppress."""
    catalog = with_lints(catalog)
    return catalog.with_diagnostics(without_suppressed(catalog.diagnostics))


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
        said = {(one.rule, one.message) for one in known}
        found = [*lint_first_message(prompt, workflow)]
        found += (one for client in self.clients for one in lint_workflow(client, prompt, workflow))
        return tuple(one for one in found if (one.rule, one.message) not in said)

    def kept(self, found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return what is not ignored, by the configuration or on its line, each once."""
        return without_suppressed(one for one in dict.fromkeys(found) if one.rule.value not in self.ignore)
