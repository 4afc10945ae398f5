"""Command-line options and hypothesis profiles, for these tests and those of the recipes."""

import gc
import os
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import settings

# Examples have no deadline, because they can be slow on a busy machine.
settings.register_profile("short", deadline=None, max_examples=25)
settings.register_profile("ci", deadline=None, max_examples=100)
settings.register_profile("whole", deadline=None, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    """
    Add the option that runs the longest tests in full.
    """
    parser.addoption(
        "--whole",
        action="store_true",
        help="run fault tests, laws of types and load on replicas in full, which takes minutes",
    )


def pytest_configure(config: pytest.Config) -> None:
    """
    Load the hypothesis profile of this run.
    """
    in_ci = os.environ.get("CI") or os.environ.get("PROMPTKIT_TEST_INSTALLS")
    default = "ci" if in_ci else "short"
    settings.load_profile("whole" if config.getoption("--whole") else default)


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Iterator[None]:
    """
    Disable garbage collection while tests are collected, and exclude the tests from it afterwards.
    """
    gc.disable()
    try:
        if session.config.args_source is pytest.Config.ArgsSource.TESTPATHS:
            _import_share(session.config.rootpath)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _import_share(root: Path) -> None:
    """
    Import a share of the test modules before all are collected.

    Each worker collects all modules. In a new checkout, each would otherwise compile all of them.
    """
    worker, count = (os.environ.get(f"PYTEST_XDIST_WORKER{end}") for end in ("", "_COUNT"))
    if worker is None or count is None:
        return
    for path in sorted((root / "tests").rglob("test_*.py"))[int(worker.removeprefix("gw")) :: int(count)]:
        with suppress(pytest.skip.Exception):  # the module is collected later, and skipped
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """
    Print the figures that tests have recorded.
    """
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, figures in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(f"{report.nodeid}: {figures}")
