"""What ``pytest --promptkit`` checks: what is found in the sources, and how the prompts render."""

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
    What is found in a prompt, or in a file outside of its prompts.

    Args:
        name:
            The name of the prompt, or of the file.

        line:
            Where the prompt is defined in its file; 0 for a file.

        findings:
            What is wrong.

        compiled:
            What is served of the prompt; None if it cannot be, and for a file.
    """

    name: str
    line: int
    findings: tuple[Diagnostic, ...]
    compiled: CompiledPrompt | None = None


class CheckedTarget:
    """
    The recipes at a target, or at several, imported once, with all that is found in their sources.

    Args:
        target:
            As for ``promptkit check``.

        checks:
            What is looked for.

    Attributes:
        files:
            What is checked of each file: what is wrong outside of its prompts, and its prompts in the order
            of their definitions.

    Raises:
        LoadError: If there is nothing at *target*.
    """

    def __init__(self, target: Targets, checks: Checks) -> None:
        recipes = load(target, cases=True)
        catalog = compiler.compile(recipes, lint=True)
        self._checks = checks
        self._served = {(one.name, one.location): one for one in catalog.prompts}
        self._found = checks.of_catalog(catalog)
        files = {loaded.file: loaded for loaded in recipes.by_file if loaded.file is not None}
        self.files = self._by_file(files, checks.without_ignored(self._found))

    def of_rendering(self, prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
        """
        Return what is found in a rendering, and was not found in the sources.
        """
        return self._checks.without_ignored(self._checks.of_rendering(prompt, workflow, known=self._found))

    def _by_file(
        self, files: dict[Path, LoadedFile], findings: Iterable[Diagnostic]
    ) -> dict[Path, list[Checked]]:
        """Give each finding to the file that it is in, or that cannot be imported; else to the first."""
        failed = {found: file for file, loaded in files.items() for found in loaded.diagnostics}
        shares: dict[Path, list[Diagnostic]] = {file: [] for file in files}
        for found in findings:
            place = Path(found.location.file)
            owner = failed.get(found) or (place if place in shares else next(iter(shares), None))
            if owner is not None:
                shares[owner].append(found)
        return {file: list(self._checked(file, loaded, shares[file])) for file, loaded in files.items()}

    def _checked(self, file: Path, loaded: LoadedFile, findings: Iterable[Diagnostic]) -> Iterator[Checked]:
        declared: list[Declared] = sorted((*loaded.prompts, *loaded.resources), key=lambda one: one.location)
        shares: dict[int, list[Diagnostic]] = defaultdict(list)
        for found in findings:
            shares[id(_owner(found, declared))].append(found)
        prompts = [(one, shares.pop(id(one), [])) for one in declared if isinstance(one, Prompt)]
        if shares:
            yield Checked(file.name, 0, tuple(chain.from_iterable(shares.values())))
        for prompt, share in prompts:
            name, location = prompt.options.name, prompt.location
            yield Checked(name, location.line, tuple(share), self._served.get((name, location)))


def _owner(finding: Diagnostic, declared: Sequence[Declared]) -> Declared | None:
    """Return what a finding is about: the last declaration that begins above it, in its file."""
    place = finding.location
    above = [one for one in declared if one.location.file == place.file and one.location.line <= place.line]
    return max(above, key=lambda one: one.location.line, default=None)


class CaseError(Exception):
    """A case that is not what its author expects."""


class RenderingError(Exception):
    """
    A prompt that cannot be rendered, or sent; its cause is what was raised.

    Args:
        prompt:
            The prompt's name.

        arguments:
            What a client has sent.
    """

    def __init__(self, prompt: str, arguments: Mapping[str, str]) -> None:
        super().__init__(prompt, arguments)
        self.prompt = prompt
        self.arguments = dict(arguments)

    def __str__(self) -> str:
        return f"prompt {self.prompt!r} fails for {self.arguments!r}"


def check_examples(prompt: CompiledPrompt) -> list[Workflow]:
    """
    Check that *prompt* renders for its author's examples, if they are all that it needs, and its defaults.

    Returns:
        What it has rendered to. It may refuse its defaults with a `PromptError`: nobody has asked for them.

    Raises:
        RenderingError: For the first that it does not render for.
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
    Check that a case is rendered, or is refused if its author expects so.

    Returns:
        What it has rendered to; None if it was refused.

    Raises:
        CaseError: If no client can send it, it is refused and should not be, or the other way round, or in
            other words.

        RenderingError: If it fails in another way.
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
    if (fault := case.fault(outcome)) is not None:
        msg = f"prompt {prompt.name!r}: the case {case.name!r} {fault}"
        raise CaseError(Redactor.of(prompt.arguments, sent).redacted(msg))
    return rendered


def check_generated(prompt: CompiledPrompt) -> str | None:
    """
    Check that *prompt* renders for arguments that hypothesis makes up, or tells people what is wrong.

    How many are tried is for hypothesis's profile to say. Where continuous integration runs (``CI`` is
    set) they are the same each time.

    Returns:
        What it has refused with last, if it has rendered for none; None if it has rendered.

    Raises:
        RenderingError: For the simplest that it does not render for.

        ModuleNotFoundError: If hypothesis is not installed.
    """
    from promptkit.testing.strategies import try_generated

    rendered, refusal = False, None

    def renders(sent: dict[str, str]) -> None:
        nonlocal rendered, refusal
        try:
            _render(prompt, sent)
            rendered = True
        except RenderingError as error:
            if not isinstance(error.__cause__, PromptError):
                raise
            refusal = str(error.__cause__)

    # Hypothesis keeps failures by it, and seeds chance with it. It takes names of Python's alone.
    renders.__name__ = f"renders_{prompt.name.replace('-', '_')}"
    try_generated(prompt, renders)
    return None if rendered else refusal


def _render(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Workflow:
    try:
        workflow = prompt.render(arguments)
        lowering_for(LATEST_HANDSHAKE).result(prompt, workflow)
    except Exception as error:
        raise RenderingError(prompt.name, arguments) from error
    return workflow
