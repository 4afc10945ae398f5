"""Runs of pytest as an author has them."""

import pkgutil
import sys
from importlib import import_module

import pytest

import promptkit

#: Plugins that are there for the work on promptkit, and that no test here speaks of. Each takes its time.
OTHERS = ("anyio", "typeguard")

#: As the script starts it, which does not put the current folder on the path.
PYTEST = (sys.executable, "-PE", "-m", "pytest")


@pytest.fixture(scope="session")
def whole_package():
    """Every module of promptkit: a run in this process forgets what it was the first to import."""
    for module in pkgutil.walk_packages(promptkit.__path__, "promptkit."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.fixture
def words(monkeypatch):
    """What each run of pytest is told, once what continuous integration changes is undone."""
    for name in ("CI", "BUILD_NUMBER", "PYTHONPATH", "PYTEST_ADDOPTS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return ["-p", "no:cacheprovider", *(word for name in OTHERS for word in ("-p", f"no:{name}"))]


@pytest.fixture
def run(pytester, words, whole_package, monkeypatch):
    """A function that runs pytest, in this process, and returns what it did."""
    for name in list(sys.modules):  # of other tests' folders
        if name.partition(".")[0] in ("prompts", "recipes"):
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # it hides an edit that comes within a second
    return lambda *options: pytester.runpytest_inprocess(*words, *options)


@pytest.fixture
def run_alone(pytester, words):
    """The same in a process of its own, which takes several times as long."""
    return lambda *options: pytester.run(*PYTEST, *words, *options)
