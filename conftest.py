"""What pytest is told on the command line, for the tests and for the recipes'."""

import gc
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings

# On a busy machine an example takes what it takes.
settings.register_profile("short", deadline=None, max_examples=25)
settings.register_profile("ci", deadline=None, max_examples=100)
settings.register_profile("whole", deadline=None, max_examples=1000)


def pytest_addoption(parser: pytest.Parser) -> None:
    """
    Add the option that has the fault tests do everything.
    """
    parser.addoption(
        "--whole",
        action="store_true",
        help="run fault tests, laws of types and load on replicas whole, which takes minutes, not shortened",
    )


def pytest_configure(config: pytest.Config) -> None:
    """
    Say how much hypothesis tries.
    """
    in_ci = os.environ.get("CI") or os.environ.get("PROMPTKIT_TEST_INSTALLS")
    ordinary = "ci" if in_ci else "short"
    settings.load_profile("whole" if config.getoption("--whole") else ordinary)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """
    Look for no garbage among the tests while they are collected, nor later: they stay.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """
    Print the figures that tests have noted.
    """
    for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed"):
        for name, shown in report.user_properties:
            if name == "figures":
                terminalreporter.write_line(f"{report.nodeid}: {shown}")
