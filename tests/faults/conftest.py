"""Fixtures of the fault tests: server processes, and the length of a run."""

import sys

import pytest

from tests.faults.recorded import RECIPE
from tests.faults.serving import Serving


def pytest_collection_modifyitems(items):
    """Skip these tests without POSIX pipes, and extend their timeout with `--whole`."""
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker(pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes"))
            if item.config.getoption("--whole"):
                item.add_marker(pytest.mark.timeout(900))


@pytest.fixture
def full_length(request):
    """Whether the tests run at full length, not for only a minute or two."""
    return request.config.getoption("--whole")


@pytest.fixture
def amount(full_length, in_ci):
    """A function that chooses one of three amounts of work: for `--whole`, for CI, or for a smoke test."""
    return lambda full, ci, smoke: full if full_length else ci if in_ci else smoke


@pytest.fixture
def figures(request):
    """A function that records figures, which are printed at the end even if the test passes."""

    def record(**values):
        text = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in values.items())
        request.node.user_properties.append(("figures", text))

    return record


@pytest.fixture
def serve(tmp_path, recipes):
    """A function that starts a server, by default of a recipe with all kinds of prompts."""
    started = []

    def start(*options, folder=None, **kwargs):
        log = tmp_path / f"stderr-{len(started)}"
        started.append(Serving(folder or recipes(recipe=RECIPE), *options, log=log, **kwargs))
        return started[-1]

    yield start
    for serving in started:
        serving.kill()
