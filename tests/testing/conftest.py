"""Runs of pytest as authors start it."""

import pkgutil
import sys
from importlib import import_module

import pytest

import promptkit

#: Plugins for the development of promptkit, which no test here needs. Loading each takes time.
UNUSED_PLUGINS = ("anyio", "typeguard")

#: Start pytest as its script does, without the current folder on the path.
PYTEST = (sys.executable, "-PE", "-m", "pytest")


@pytest.fixture(scope="session")
def whole_package():
    """
    Import every module of promptkit, because a run in this process unloads the modules that it has imported
    first.
    """
    for module in pkgutil.walk_packages(promptkit.__path__, "promptkit."):
        if not module.name.endswith("__main__"):
            import_module(module.name)


@pytest.fixture
def arguments(monkeypatch):
    """The arguments of each pytest run, in an environment without CI's variables."""
    for name in ("CI", "BUILD_NUMBER", "PYTHONPATH", "PYTEST_ADDOPTS", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    return ["-p", "no:cacheprovider", *(option for name in UNUSED_PLUGINS for option in ("-p", f"no:{name}"))]


@pytest.fixture
def run(pytester, arguments, whole_package, monkeypatch):
    """A function that runs pytest in this process, and returns the result."""
    for module_name in list(sys.modules):  # from folders of other tests
        if module_name.partition(".")[0] in ("prompts", "recipes"):
            monkeypatch.delitem(sys.modules, module_name)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # bytecode hides an edit within the same second
    for variable in ("PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):  # syrupy removes nothing in workers
        monkeypatch.delenv(variable, raising=False)
    return lambda *options: pytester.runpytest_inprocess(*arguments, *options)


@pytest.fixture
def run_alone(pytester, arguments):
    """A function that runs pytest in a separate process, which takes several times as long."""
    return lambda *options: pytester.run(*PYTEST, *arguments, *options)
