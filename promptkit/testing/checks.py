"""The checks of ``pytest --promptkit``: diagnostics of the sources, and rendering of every prompt."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.cases import Case, is_refused
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import PromptError
from promptkit.language.messages import Workflow
from promptkit.lints.linter import Checks
from promptkit.loader.loader import load
from promptkit.loader.recipes import LoadedFile
from promptkit.loader.targets import Targets
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

Declared: TypeAlias = Prompt[..., Any] | Resource[..., Any]


class Checked(Struct, frozen=True):
    """
    The diagnostics of one prompt, or of a file outside its prompts.

    Args:
        name:
            The name of the prompt or of the file.

        line:
            The line where the prompt is defined; 0 for a file.

        findings:
            The diagnostics.

        compiled:
            The compiled prompt; None for a file, and for a prompt that does not compile.
    """

    name: str
    line: int
    findings: tuple[Diagnostic, ...]
    compiled: CompiledPrompt | None = None


class CheckedTarget:
    """
    The recipes of one load, imported once, with all diagnostics of their sources.

    Args:
        target:
            One or more targets, as accepted by ``promptkit check``.

        checks:
            The checks to run.

    Attributes:
        files:
            For each file, its own diagnostics and its prompts, in the order of their definitions.

    Raises:
        LoadError: If *target* does not exist.
    """

    def __init__(self, target: Targets, checks: Checks) -> None:
        recipes = load(target, cases=True)
        catalog = compiler.compile(recipes, lint=True)
        self._checks = checks
        self._served = {(prompt.name, prompt.location): prompt for prompt in catalog.prompts}
        self._diagnostics = checks.of_catalog(catalog)
        files = {loaded.file: loaded for loaded in recipes.by_file if loaded.file is not None}
        self.files = self._by_file(files, checks.without_ignored(self._diagnostics))

    def of_rendering(self, prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
        """Return the diagnostics of a rendering that the sources do not have."""
        return self._checks.without_ignored(
            self._checks.of_rendering(prompt, workflow, known=self._diagnostics)
        )

    def _by_file(
        self, files: dict[Path, LoadedFile], diagnostics: Iterable[Diagnostic]
    ) -> dict[Path, list[Checked]]:
        """Assign each diagnostic to its file or to the file that failed to import, or to the first file."""
        failed = {diagnostic: file for file, loaded in files.items() for diagnostic in loaded.diagnostics}
        by_file: dict[Path, list[Diagnostic]] = {file: [] for file in files}
        for diagnostic in diagnostics:
            path = Path(diagnostic.location.file)
            owner = failed.get(diagnostic) or (path if path in by_file else next(iter(by_file), None))
            if owner is not None:
                by_file[owner].append(diagnostic)
        return {file: list(self._checked(file, loaded, by_file[file])) for file, loaded in files.items()}

    def _checked(
        self, file: Path, loaded: LoadedFile, diagnostics: Iterable[Diagnostic]
    ) -> Iterator[Checked]:
        declared: list[Declared] = sorted(
            (*loaded.prompts, *loaded.resources), key=lambda declaration: declaration.location
        )
        by_declaration: dict[int, list[Diagnostic]] = defaultdict(list)
        for diagnostic in diagnostics:
            by_declaration[id(_owner(diagnostic, declared))].append(diagnostic)
        prompts = [
            (declaration, by_declaration.pop(id(declaration), []))
            for declaration in declared
            if isinstance(declaration, Prompt)
        ]
        if by_declaration:
            yield Checked(file.name, 0, tuple(chain.from_iterable(by_declaration.values())))
        for prompt, own_diagnostics in prompts:
            name, location = prompt.options.name, prompt.location
            yield Checked(name, location.line, tuple(own_diagnostics), self._served.get((name, location)))


def _owner(diagnostic: Diagnostic, declared: Sequence[Declared]) -> Declared | None:
    """Return the last declaration that starts above the diagnostic in the same file."""
    location = diagnostic.location
    above = [
        declaration
        for declaration in declared
        if declaration.location.file == location.file and declaration.location.line <= location.line
    ]
    return max(above, key=lambda declaration: declaration.location.line, default=None)


class CaseError(Exception):
    """A case with an unexpected outcome."""


class RenderingError(Exception):
    """
    A prompt failed to render or to encode; the cause is the original exception.

    Args:
        prompt:
            The prompt's name.

        arguments:
            The arguments as the client sent them.
    """

    def __init__(self, prompt: str, arguments: Mapping[str, str]) -> None:
        super().__init__(prompt, arguments)
        self.prompt = prompt
        self.arguments = dict(arguments)

    def __str__(self) -> str:
        return f"prompt {self.prompt!r} fails for {self.arguments!r}"


def check_examples(prompt: CompiledPrompt) -> list[Workflow]:
    """
    Render *prompt* with its examples, if they cover all required arguments, and with its defaults.

    Returns:
        The renderings. A prompt can reject its defaults with a `PromptError`.

    Raises:
        RenderingError: For the first arguments that fail to render.
    """
    rendered = []
    for arguments in prompt.arguments.example_texts:
        try:
            rendered.append(_render(prompt, arguments))
        except RenderingError as error:
            if arguments or not isinstance(error.__cause__, PromptError):
                raise
    return rendered


def check_case(prompt: CompiledPrompt, case: Case) -> Workflow | None:
    """
    Check that a case renders, or raises the error that its author expects.

    Returns:
        The rendering; None if the prompt raised the expected error.

    Raises:
        CaseError: If a client cannot send the case, or its outcome or error message is not the expected one.

        RenderingError: If it fails in any other way.
    """
    try:
        sent = case.sent()
    except TypeError as error:
        raise CaseError(str(error)) from None
    rendered: Workflow | None = None
    outcome: object
    try:
        outcome = rendered = _render(prompt, sent)
    except RenderingError as error:
        outcome = error.__cause__
        if not is_refused(outcome):
            raise
    if (mismatch := case.fault(outcome)) is not None:
        msg = f"prompt {prompt.name!r}: the case {case.name!r} {mismatch}"
        raise CaseError(Redactor.of(prompt.arguments, sent).redacted(msg))
    return rendered


def check_generated(prompt: CompiledPrompt) -> str | None:
    """
    Check that *prompt* renders generated arguments, or rejects them with a `PromptError`.

    The Hypothesis profile sets the number of examples. In continuous integration (``CI`` is set), every run
    generates the same examples.

    Returns:
        The last error message if the prompt rejected all arguments; None if it rendered any.

    Raises:
        RenderingError: For the simplest arguments that fail to render.

        ModuleNotFoundError: If Hypothesis is not installed.
    """
    from promptkit.testing.strategies import try_generated

    rendered, rejection = False, None

    def check(sent: dict[str, str]) -> None:
        nonlocal rendered, rejection
        try:
            _render(prompt, sent)
            rendered = True
        except RenderingError as error:
            if not isinstance(error.__cause__, PromptError):
                raise
            rejection = str(error.__cause__)

    # Hypothesis stores failures under this name, and derives its seed from it. It must be an identifier.
    check.__name__ = f"renders_{prompt.name.replace('-', '_')}"
    try_generated(prompt, check)
    return None if rendered else rejection


def _render(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Workflow:
    try:
        workflow = prompt.render(arguments)
        lowering_for(LATEST_HANDSHAKE).result(prompt, workflow)
    except Exception as error:
        raise RenderingError(prompt.name, arguments) from error
    return workflow
