"""``pytest --promptkit``: which recipes it tests, and every prompt in a file of them as a test."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from promptkit import compiler
from promptkit.catalog.cases import Case
from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import NO_SAMPLE, CompiledPrompt
from promptkit.compiler.configuration import find_configuration, find_targets
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import LoadError, PromptkitError
from promptkit.errors.tracebacks import format_exception
from promptkit.lints.linter import Checks
from promptkit.loader.discovery import holds_recipes, is_recipe, mentions_prompts
from promptkit.loader.targets import split_target
from promptkit.testing.checks import (
    CaseError,
    Checked,
    CheckedTarget,
    RenderingError,
    check_case,
    check_examples,
    check_generated,
)


def configured_catalog(config: pytest.Config) -> Catalog:
    """Return the compiled prompts of the targets. The test fails if there are none."""
    try:
        return compiler.compile(targets_for(config))
    except PromptkitError as error:
        pytest.fail(str(error), pytrace=False)


def targets_for(config: pytest.Config) -> tuple[str, ...]:
    """
    Return the targets of this run of pytest: those of the configuration, or a folder of recipes.

    They are looked for where pytest was started, and then at pytest's own root.

    Raises:
        PromptkitError: If there are none, or the configuration cannot be understood.
    """
    try:
        return find_targets(config.invocation_params.dir)
    except LoadError:
        return find_targets(config.rootpath)


def add_targets(config: pytest.Config) -> None:
    """
    Note the targets of this run, and have pytest look through those of the configuration.

    Files and folders on the command line are targets if they hold recipes; so are the configured targets of
    projects in such folders.

    Raises:
        UsageError: If there is no target, one is a module, or the configuration cannot be understood.
    """
    try:
        _checks_of(config)
        loads = (
            [(one,) for one in _named(config)] if _is_named(config) else [tuple(_targets_in_files(config))]
        )
    except PromptkitError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.promptkit_targets = loads  # those of the configuration are one
    if not _is_named(config):
        looked_at = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
        places = [place for place in map(_place, loads[0]) if not any(map(place.is_relative_to, looked_at))]
        config.args += map(str, places)


def _checks_of(config: pytest.Config) -> Checks:
    """What the configuration wants checked, which is looked for as in `targets_for`."""
    found = find_configuration(config.invocation_params.dir)
    configured = found if found.file else find_configuration(config.rootpath)
    return Checks(configured.clients, configured.ignore)


def _is_named(config: pytest.Config) -> bool:
    return config.args_source is pytest.Config.ArgsSource.ARGS


def _targets_in_files(config: pytest.Config) -> Iterator[str]:
    for target in targets_for(config):
        if not _place(target).exists():
            msg = f"--promptkit takes files: {target!r} is a module; name the folder that it is in"
            raise pytest.UsageError(msg)
        yield str(Path(target).resolve())


def _named(config: pytest.Config) -> Iterator[str]:
    """Yield the targets that the command line names, and those of the projects in its folders."""
    for argument in config.args:
        path = (config.invocation_params.dir / argument.partition("::")[0]).resolve()
        if path.is_dir():
            configured = _configured_targets(path)
            yield from map(str, configured)
            if not any(one.is_relative_to(path) for one in configured) and holds_recipes(str(path)):
                yield str(path)
        elif is_recipe(path.name) and mentions_prompts(str(path)):
            yield str(path)


def _configured_targets(folder: Path) -> list[Path]:
    with suppress(LoadError):  # there are none
        return [
            Path(target).resolve() for target in find_targets(folder) if _place(target).exists()
        ]  # no module
    return []


def _place(target: str) -> Path:
    """Return the file or the folder of a target, without the object in it."""
    return Path(split_target(target)[0]).resolve()


_CHECKED: Final = pytest.StashKey[dict[tuple[str, ...], CheckedTarget]]()


def recipe_file(path: Path, parent: pytest.Collector) -> "RecipeFile | None":
    """
    Return what collects the prompts in *path*; None if it belongs to no target of this run.
    """
    resolved, loads = path.resolve(), parent.config.option.promptkit_targets
    targets = next((one for one in loads if any(map(resolved.is_relative_to, map(_place, one)))), None)
    return None if targets is None else RecipeFile.from_parent(parent, path=path, targets=tuple(targets))


class FindingsError(Exception):
    """What ``promptkit check`` says of a prompt."""


class RecipeFile(pytest.File):
    """
    A file of recipes.

    Args:
        targets:
            What it is loaded with.

        **more:
            As for every file.
    """

    def __init__(self, *, targets: tuple[str, ...], **more: Any) -> None:
        super().__init__(**more)
        self._targets = targets

    def collect(self) -> "Iterator[PromptItem]":
        """
        Yield a test for each prompt and each of its cases, and one if the file is at fault outside of them.

        Raises:
            CollectError: If the targets cannot be loaded.
        """
        checked = self._checked()
        for one in checked.files.get(self.path.resolve(), ()):
            # Other plugins want a function.
            yield PromptItem.from_parent(self, name=one.name, callobj=_test(one, checked), line=one.line)
            if one.compiled is not None:
                for case in one.compiled.saved():
                    name, test = f"{one.name}[{case.name}]", _test_of_case(one.compiled, case, checked)
                    yield PromptItem.from_parent(self, name=name, callobj=test, line=case.location.line)

    def _checked(self) -> CheckedTarget:
        """Return what is found at the targets, which are imported once."""
        known = self.config.stash.setdefault(_CHECKED, {})
        if self._targets not in known:
            try:
                known[self._targets] = CheckedTarget(self._targets, _checks_of(self.config))
            except LoadError as error:
                raise self.CollectError(str(error)) from None
        return known[self._targets]


class PromptItem(pytest.Function):
    """
    A test of one prompt, or of what a file has beside its prompts.

    Fixtures that are set up for every test are set up for it, too.

    Args:
        line:
            Where the prompt is defined; 0 for a file.

        **more:
            As for every test.
    """

    def __init__(self, *, line: int, **more: Any) -> None:
        super().__init__(**more)
        self._line = line

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """
        Return what is wrong, and not where this was found out.
        """
        error = excinfo.value
        if isinstance(error, CaseError | FindingsError | ModuleNotFoundError):
            return str(error)
        if isinstance(error, RenderingError) and error.__cause__ is not None:
            return f"{error}\n\n{format_exception(error.__cause__)}"
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """
        Return where the prompt is defined.
        """
        return self.path, max(self._line - 1, 0), self.name


def _test(one: Checked, target: CheckedTarget) -> Callable[[], None]:
    """A test that nothing is found in a prompt, nor in its renderings, and that it renders."""

    def test() -> None:
        _demand_none(one.findings)
        if one.compiled is None:
            return
        if not one.compiled.sample:
            pytest.skip(f"not rendered: {NO_SAMPLE}")
        rendered = [] if one.compiled.saved() else check_examples(one.compiled)
        for workflow in rendered:
            _demand_none(target.of_rendering(one.compiled, workflow))
        refusal = check_generated(one.compiled)
        if refusal is not None and not rendered:
            pytest.skip(f"not rendered: {refusal}")

    return test


def _test_of_case(prompt: CompiledPrompt, case: Case, target: CheckedTarget) -> Callable[..., None]:
    """A test that a case is refused, or rendered as in its snapshot, without anything that is found there."""

    def test(request: pytest.FixtureRequest) -> None:
        rendered = check_case(prompt, case)
        if rendered is None:
            return
        _demand_none(target.of_rendering(prompt, rendered))
        if request.config.pluginmanager.hasplugin("syrupy"):
            from promptkit.testing.snapshots import changes_of

            snapshot = request.getfixturevalue("promptkit_snapshot")
            if (changes := changes_of(prompt, case, rendered, snapshot)) is not None:
                raise CaseError(changes)

    return test


def _demand_none(findings: Sequence[Diagnostic]) -> None:
    if findings:
        raise FindingsError("\n".join(map(str, findings)))
