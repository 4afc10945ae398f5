"""``pytest --promptkit --promptkit-server``: a test for each of a server's prompts and each of its cases."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from promptkit.catalog.catalog import Catalog
from promptkit.errors.diagnostics import Diagnostic
from promptkit.errors.exceptions import LoadError, PromptkitError
from promptkit.foreign.address import parse_address
from promptkit.foreign.cases import CASES_FILE
from promptkit.foreign.catalog import open_server
from promptkit.testing.collection import (
    CheckedFile,
    CheckResult,
    PromptItem,
    configured_checks,
    make_rendering_check,
    make_result_test,
)


def collect_server_cases(config: pytest.Config) -> None:
    """
    Make pytest collect only the cases of a server's prompts.

    The cases are in ``cases.toml``, in the folder where pytest was started.

    Raises:
        UsageError: If an option is invalid, or if the folder does not contain ``cases.toml``.
    """
    file = config.invocation_params.dir / CASES_FILE
    if not config.getoption("promptkit"):
        msg = "--promptkit-server requires --promptkit"
        raise pytest.UsageError(msg)
    if not file.is_file():
        msg = (
            f"--promptkit-server tests the cases in {CASES_FILE}, but {str(file.parent)!r} does not contain "
            "that file"
        )
        raise pytest.UsageError(msg)
    try:
        configured_checks(config)
        _address(config)
    except (PromptkitError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None
    config.option.promptkit_targets = []
    config.args[:] = [str(file)]


def cases_file(path: Path, parent: pytest.Collector) -> "ServerFile | None":
    """Return the collector for ``cases.toml``; None for any other file."""
    is_cases = path == parent.config.invocation_params.dir / CASES_FILE
    return ServerFile.from_parent(parent, path=path) if is_cases else None


def _address(config: pytest.Config) -> Any:
    options = [config.getoption(f"promptkit_{name}") for name in ("server", "header", "env")]
    return parse_address(*options)


class ServerFile(CheckedFile):
    """A file with cases for the prompts of a server, which runs until the end of the session."""

    def collect(self) -> Iterator[PromptItem]:
        """
        Yield a test for each prompt and each of its cases, and one for diagnostics about the server itself.

        Raises:
            CollectError: If the server cannot be reached, or the cases are invalid.
        """
        self.report_to_syrupy()
        catalog, checks = self._connect(), configured_checks(self.config)
        known = checks.lint_catalog(catalog)
        names = {f"prompt {name!r}": name for name in catalog}
        by_name: dict[str, list[Diagnostic]] = {"the server": [], **{name: [] for name in catalog}}
        for diagnostic in checks.without_ignored(known):
            subject = "" if diagnostic.owner is None else diagnostic.owner.subject
            by_name[names.get(subject, "the server")].append(diagnostic)

        check = make_rendering_check(checks, known)
        for name, diagnostics in by_name.items():
            yield self.make_item(name, make_result_test(CheckResult(name, 0, diagnostics), check), 0)
        for prompt in catalog.prompts:
            yield from self.make_case_items(prompt, check)

    def _connect(self) -> Catalog:
        stack = ExitStack()
        self.config.add_cleanup(stack.close)
        try:
            server = open_server(_address(self.config), lint=True, folder=self.path.parent)
            return stack.enter_context(server).catalog
        except LoadError as error:
            raise self.CollectError(str(error)) from None
