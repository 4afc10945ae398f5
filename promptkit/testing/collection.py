"""``pytest --promptkit``: every prompt in a file of recipes is a test."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import LoadError
from promptkit.errors.tracebacks import format_exception
from promptkit.testing.checked import CheckedPrompt, CheckedTarget
from promptkit.testing.checks import RenderingError, check_examples, check_generated
from promptkit.testing.selection import checks_of, target_with

__all__ = ["recipe_file"]

_CHECKED: Final = pytest.StashKey[dict[str, CheckedTarget]]()


def recipe_file(path: Path, parent: pytest.Collector) -> "RecipeFile | None":
    """
    Return what collects the prompts in *path*; None if it belongs to no target.
    """
    target = target_with(path, parent.config)
    return None if target is None else RecipeFile.from_parent(parent, path=path, target=target)


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

    Args:
        target:
            What it belongs to.

        **more:
            As for every file.
    """

    def __init__(self, *, target: str, **more: Any) -> None:
        super().__init__(**more)
        self._target = target

    def collect(self) -> "Iterator[PromptItem]":
        """
        Yield a test for each prompt, and one for the file if something outside of its prompts is at fault.

        Raises:
            CollectError: If the target cannot be loaded.
        """
        checked = self._checked()
        file = checked.files.get(self.path.resolve())
        if file is None:
            return
        if file.findings:
            yield self._item(self.path.name, partial(_demand_none, file.findings), 0)
        for prompt in file.prompts:
            yield self._item(prompt.name, partial(_check, prompt, checked), prompt.line)

    def _checked(self) -> CheckedTarget:
        """Return what is found at the target, which is imported once."""
        known = self.config.stash.setdefault(_CHECKED, {})
        if self._target not in known:
            try:
                known[self._target] = CheckedTarget(self._target, checks_of(self.config))
            except LoadError as error:
                raise self.CollectError(str(error)) from None
        return known[self._target]

    def _item(self, name: str, check: Callable[[], None], line: int) -> "PromptItem":
        def test() -> None:  # other plugins want a function
            check()

        made: PromptItem = PromptItem.from_parent(self, name=name, callobj=test, line=line)
        return made


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


def _check(prompt: CheckedPrompt, target: CheckedTarget) -> None:
    """Check that nothing is found in a prompt, nor in its renderings, and that it renders."""
    _demand_none(prompt.findings)
    compiled = prompt.compiled
    if compiled is None:
        return
    rendered = check_examples(compiled)
    for workflow in rendered:
        _demand_none(target.of_rendering(compiled, workflow))
    refusal = check_generated(compiled)
    if refusal is not None and not rendered:
        pytest.skip(f"not rendered: {refusal}")


def _demand_none(findings: Sequence[Diagnostic]) -> None:
    if findings:
        raise FindingsError(findings)
