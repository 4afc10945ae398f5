"""
The pytest plugin: fixtures, a test for each prompt, and short reports of failed tests.

The plugin also makes the modules in the root folder of a test's project importable if the project has
prompts.

Wherever promptkit is installed, every pytest run loads this module. Therefore, it imports other modules only
when it needs them.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from promptkit.files.reading import read_beginning
from promptkit.loader.discovery import DEFAULT_FOLDERS, PROJECT_MARKERS, holds_recipes

#: Matches promptkit's configuration in any table or key of a ``pyproject.toml``.
_CONFIGURATION: Final = re.compile(rb"tool\.promptkit(?![\w-])")

#: The maximum number of bytes that are read from a ``pyproject.toml``.
_MAX_BYTES: Final = 1 << 20


def make_importable(folder: Path) -> None:
    """
    Make the modules of the project that contains *folder* importable if that project has prompts.

    A project has prompts if its ``pyproject.toml`` configures promptkit, or if there are recipes in *folder*
    or in the project's ``recipes`` or ``prompts`` folder.
    """
    if (root := _root_with_prompts(folder)) is not None:
        _add_to_path(root)


def _add_to_path(root: str) -> None:
    """Append a root to ``sys.path``, unless ``sys.path`` already contains it."""
    if root in sys.path:  # replace an equal entry of a recipe finder, because the finder would remove it
        sys.path[sys.path.index(root)] = root
    else:
        sys.path.append(root)  # last, so that it does not shadow other packages


def root_of(folder: Path) -> Path:
    """Return the nearest folder with a project marker, from *folder* upwards; if none has one, its parent."""
    for parent in (folder, *folder.parents):
        if any(_is_trusted(parent / marker, folder) for marker in PROJECT_MARKERS):
            return parent
    return folder.parent


def _is_trusted(marker: Path, folder: Path) -> bool:
    """Return whether a marker exists and belongs to root, to the owner of *folder* or to the current user."""
    if not marker.exists():
        return False
    trusted = {0, folder.stat().st_uid, os.geteuid()} if hasattr(os, "geteuid") else {0}
    return marker.lstat().st_uid in trusted


@lru_cache
def _root_with_prompts(folder: Path) -> str | None:
    root = root_of(folder)
    return str(root) if _has_prompts(root) or holds_recipes(str(folder), depth=0) else None


@lru_cache
def _has_prompts(root: Path) -> bool:
    """Return whether a project configures promptkit or has one of the default folders with recipes."""
    file = root / "pyproject.toml"
    with suppress(OSError):
        if _CONFIGURATION.search(read_beginning(file, _MAX_BYTES)):
            return True
    return any(holds_recipes(str(root / name)) for name in DEFAULT_FOLDERS)


if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from promptkit.catalog.catalog import Catalog
    from promptkit.testing.client import Client


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--promptkit`` and the options for a server."""
    group = parser.getgroup("promptkit")
    group.addoption(
        "--promptkit",
        action="store_true",
        help="test that every prompt compiles without diagnostics, and renders with its examples and with "
        "generated arguments",
    )
    # Projects often have their own option --server.
    group.addoption(
        "--promptkit-server",
        metavar="COMMAND",
        help="with --promptkit: test the prompts of the MCP server with this command or URL, and the cases "
        "in cases.toml",
    )
    for name, metavar in (("header", "NAME=VALUE"), ("env", "NAME[=VALUE]")):
        group.addoption(
            f"--promptkit-{name}",
            action="append",
            default=[],
            metavar=metavar,
            help=f"with --promptkit-server: like --{name} of promptkit check --server",
        )


def pytest_configure(config: pytest.Config) -> None:
    """Find the server or the targets to test, on the command line or in the configuration."""
    if config.getoption("promptkit_server") is not None:
        from promptkit.testing.foreign_cases import collect_server_cases

        collect_server_cases(config)
    elif config.getoption("promptkit") and not hasattr(config.option, "promptkit_targets"):
        from promptkit.testing.collection import add_targets

        add_targets(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Return the collector for a recipe file or a server's cases; None if the file is not tested."""
    if parent.config.getoption("promptkit_server") is not None:
        from promptkit.testing.foreign_cases import cases_file

        return cases_file(file_path, parent)
    if not parent.config.getoption("promptkit") or file_path.suffix not in (".py", ".md"):
        return None
    from promptkit.testing.collection import recipe_file

    return recipe_file(file_path, parent)


@pytest.fixture(scope="module")
def promptkit_catalog(request: pytest.FixtureRequest) -> "Catalog":
    """The compiled prompts and resources of the project's targets, with their diagnostics."""
    from promptkit.testing.collection import configured_catalog

    return configured_catalog(request.config, root_of(request.path.parent))


@pytest.fixture
def promptkit_client(promptkit_catalog: "Catalog") -> "Iterator[Client]":
    """A `promptkit.testing.Client` for the project's targets, which must compile without errors."""
    from promptkit.compiler.compilation import require_complete
    from promptkit.testing.client import Client

    with Client(require_complete(promptkit_catalog)) as client:
        yield client


@pytest.fixture
def promptkit_snapshot(request: pytest.FixtureRequest) -> "SnapshotAssertion":
    """A snapshot of a rendering, in a Markdown file for each test. Write it with ``--snapshot-update``."""
    try:
        from promptkit.testing.snapshots import MarkdownSnapshots
    except ModuleNotFoundError as error:
        pytest.fail(str(error), pytrace=False)
    snapshot: SnapshotAssertion = request.getfixturevalue("snapshot")
    return snapshot.use_extension(MarkdownSnapshots)


@pytest.hookimpl(tryfirst=True)
def pytest_assertrepr_compare(
    config: pytest.Config, op: str, left: object, right: object
) -> list[str] | None:
    """Show how the transcripts of workflows, messages or content differ; with ``-vv``, show whole lines."""
    if op not in ("==", "!=", "in", "not in") or "promptkit.language.content" not in sys.modules:
        return None
    if type(right).__module__.startswith("syrupy") or type(left).__module__.startswith("syrupy"):
        return None  # syrupy itself shows the difference
    from promptkit.testing.transcripts import explain

    return explain(op, left, right, full=config.getoption("verbose") > 1)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: "pytest.CallInfo[None]") -> None:
    """Remove promptkit's frames from the traceback of a failed test, unless ``--full-trace`` is given."""
    if call.excinfo is None or item.config.getoption("fulltrace"):
        return
    if item.config.rootpath == Path(__file__).parents[2]:
        return  # in promptkit's own tests, its frames are of interest
    if "promptkit.language.messages" in sys.modules:
        from promptkit.errors.tracebacks import drop_internal_frames

        drop_internal_frames(call.excinfo.value)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Make the project roots importable before pytest imports the initial ``conftest.py`` files."""
    for folder in _find_named_folders(early_config):
        for directory in (*folder.parents, folder, *folder.glob("test*")):
            if (directory / "conftest.py").exists() and (root := _root_with_prompts(directory)) is not None:
                _add_to_path(root)


@pytest.hookimpl(tryfirst=True, optionalhook=True)  # pytest 7 does not have this hook
def pytest_collect_directory(path: Path) -> None:
    """Make the root of a folder's project importable before its ``conftest.py`` is imported."""
    if (path / "conftest.py").exists():
        make_importable(path)


@pytest.hookimpl(tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> None:
    """Make the root of a file's project importable before the file is imported."""
    if isinstance(collector, pytest.File):
        make_importable(collector.path.parent)


def _find_named_folders(config: pytest.Config) -> Iterator[Path]:
    """Yield the folders that the command line names, or otherwise the folder where pytest was started."""
    start = config.invocation_params.dir
    for argument in getattr(config.known_args_namespace, "file_or_dir", None) or [start]:
        path = start / str(argument).partition("::")[0]
        yield path if path.is_dir() else path.parent
