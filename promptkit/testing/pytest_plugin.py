"""
The pytest plugin: it makes recipes importable, and shortens the report of failed tests.

Every run of pytest loads it where promptkit is installed, so its imports happen when a test
needs them.
"""

import sys
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import pytest

__all__ = [
    "pytest_assertrepr_compare",
    "pytest_collect_directory",
    "pytest_load_initial_conftests",
    "pytest_pycollect_makemodule",
    "pytest_runtest_makereport",
]

#: Files and folders that mark the root of a project.
_ROOT_MARKERS: Final = ("pyproject.toml", ".git")


@pytest.hookimpl(tryfirst=True)
def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """
    Show how the transcripts of workflows, messages or content differ; with ``-vv``, whole lines.
    """
    if op not in ("==", "!=", "in", "not in") or "promptkit.language.content" not in sys.modules:
        return None
    from promptkit.testing.transcript_diff import explain

    return explain(op, left, right, whole=config.getoption("verbose") > 1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    """
    Remove promptkit's frames from the traceback of a failed test, unless ``--full-trace`` is given.
    """
    if call.excinfo is None or item.config.getoption("fulltrace"):
        return
    if item.config.rootpath == Path(__file__).parents[2]:
        return  # promptkit's own tests show its frames
    if "promptkit.language.messages" in sys.modules:
        from promptkit.errors.tracebacks import drop_internal_frames

        drop_internal_frames(call.excinfo.value)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """
    Make the roots of projects importable for each ``conftest.py`` that pytest imports at its start.
    """
    for named in _named(early_config):
        for folder in (*named.parents, named, *named.glob("test*")):
            pytest_collect_directory(folder)


@pytest.hookimpl(tryfirst=True, optionalhook=True)  # pytest 7 does not have this hook
def pytest_collect_directory(path: Path) -> None:
    """
    Make the root of a folder's project importable before the ``conftest.py`` in it is imported.
    """
    if (path / "conftest.py").exists():
        _import_root_of(path)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path) -> None:
    """
    Make the root of a test's project importable before the test is imported.
    """
    _import_root_of(module_path.parent)


def _named(config: pytest.Config) -> Iterator[Path]:
    """Yield the folders that the command line names, or the one in which pytest was started."""
    started = config.invocation_params.dir
    for argument in getattr(config.known_args_namespace, "file_or_dir", None) or [started]:
        path = started / str(argument).partition("::")[0]
        yield path if path.is_dir() else path.parent


def _import_root_of(folder: Path) -> None:
    root = _root_of(folder)
    if root not in sys.path:
        sys.path.append(root)  # last, so that it shadows nothing


@lru_cache
def _root_of(folder: Path) -> str:
    if any((folder / mark).exists() for mark in _ROOT_MARKERS):
        return str(folder)
    from promptkit.compiler.loading.targets import project_root

    return project_root(folder)
