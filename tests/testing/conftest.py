"""Runs of pytest as authors start it."""

import os
import pkgutil
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest

import promptkit
from tests.forked import fork_server

#: Plugins for the development of promptkit, which no test here needs. Loading each takes time.
UNUSED_PLUGINS = ("anyio", "typeguard")

#: Start pytest as its script does, without the current folder on the path.
PYTEST = (sys.executable, "-PE", "-m", "pytest")


@pytest.fixture(scope="session")
def whole_package():
    """
    Import every module of promptkit, because a pytest run in this process later unloads all modules that it
    was the first to import.
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


@pytest.fixture(scope="module")
def forked(tmp_path_factory):
    """A function that runs a command in a forked process; None on systems without forks."""
    if not hasattr(os, "fork"):
        yield None
        return
    with fork_server(tmp_path_factory.mktemp("forked")) as forked:
        yield forked


@pytest.fixture
def run_forked(pytester, arguments, forked, run_alone):
    """A function like `run_alone`, in a process that has imported pytest and promptkit already."""

    def run(*options):
        started = time.monotonic()
        code, *streams = forked(*arguments, *options, cwd=Path.cwd(), program=("-P", "pytest"))
        out, err = (stream.decode() for stream in streams)
        sys.stdout.write(f"{out}\n{err}\n")  # shown if the test fails
        return pytest.RunResult(code, out.splitlines(), err.splitlines(), time.monotonic() - started)

    return run_alone if forked is None else run
