"""``pytest --promptkit``: every prompt in a file of recipes is a test."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.compiler.compilation import compile_files
from promptkit.compiler.composition import CompiledFile, Declaration, compose
from promptkit.compiler.loading.configuration import find_configuration, find_target
from promptkit.compiler.loading.loader import load
from promptkit.compiler.loading.targets import looks_like_recipe, split_target
from promptkit.compiler.prompts import Prompt
from promptkit.errors.diagnostics import Diagnostic, Severity
from promptkit.errors.exceptions import LoadError, PromptkitError
from promptkit.errors.tracebacks import format_exception
from promptkit.testing.checks import RenderingError, check_examples, check_generated

__all__ = ["add_target", "recipe_file", "target_of"]

#: A folder's files, and what is served of all of them.
Compiled: TypeAlias = tuple[dict[Path, CompiledFile], Catalog]

_COMPILED: Final = pytest.StashKey[dict[Path, Compiled]]()


def target_of(config: pytest.Config) -> str:
    """
    Return the target of this run of pytest: that of the configuration, or a folder of recipes.

    It is looked for where pytest was started, and then at pytest's own root.

    Raises:
        PromptkitError: If there is none, or the configuration cannot be understood.
    """
    try:
        return find_target(config.invocation_params.dir)
    except LoadError:
        return find_target(config.rootpath)


def add_target(config: pytest.Config) -> None:
    """
    Have pytest look through the target, too, if the command line names no files.

    Raises:
        UsageError: If there is no target, or it is a module.
    """
    if config.args_source is pytest.Config.ArgsSource.ARGS:
        return
    try:
        target, _ = split_target(target_of(config))
    except PromptkitError as error:
        raise pytest.UsageError(str(error)) from None
    place = Path(target).resolve()
    if not place.exists():
        msg = f"--promptkit takes files: {target!r} is a module; name the folder that it is in"
        raise pytest.UsageError(msg)
    config.option.promptkit_target = str(place)
    named = [(config.invocation_params.dir / argument).resolve() for argument in config.args]
    if not any(place.is_relative_to(path) for path in named):
        config.args.append(str(place))


def recipe_file(path: Path, parent: pytest.Collector) -> "RecipeFile | None":
    """
    Return what collects the prompts in *path*; None if it is no file of recipes, or not one to look at.
    """
    target = parent.config.option.promptkit_target
    if target is not None and not path.resolve().is_relative_to(target):
        return None
    return RecipeFile.from_parent(parent, path=path) if looks_like_recipe(str(path)) else None


class FindingsError(Exception):
    """
    What ``promptkit check`` says of a prompt.

    Args:
        findings:
            All of it.
    """

    def __init__(self, findings: Sequence[Diagnostic]) -> None:
        super().__init__(findings)
        self.findings = findings

    def __str__(self) -> str:
        return "\n".join(map(str, self.findings))


class RecipeFile(pytest.File):
    """
    A file of recipes.
    """

    def collect(self) -> "Iterator[PromptItem]":
        """
        Yield a test for each prompt, and one for the file if something outside of its prompts is at fault.

        What the configuration ignores is not at fault, unless it keeps a prompt from being served.
        """
        path = self.path.resolve()
        files, catalog = _compiled(self, path.parent)
        if path not in files:
            return
        file = files[path]
        ignored = find_configuration(path.parent).ignore
        own = (found for found in catalog.diagnostics if found.location.file == str(path))
        findings: dict[int, list[Diagnostic]] = defaultdict(list)
        for found in dict.fromkeys((*file.diagnostics, *own)):
            if found.rule.value not in ignored or found.severity is Severity.ERROR:
                findings[id(_owner(found, file.declarations))].append(found)
        prompts = [made for made in file.declarations if isinstance(made.definition, Prompt)]
        of_prompts = [(made, findings.pop(id(made), [])) for made in prompts]
        if others := list(chain.from_iterable(findings.values())):
            yield _item(self, path.name, others)
        for made, of_prompt in of_prompts:
            yield _item(self, made.key[1], of_prompt, made)


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
        if isinstance(error, FindingsError | ModuleNotFoundError):
            return str(error)
        if isinstance(error, RenderingError) and error.__cause__ is not None:
            return f"{error}\n\n{format_exception(error.__cause__)}"
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """
        Return where the prompt is defined.
        """
        return self.path, max(self._line - 1, 0), self.name


def _item(
    file: RecipeFile, name: str, findings: Sequence[Diagnostic], declaration: Declaration | None = None
) -> PromptItem:
    """Return a test that checks that there are no findings, and that a prompt renders."""

    def check() -> None:
        if findings:
            raise FindingsError(findings)
        if declaration is not None and isinstance(declaration.compiled, CompiledPrompt):
            check_examples(declaration.compiled)
            check_generated(declaration.compiled)

    line = declaration.location.line if declaration else 0
    made: PromptItem = PromptItem.from_parent(file, name=name, callobj=check, line=line)
    return made


def _compiled(node: pytest.Collector, folder: Path) -> Compiled:
    """Return what the recipes in *folder* come to, which are imported once."""
    known = node.config.stash.setdefault(_COMPILED, {})
    if folder not in known:
        recipes = load(folder)
        files = compile_files(recipes, lint=True)
        by_path = {file.file: file for file in files if file.file is not None}
        known[folder] = by_path, compose(files, root=recipes.root)
    return known[folder]


def _owner(finding: Diagnostic, declarations: Sequence[Declaration]) -> Declaration | None:
    """Return the declaration that a finding is about: the last that begins above it, in its file."""
    above = [
        one
        for one in declarations
        if one.location.file == finding.location.file and one.location.line <= finding.location.line
    ]
    return max(above, key=lambda one: one.location.line, default=None)
