"""
The pytest plugin: fixtures, a test for each prompt, short reports of failed tests.

It also makes the root of a test's project importable, if that project has prompts.

Every run of pytest loads it where promptkit is installed, so its imports happen when a test
needs them.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from promptkit.testing.project_root import make_importable

if TYPE_CHECKING:
    from syrupy.assertion import SnapshotAssertion

    from promptkit.catalog.catalog import Catalog
    from promptkit.testing.client import Client


def pytest_addoption(parser: pytest.Parser) -> None:
    """
    Add the option that makes each prompt a test.

    Args:
        parser:
            Takes options.
    """
    parser.getgroup("promptkit").addoption(
        "--promptkit",
        action="store_true",
        help="test every prompt: it compiles without a finding, and renders for its examples and for "
        "arguments that are made up",
    )


def pytest_configure(config: pytest.Config) -> None:
    """
    Look for prompts in what the command line names, or else in the target of the configuration.

    Args:
        config:
            How pytest runs.

    Raises:
        UsageError: If there is no such target, or the configuration cannot be understood.
    """
    if config.getoption("promptkit") and not hasattr(config.option, "promptkit_targets"):
        from promptkit.testing.collection import add_targets

        add_targets(config)


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """
    Return what collects the prompts of a file, if it is one of recipes, and they are asked for.

    Args:
        file_path:
            Any file.

        parent:
            What holds it.
    """
    if not parent.config.getoption("promptkit") or file_path.suffix != ".py":
        return None
    from promptkit.testing.collection import recipe_file

    return recipe_file(file_path, parent)


@pytest.fixture(scope="session")
def promptkit_catalog(pytestconfig: pytest.Config) -> "Catalog":
    """
    The compiled prompts and resources of the configured target, with what is wrong with them.
    """
    from promptkit.testing.collection import configured_catalog

    return configured_catalog(pytestconfig)


@pytest.fixture
def promptkit_client(promptkit_catalog: "Catalog") -> "Iterator[Client]":
    """
    A `promptkit.testing.Client` of the configured target, all of which can be served.
    """
    from promptkit.compiler.compilation import sound
    from promptkit.testing.client import Client

    with Client(sound(promptkit_catalog)) as client:
        yield client


@pytest.fixture
def promptkit_snapshot(request: pytest.FixtureRequest) -> "SnapshotAssertion":
    """
    A snapshot of what was rendered, in a Markdown file a test; ``--snapshot-update`` writes it.
    """
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
    """
    Show how the transcripts of workflows, messages or content differ; with ``-vv``, whole lines.
    """
    if op not in ("==", "!=", "in", "not in") or "promptkit.language.content" not in sys.modules:
        return None
    if type(right).__module__.startswith("syrupy") or type(left).__module__.startswith("syrupy"):
        return None  # it shows by itself how a snapshot differs
    from promptkit.testing.comparisons import explain

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
    Make the roots of projects with prompts importable for the ``conftest.py`` files that come first.
    """
    for named in _named(early_config):
        for folder in (*named.parents, named, *named.glob("test*")):
            pytest_collect_directory(folder)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """
    Say if a test cannot be imported as another project's package of the same name lies over this one.

    Args:
        report:
            What came of collecting.
    """
    if report.failed and "promptkit" in str(report.longrepr):
        from promptkit.errors.distribution import other_package

        if (reason := other_package()) is not None:
            report.sections.append(("promptkit", reason))


@pytest.hookimpl(tryfirst=True, optionalhook=True)  # pytest 7 does not have this hook
def pytest_collect_directory(path: Path) -> None:
    """
    Make the root of a folder's project importable before the ``conftest.py`` in it is imported.
    """
    if (path / "conftest.py").exists():
        make_importable(path)


@pytest.hookimpl(tryfirst=True)
def pytest_pycollect_makemodule(module_path: Path) -> None:
    """
    Make the root of a test's project importable before the test is imported.
    """
    make_importable(module_path.parent)


def _named(config: pytest.Config) -> Iterator[Path]:
    """Yield the folders that the command line names, or the one in which pytest was started."""
    started = config.invocation_params.dir
    for argument in getattr(config.known_args_namespace, "file_or_dir", None) or [started]:
        path = started / str(argument).partition("::")[0]
        yield path if path.is_dir() else path.parent
