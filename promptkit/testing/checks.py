"""What ``pytest --promptkit`` checks: what is found in the sources, and how the prompts render."""

import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.checks import Checks
from promptkit.compiler.loading.loader import load
from promptkit.compiler.prompts import Prompt
from promptkit.compiler.recipes import LoadedFile
from promptkit.compiler.resources import Resource
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import PromptError
from promptkit.language.messages import Workflow
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

__all__ = [
    "CheckedFile",
    "CheckedPrompt",
    "CheckedTarget",
    "RenderingError",
    "check_examples",
    "check_generated",
]

Declared: TypeAlias = Prompt[..., Any] | Resource[..., Any]


class CheckedPrompt(Struct, frozen=True):
    """
    A prompt, and what is found in it.

    Args:
        name:
            Its name.

        line:
            Where it is defined in its file.

        compiled:
            What is served of it; None if it cannot be.

        findings:
            What is wrong with it.
    """

    name: str
    line: int
    compiled: CompiledPrompt | None
    findings: tuple[Diagnostic, ...]


class CheckedFile(Struct, frozen=True):
    """
    A file of recipes, and what is found in it.

    Args:
        prompts:
            Its prompts, in the order of their definitions.

        findings:
            What is wrong outside of its prompts.
    """

    prompts: tuple[CheckedPrompt, ...]
    findings: tuple[Diagnostic, ...]


class CheckedTarget:
    """
    The recipes at a target, imported once, with all that is found in their sources.

    Args:
        target:
            As for ``promptkit check``.

        checks:
            What is looked for.

    Raises:
        LoadError: If there is nothing at *target*.
    """

    def __init__(self, target: str, checks: Checks) -> None:
        recipes = load(target)
        catalog = compiler.compile(recipes, lint=True)
        self._checks = checks
        self._served = {(one.name, one.location): one for one in catalog.prompts}
        self._found = checks.of_catalog(catalog)
        files = {loaded.file: loaded for loaded in recipes.by_file if loaded.file is not None}
        self.files = self._by_file(files, checks.kept(self._found))

    def of_rendering(self, prompt: CompiledPrompt, workflow: Workflow) -> tuple[Diagnostic, ...]:
        """
        Return what is found in a rendering, and was not found in the sources.
        """
        return self._checks.kept(self._checks.of_rendering(prompt, workflow, known=self._found))

    def _by_file(
        self, files: dict[Path, LoadedFile], findings: Iterable[Diagnostic]
    ) -> dict[Path, CheckedFile]:
        """Give each finding to the file that it is in, or that cannot be imported; else to the first."""
        failed = {found: file for file, loaded in files.items() for found in loaded.diagnostics}
        shares: dict[Path, list[Diagnostic]] = {file: [] for file in files}
        for found in findings:
            place = Path(found.location.file)
            owner = failed.get(found) or (place if place in shares else next(iter(shares), None))
            if owner is not None:
                shares[owner].append(found)
        return {file: self._checked(loaded, shares[file]) for file, loaded in files.items()}

    def _checked(self, loaded: LoadedFile, findings: Iterable[Diagnostic]) -> CheckedFile:
        declared: list[Declared] = sorted((*loaded.prompts, *loaded.resources), key=lambda one: one.location)
        shares: dict[int, list[Diagnostic]] = defaultdict(list)
        for found in findings:
            shares[id(_owner(found, declared))].append(found)
        prompts = [one for one in declared if isinstance(one, Prompt)]
        checked = tuple(self._checked_prompt(one, shares.pop(id(one), [])) for one in prompts)
        return CheckedFile(checked, tuple(found for share in shares.values() for found in share))

    def _checked_prompt(self, prompt: Prompt[..., Any], findings: Iterable[Diagnostic]) -> CheckedPrompt:
        name, location = prompt.options.name, prompt.location
        return CheckedPrompt(name, location.line, self._served.get((name, location)), tuple(findings))


def _owner(finding: Diagnostic, declared: Sequence[Declared]) -> Declared | None:
    """Return what a finding is about: the last declaration that begins above it, in its file."""
    place = finding.location
    above = [one for one in declared if one.location.file == place.file and one.location.line <= place.line]
    return max(above, key=lambda one: one.location.line, default=None)


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


def check_generated(prompt: CompiledPrompt) -> str | None:
    """
    Check that *prompt* renders for arguments that hypothesis makes up, or tells people what is wrong.

    How many are tried is for hypothesis's profile to say. Where continuous integration runs (``CI`` is
    set) they are the same each time.

    Returns:
        What it has told people last, if it has rendered for none; None if it has rendered.

    Raises:
        RenderingError: For the simplest that it does not render for.

        ModuleNotFoundError: If hypothesis is not installed.
    """
    from promptkit.testing.strategies import wire_arguments

    strategy = wire_arguments(prompt)
    from hypothesis import HealthCheck, given, settings

    rendered, told = False, None

    def renders(sent: dict[str, str]) -> None:
        nonlocal rendered, told
        try:
            _render(prompt, sent)
            rendered = True
        except RenderingError as error:
            if not isinstance(error.__cause__, PromptError):
                raise
            told = str(error.__cause__)

    renders.__name__ = prompt.name  # hypothesis keeps failures by it, and seeds chance with it
    checks = settings(
        deadline=None,
        derandomize=settings().derandomize or "CI" in os.environ,
        report_multiple_bugs=False,
        print_blob=False,
        suppress_health_check=list(HealthCheck),
    )
    checks(given(strategy)(renders))()
    return None if rendered else told


def _render(prompt: CompiledPrompt, arguments: Mapping[str, str]) -> Workflow:
    try:
        workflow = prompt.render(arguments)
        lowering_for(LATEST_HANDSHAKE).result(prompt, workflow)
    except Exception as error:
        raise RenderingError(prompt.name, arguments) from error
    return workflow
