"""Runs of pytest as an author has them."""

import sys

import pytest

#: Plugins that are there for the work on promptkit, and that no test here speaks of. Each takes its time.
OTHERS = ("anyio", "typeguard")

#: As the script starts it, which does not put the current folder on the path.
PYTEST = (sys.executable, "-PE", "-m", "pytest", "-p", "no:cacheprovider")


@pytest.fixture
def run(pytester, monkeypatch):
    """A function that runs pytest, without what continuous integration changes, and returns what it did."""
    for name in ("CI", "BUILD_NUMBER", "PYTHONPATH", "PYTEST_ADDOPTS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    without = [word for name in OTHERS for word in ("-p", f"no:{name}")]
    return lambda *options: pytester.run(*PYTEST, *without, *options)
