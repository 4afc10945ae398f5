"""
The linter, which lints files, catalogs and renderings, and drops diagnostics that authors have suppressed.

Authors suppress diagnostics with comments, or with the settings in `Checks`.
"""

import ast
import re
import tokenize
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from io import StringIO
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.markdown_prompts import MarkdownPrompt
from promptkit.declarations.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Location, Report
from promptkit.errors.rules import Rule, find_ignorable_rule
from promptkit.errors.sources import nodes_of, span_of, text_of, tree_of
from promptkit.language.files import FilledTextFile
from promptkit.language.messages import Workflow
from promptkit.lints.clients import lint_client, lint_workflow
from promptkit.lints.files import lint_source
from promptkit.lints.markdown import lint_markdown
from promptkit.lints.placeholders import lint_text_files
from promptkit.lints.prompts import lint_first_message, lint_prompt, with_lints
from promptkit.lints.skills import lint_skill
from promptkit.loader.recipes import Declaration, LoadedFile

_COMMENT: Final = re.compile(r"#\s*promptkit:\s*ignore\b(?:\[([^\]]*)\])?")

_MISSING_CODE_HINT: Final = "name the codes to ignore, for example # promptkit: ignore[PK207]"


class _Comment(Struct, frozen=True):
    """
    A comment that suppresses diagnostics.

    Args:
        location:
            The location of the comment.

        codes:
            The codes in the comment.

        lines:
            The lines that the comment applies to: its own line, and all lines of a string that ends there.
    """

    location: Location
    codes: tuple[str, ...]
    lines: range

    def suppresses(self, diagnostic: Diagnostic, call: range) -> bool:
        """
        Return whether the comment suppresses a diagnostic.

        *call* contains the lines of the innermost call around the diagnostic.
        """
        is_in_range = diagnostic.location.line in self.lines or self.location.line in call
        return is_in_range and diagnostic.is_ignorable and diagnostic.rule.value in self.codes


def without_suppressed(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return *diagnostics*, except those that a comment on their line or within their call suppresses."""
    return tuple(diagnostic for diagnostic in diagnostics if not _is_suppressed(diagnostic))


def _is_suppressed(diagnostic: Diagnostic) -> bool:
    comments = _find_comments(diagnostic.location.file)
    call = _lines_of_call(diagnostic.location) if comments else range(0)
    return any(comment.suppresses(diagnostic, call) for comment in comments)


def _lines_of_call(location: Location) -> range:
    """Return the lines of the innermost call that contains a location; an empty range if there is none."""
    tree, line = tree_of(location.file), location.line
    calls = [
        call
        for call in ([] if tree is None else nodes_of(tree, ast.Call))
        if call.lineno <= line <= (call.end_lineno or line)
        and span_of(location.file, call)[:2] <= (line, location.column)
    ]
    ranges = [range(call.lineno, (call.end_lineno or call.lineno) + 1) for call in calls]
    return min(ranges, key=len, default=range(0))


def lint_suppressions(file: Path) -> list[Diagnostic]:
    """
    Return diagnostics for suppression comments that have no code, or a code that cannot be ignored.
    """
    report = Report(file.name, Location(str(file)))
    for comment in _find_comments(str(file)):
        for hint in filter(None, map(_suppression_error, comment.codes or [""])):
            report.add(Rule.BAD_SUPPRESSION, "this comment has no effect", hint, comment.location)
    return report.diagnostics


def _suppression_error(code: str) -> str | None:
    """Return the reason why a code cannot be ignored; None if it can be."""
    try:
        find_ignorable_rule(code)
    except ValueError as error:
        return str(error) if code else _MISSING_CODE_HINT
    return None


def _find_comments(file: str) -> list[_Comment]:
    """Return the suppression comments of a file."""
    return _parse_comments(file, text_of(file))


@lru_cache(maxsize=256)  # the diagnostics of one file follow each other
def _parse_comments(file: str, text: str) -> list[_Comment]:
    if "promptkit:" not in text or (tree := tree_of(file)) is None:
        return []
    # A comment after a string of several lines applies to all of them.
    strings = nodes_of(tree, ast.Constant, ast.JoinedStr)
    first = {node.end_lineno: node.lineno for node in strings if node.end_lineno != node.lineno}
    comments = []
    for token in tokenize.generate_tokens(StringIO(text).readline):
        if token.type == tokenize.COMMENT and (match := _COMMENT.search(token.string)):
            line, column = token.start
            start = column + match.start() + 1
            codes = tuple(code.strip() for code in (match[1] or "").split(",") if code.strip())
            location = Location(file, line, start, start + len(match[0]))
            comments.append(_Comment(location, codes, range(first.get(line, line), line + 1)))
    return comments


def lint_file(loaded: LoadedFile, declarations: Iterable[Declaration]) -> Iterator[Diagnostic]:
    """
    Yield probable mistakes in one file.

    Args:
        loaded:
            The imported file.

        declarations:
            The compiled declarations of the file.
    """
    for declaration in declarations:
        compiled: Any = declaration.compiled
        if isinstance(declaration.definition, MarkdownPrompt):
            if compiled is not None:
                yield from lint_markdown(declaration.definition, compiled.arguments)
        elif isinstance(declaration.definition, Prompt):
            arguments = compiled.arguments if isinstance(compiled, CompiledPrompt) else None
            with suppress(RecursionError):  # the source may be nested too deeply
                yield from lint_prompt(declaration.definition, arguments)
        elif declaration.key[0] == "skill" and compiled is not None:
            yield from lint_skill(compiled)
    if loaded.file is not None and loaded.file.suffix == ".py":
        with suppress(RecursionError):
            yield from lint_source(loaded.file)
        yield from lint_suppressions(loaded.file)


def lint_catalog(catalog: Catalog) -> Catalog:
    """Return *catalog* with the diagnostics that depend on several files, and without suppressed ones."""
    catalog = with_lints(catalog)
    return catalog.with_diagnostics(without_suppressed(catalog.diagnostics))


class Checks(Struct, frozen=True):
    """
    The configured checks.

    Args:
        clients:
            The target clients, which the prompts must suit, by the names that commands accept.

        ignore:
            The codes of diagnostics to ignore.
    """

    clients: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()

    def lint_catalog(self, catalog: Catalog) -> tuple[Diagnostic, ...]:
        """
        Return the diagnostics of a catalog that was compiled with lints, and those for the target clients.
        """
        by_client = (diagnostic for client in self.clients for diagnostic in lint_client(client, catalog))
        return (*catalog.diagnostics, *by_client)

    def lint_rendering(
        self,
        prompt: CompiledPrompt,
        workflow: Workflow,
        texts: Iterable[FilledTextFile] = (),
        known: Iterable[Diagnostic] = (),
    ) -> tuple[Diagnostic, ...]:
        """
        Return the diagnostics of a rendering, and those for the target clients.

        Args:
            prompt:
                The prompt.

            workflow:
                The rendering.

            texts:
                The text files that the prompt has read.

            known:
                Diagnostics of the source. They are not reported again, because their locations are more
                precise.
        """
        known_messages = {(diagnostic.rule, diagnostic.message) for diagnostic in known}
        report = Report(f"prompt {prompt.name!r}", prompt.location)
        lint_text_files(texts, report)
        diagnostics = [*lint_first_message(prompt, workflow), *report.without_duplicates()]
        for client in self.clients:
            diagnostics += lint_workflow(client, prompt, workflow)
        return tuple(each for each in diagnostics if (each.rule, each.message) not in known_messages)

    def without_ignored(self, diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
        """
        Return the diagnostics without duplicates, and without those that settings or comments ignore.
        """
        distinct = dict.fromkeys(diagnostics)
        return without_suppressed(each for each in distinct if each.rule.value not in self.ignore)
