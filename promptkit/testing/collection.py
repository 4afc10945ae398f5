"""
Test collection for ``pytest --promptkit``: the choice of recipes, and a test for each of their prompts.

The test of a prompt requires that its source has no diagnostics, and that the prompt renders.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from msgspec import Struct

from promptkit import compiler
from promptkit.catalog.cases import Case, is_refused
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.catalog.redaction import Redactor
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.compiler.configuration import find_configuration, find_targets
from promptkit.declarations.prompts import Prompt
from promptkit.declarations.resources import Resource
from promptkit.errors.diagnostics import Diagnostic, Location, Owner
from promptkit.errors.exceptions import INPUT_ERRORS, LoadError, PromptError, PromptkitError
from promptkit.errors.rules import Rule
from promptkit.errors.tracebacks import format_exception
from promptkit.language.files import FilledTextFile, collecting, filled_text_files
from promptkit.language.messages import Workflow
from promptkit.lints.linter import Checks
from promptkit.loader.discovery import (
    holds_recipes,
    holds_skills,
    is_markdown,
    is_recipe,
    mentions_prompts,
)
from promptkit.loader.loader import load
from promptkit.loader.recipes import LoadedFile
from promptkit.loader.targets import Targets, find_markdown, is_markdown_target, split_target, with_path
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE

_CATALOGS: Final = pytest.StashKey[dict[tuple[str, ...], Catalog]]()


def configured_catalog(config: pytest.Config, project: Path) -> Catalog:
    """Return the catalog of a project's targets, compiled only once. If there are none, fail the test."""
    catalogs = config.stash.setdefault(_CATALOGS, {})
    try:
        targets = targets_for(config, project)
        if targets not in catalogs:
            catalogs[targets] = compiler.compile(targets)
    except PromptkitError as error:
        pytest.fail(str(error), pytrace=False)
    return catalogs[targets]


def targets_for(config: pytest.Config, *projects: Path) -> tuple[str, ...]:
    """
    Return the configured targets; if there are none, return the default folder with recipes.

    Search *projects* first, then the folder where pytest was started, and then pytest's root folder.

    Raises:
        PromptkitError: If there are no targets, or if the configuration is invalid.
    """
    for folder in (*projects, config.invocation_params.dir):
        with suppress(LoadError):
            return find_targets(folder)
    return find_targets(config.rootpath)


def add_targets(config: pytest.Config) -> None:
    """
    Store the targets of this run, and make pytest collect the configured ones.

    Files and folders on the command line become targets if they contain recipes. Targets that are configured
    in these folders are added.

    Raises:
        UsageError: If there are no targets, if a configured target is a module, or if the configuration is
            invalid.
    """
    try:
        configured_checks(config)
        if config.args_source is pytest.Config.ArgsSource.ARGS:
            config.option.promptkit_targets = [(target,) for target in _find_named_targets(config)]
            return
        targets = tuple(_targets_in_files(config))
    except PromptkitError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.promptkit_targets = [targets]  # configured targets are loaded together
    collected = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
    paths = map(_target_path, targets)
    config.args += [str(path) for path in paths if not any(map(path.is_relative_to, collected))]


def configured_checks(config: pytest.Config) -> Checks:
    """Return the configured checks, from the folder where pytest was started or from pytest's root folder."""
    configuration = find_configuration(config.invocation_params.dir)
    configured = configuration if configuration.file else find_configuration(config.rootpath)
    return Checks(configured.clients, configured.ignore)


def _targets_in_files(config: pytest.Config) -> Iterator[str]:
    for target in targets_for(config):
        if not _target_path(target).exists():
            msg = (
                f"--promptkit accepts files and folders, but {target!r} is a module: use the folder "
                "that contains it"
            )
            raise pytest.UsageError(msg)
        yield _resolve_target(target)


def _find_named_targets(config: pytest.Config) -> Iterator[str]:
    """Yield the targets that the command line names, and the targets of projects in folders that it names."""
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        if path.is_dir():
            configured = _configured_targets(path)
            yield from configured
            is_configured = any(_target_path(target).is_relative_to(path) for target in configured)
            if not is_configured and (holds_recipes(str(path)) or holds_skills(str(path))):
                yield str(path)
        elif is_markdown(path.name) or (is_recipe(path.name) and mentions_prompts(str(path))):
            yield str(path)


def _configured_targets(folder: Path) -> list[str]:
    with suppress(LoadError):  # the folder has no targets
        # Targets that are modules are skipped, because they have no path.
        return [_resolve_target(target) for target in find_targets(folder) if _target_path(target).exists()]
    return []


def _resolve_target(target: str) -> str:
    return with_path(target, str(Path(split_target(target)[0]).resolve()))


def _target_path(target: str) -> Path:
    """Return the file or folder of a target without its ``:object``; for a pattern, the folder to search."""
    if is_markdown_target(target) and not Path(target).is_file():
        return Path(find_markdown(target)[0])
    return Path(split_target(target)[0]).resolve()


#: A function that returns the diagnostics of a rendering, given the text files that the prompt has read.
RenderingCheck: TypeAlias = Callable[
    [CompiledPrompt, Workflow, Sequence[FilledTextFile]], tuple[Diagnostic, ...]
]


class CheckResult(Struct, frozen=True):
    """
    The diagnostics for a prompt, for a skill's case, or for the rest of a file.

    Args:
        name:
            The name of the prompt, the case or the file.

        line:
            The line of the definition; 0 for a file.

        diagnostics:
            The diagnostics. If there are any, the test fails.

        compiled:
            The compiled prompt; None for a case, a file, or a prompt that does not compile.
    """

    name: str
    line: int
    diagnostics: Sequence[Diagnostic]
    compiled: CompiledPrompt | None = None


class CheckedFiles(Struct, frozen=True):
    """
    Recipes that were imported together, with all diagnostics of their sources.

    Args:
        by_path:
            For each file, the results of the file itself and of its prompts, in the order of the definitions.

        check_rendering:
            Returns the diagnostics of a rendering, except those already known from its source.
    """

    by_path: Mapping[Path, Sequence[CheckResult]]
    check_rendering: RenderingCheck


def check_files(targets: Targets, checks: Checks) -> CheckedFiles:
    """
    Check the recipes in one or more targets.

    Each diagnostic is assigned to the file that failed to import, to the file of its location, or otherwise
    to the first file.

    Args:
        targets:
            One or more targets, as for ``promptkit check``.

        checks:
            The checks to run.

    Raises:
        LoadError: If a target does not exist.
    """
    recipes = load(targets, cases=True)
    catalog = compiler.compile(recipes, lint=True)
    known = checks.lint_catalog(catalog)
    files = {loaded.file: loaded for loaded in recipes.by_file if loaded.file is not None}
    failed = {diagnostic: file for file, loaded in files.items() for diagnostic in loaded.diagnostics}
    by_file: dict[Path, list[Diagnostic]] = {file: [] for file in files}
    case_diagnostics: list[Diagnostic] = []  # a case and its skill can be in different files
    for diagnostic in checks.without_ignored(known) if files else ():
        path = failed.get(diagnostic, Path(diagnostic.location.file))
        is_about_case = diagnostic.rule is Rule.SKILL_CASE_FAILS
        file_diagnostics = by_file.get(path, next(iter(by_file.values())))
        (case_diagnostics if is_about_case else file_diagnostics).append(diagnostic)
    served = {(prompt.name, prompt.location): prompt for prompt in catalog.prompts}
    results: dict[Path, list[CheckResult]] = {}
    for file, loaded in files.items():
        skills = [skill for skill in catalog.skills if Path(skill.location.file) == file]
        results[file] = [
            *_declaration_results(loaded, file.name, by_file[file], served),
            *_case_results(skills, case_diagnostics),
        ]
    return CheckedFiles(results, make_rendering_check(checks, known))


def make_rendering_check(checks: Checks, known: Sequence[Diagnostic]) -> RenderingCheck:
    """Return a function that finds the diagnostics of a rendering, except those in *known*."""

    def check(
        prompt: CompiledPrompt, workflow: Workflow, texts: Sequence[FilledTextFile]
    ) -> tuple[Diagnostic, ...]:
        return checks.without_ignored(checks.lint_rendering(prompt, workflow, texts, known))

    return check


def _declaration_results(
    loaded: LoadedFile,
    filename: str,
    diagnostics: Iterable[Diagnostic],
    served: Mapping[tuple[str, Location], CompiledPrompt],
) -> Iterator[CheckResult]:
    """
    Yield the result for a file, if it has its own diagnostics, and the result for each of its prompts.

    Diagnostics of resources are assigned to the file. A diagnostic without an owner is assigned to the last
    declaration above it in the same file.
    """
    declared: list[Prompt[..., Any] | Resource[..., Any]] = [*loaded.prompts, *loaded.resources]
    declared.sort(key=lambda declaration: declaration.location)
    by_owner: dict[Owner | None, Prompt[..., Any] | Resource[..., Any]] = {
        _create_owner(declaration, loaded): declaration for declaration in declared
    }
    by_prompt: dict[int, list[Diagnostic]] = {id(prompt): [] for prompt in loaded.prompts}
    file_diagnostics: list[Diagnostic] = []
    for diagnostic in diagnostics:
        file, line = diagnostic.location.file, diagnostic.location.line
        above = [each for each in declared if each.location.file == file and each.location.line <= line]
        own = by_owner.get(diagnostic.owner, above[-1] if above else None)
        by_prompt.get(id(own), file_diagnostics).append(diagnostic)
    if file_diagnostics:
        yield CheckResult(filename, 0, file_diagnostics)
    for prompt in declared:
        if isinstance(prompt, Prompt):
            name, location = loaded.name_of(prompt), prompt.location
            yield CheckResult(name, location.line, by_prompt[id(prompt)], served.get((name, location)))


def _case_results(
    skills: Iterable[CompiledSkill], diagnostics: Sequence[Diagnostic]
) -> Iterator[CheckResult]:
    """Yield a result for each case of *skills*."""
    for skill in skills:
        owner = Owner(f"skill {skill.name!r}", skill.location)
        for case in skill.saved():
            failures = [
                each
                for each in diagnostics
                if (each.owner, each.location) == (owner, case.location) and repr(case.name) in each.message
            ]
            yield CheckResult(f"{skill.name}[{case.name}]", case.location.line, failures)


def _create_owner(declaration: Prompt[..., Any] | Resource[..., Any], loaded: LoadedFile) -> Owner:
    """Return the owner for diagnostics about a declaration."""
    if isinstance(declaration, Prompt):
        return Owner(f"prompt {loaded.name_of(declaration)!r}", declaration.location)
    return Owner(f"resource {declaration.name!r}", declaration.location)


class CheckError(Exception):
    """A test has diagnostics, as in ``promptkit check``, or a case has an unexpected outcome."""


class RenderingError(Exception):
    """
    A prompt failed to render, or its rendering could not be encoded. The ``__cause__`` is the original error.

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
        The renderings. A prompt is allowed to reject its defaults with a `PromptError`, unless the error is
        about an image, audio or text that comes from its author.

    Raises:
        RenderingError: For the first arguments with which the prompt fails to render.
    """
    rendered = []
    for arguments in prompt.arguments.example_texts:
        try:
            rendered.append(_render(prompt, arguments))
        except RenderingError as error:
            cause = error.__cause__
            if arguments or not isinstance(cause, PromptError) or isinstance(cause, INPUT_ERRORS):
                raise
    return rendered


def check_case(prompt: CompiledPrompt, case: Case) -> Workflow | None:
    """
    Check that a case renders, or that it raises the error that its author expects.

    Returns:
        The rendering; None if the prompt raised the expected error.

    Raises:
        CheckError: If a client cannot send the case, or if its result or its error message is unexpected.

        RenderingError: If the case fails in any other way.
    """
    try:
        sent = case.sent()
    except TypeError as error:
        raise CheckError(str(error)) from None
    rendered: Workflow | None = None
    outcome: object
    try:
        outcome = rendered = _render(prompt, sent)
    except RenderingError as error:
        outcome = error.__cause__
        if not is_refused(outcome):
            raise
    if (mismatch := case.mismatch(outcome)) is not None:
        msg = f"prompt {prompt.name!r}: the case {case.name!r} {mismatch}"
        raise CheckError(Redactor.of(prompt.arguments, sent).redacted(msg))
    return rendered


def check_generated(prompt: CompiledPrompt) -> str | None:
    """
    Check that *prompt* renders generated arguments, or rejects them with a `PromptError`.

    The Hypothesis profile sets the number of examples. In continuous integration (``CI`` is set), every run
    generates the same examples.

    Returns:
        The last error message if the prompt rejected all arguments; None if it rendered with any of them.

    Raises:
        RenderingError: For the simplest arguments with which the prompt fails to render.

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

    # Hypothesis stores failures under this name, which must be an identifier, and derives its seed from it.
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


_CHECKED: Final = pytest.StashKey[dict[tuple[str, ...], CheckedFiles]]()


def recipe_file(path: Path, parent: pytest.Collector) -> "RecipeFile | None":
    """Return the collector for the prompts in *path*; None if *path* is not in a target of this run."""
    resolved, groups = path.resolve(), parent.config.option.promptkit_targets
    targets = next(
        (targets for targets in groups if any(map(resolved.is_relative_to, map(_target_path, targets)))), None
    )
    if targets is None:
        return None
    has_recipes = path.name == SKILL_FILE or is_markdown(path.name) or any(map(is_markdown_target, targets))
    if path.suffix == ".md" and not has_recipes:
        return None
    return RecipeFile.from_parent(parent, path=path, targets=tuple(targets))


class CheckedFile(pytest.File):
    """A collected file whose tests are not functions in that file."""

    def report_to_syrupy(self) -> None:
        """Report the file to syrupy, which looks for unused snapshots only of modules and reported files."""
        collect_module = getattr(getattr(self.config, "_syrupy", None), "collect_module", None)
        if collect_module is not None:
            collect_module(self.path)

    def make_item(self, name: str, test: Callable[..., None], line: int) -> "PromptItem":
        """Return the pytest item that runs *test*."""
        return PromptItem.from_parent(self, name=name, callobj=test, line=line)

    def make_case_items(self, prompt: CompiledPrompt, check: RenderingCheck) -> "Iterator[PromptItem]":
        """Yield an item for each case of a prompt."""
        for case in prompt.saved():
            test = _make_case_test(prompt, case, check)
            yield self.make_item(f"{prompt.name}[{case.name}]", test, case.location.line)


class RecipeFile(CheckedFile):
    """
    The collector for a recipe file.

    Args:
        targets:
            The targets to load, which include the file.

        **more:
            Arguments of `pytest.File`.
    """

    def __init__(self, *, targets: tuple[str, ...], **more: Any) -> None:
        super().__init__(**more)
        self._targets = targets

    def collect(self) -> "Iterator[PromptItem]":
        """
        Yield a test for each prompt and each of its cases, and one for any other diagnostics.

        Raises:
            CollectError: If the targets cannot be loaded.
        """
        self.report_to_syrupy()
        checked = self._check_targets()
        for result in checked.by_path.get(self.path.resolve(), ()):
            yield self.make_item(result.name, make_result_test(result, checked.check_rendering), result.line)
            if result.compiled is not None:
                yield from self.make_case_items(result.compiled, checked.check_rendering)

    def _check_targets(self) -> CheckedFiles:
        """Return the checked targets, which are loaded only once."""
        loaded = self.config.stash.setdefault(_CHECKED, {})
        if self._targets not in loaded:
            try:
                loaded[self._targets] = check_files(self._targets, configured_checks(self.config))
            except LoadError as error:
                raise self.CollectError(str(error)) from None
        return loaded[self._targets]


class PromptItem(pytest.Function):
    """
    A test for a prompt, for a case, or for the diagnostics in a file that do not concern any prompt.

    Autouse fixtures apply to this test as well.

    Args:
        line:
            The line of the definition; 0 for a file.

        **more:
            Arguments of `pytest.Function`.
    """

    def __init__(self, *, line: int, **more: Any) -> None:
        super().__init__(**more)
        self._line = line

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """Return the error to show, without promptkit's own frames in the traceback."""
        error = excinfo.value
        if isinstance(error, CheckError | ModuleNotFoundError):
            return str(error)
        if isinstance(error, RenderingError) and error.__cause__ is not None:
            return f"{error}\n\n{format_exception(error.__cause__)}"
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the location of the definition, as pytest reports it."""
        return self.path, max(self._line - 1, 0), self.name


def make_result_test(checked: CheckResult, check_rendering: RenderingCheck) -> Callable[[], None]:
    """
    Return a test that fails if *checked* has diagnostics.

    If *checked* has a compiled prompt, the test also renders it, and fails if a rendering has diagnostics.
    """

    def test() -> None:
        _require_no_diagnostics(checked.diagnostics)
        if checked.compiled is None:
            return
        if not checked.compiled.sample:
            pytest.skip(f"not rendered: {NO_SAMPLE}")
        texts: list[FilledTextFile] = []
        with collecting(filled_text_files, texts):
            rendered = [] if checked.compiled.saved() else check_examples(checked.compiled)
        for workflow in rendered:
            _require_no_diagnostics(check_rendering(checked.compiled, workflow, texts))
        rejection = check_generated(checked.compiled)
        if rejection is not None and not rendered:
            pytest.skip(f"not rendered: {rejection}")

    return test


def _make_case_test(
    prompt: CompiledPrompt, case: Case, check_rendering: RenderingCheck
) -> Callable[..., None]:
    """
    Return a test that requires a case to raise its expected error or, if it has none, to render.

    The test fails if the rendering has diagnostics.

    If syrupy is installed, the test also compares the rendering with its snapshot.
    """

    def test(request: pytest.FixtureRequest) -> None:
        texts: list[FilledTextFile] = []
        with collecting(filled_text_files, texts):
            rendered = check_case(prompt, case)
        if rendered is None:
            return
        _require_no_diagnostics(check_rendering(prompt, rendered, texts))
        if request.config.pluginmanager.hasplugin("syrupy"):
            from promptkit.testing.snapshots import compare_with_snapshot

            snapshot = request.getfixturevalue("promptkit_snapshot")
            if (changes := compare_with_snapshot(prompt, case, rendered, snapshot)) is not None:
                raise CheckError(changes)

    return test


def _require_no_diagnostics(diagnostics: Sequence[Diagnostic]) -> None:
    """Raise CheckError if there are any diagnostics."""
    if diagnostics:
        raise CheckError("\n".join(map(str, diagnostics)))
