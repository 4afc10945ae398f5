"""What the fault tests share: processes that are ended, and how much is to be done."""

import sys

import pytest

from tests.faults.recorded import RECIPE
from tests.faults.serving import Serving


def pytest_collection_modifyitems(items):
    """The whole form of these tests takes its time, and they speak of pipes as POSIX has them."""
    for item in items:
        if "faults" in item.path.parts:
            item.add_marker(pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX pipes"))
            if item.config.getoption("--whole"):
                item.add_marker(pytest.mark.timeout(900))


@pytest.fixture
def whole(request):
    """Whether everything is to be done, or a part that takes a minute or two."""
    return request.config.getoption("--whole")


@pytest.fixture
def amount(whole, in_ci):
    """A function that returns how much is to be done: with `--whole`, in CI, or for a smoke."""
    return lambda most, ci, smoke: most if whole else ci if in_ci else smoke


@pytest.fixture
def figures(request):
    """A function that notes figures, which are printed at the end, also when the test passes."""

    def show(**found):
        shown = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in found.items())
        request.node.user_properties.append(("figures", shown))

    return show


@pytest.fixture
def serve(tmp_path, recipes):
    """A function that starts a server, of a recipe with everything unless it is given a folder."""
    started = []

    def start(*options, folder=None, **kwargs):
        log = tmp_path / f"stderr-{len(started)}"
        started.append(Serving(folder or recipes(recipe=RECIPE), *options, log=log, **kwargs))
        return started[-1]

    yield start
    for serving in started:
        serving.kill()
