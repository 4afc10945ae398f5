"""Fixtures that run `promptkit dev` as a process and open its address in a browser."""

from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.preview.browser.window import TIMEOUT_MS, Window

pytest.importorskip("playwright", reason="Playwright is not installed")

from playwright.sync_api import expect

from benchmarks.browser import NoBrowserError, chromium, serve_preview


@pytest.fixture(scope="module")
def browser():
    """Chromium, started once per module, because Playwright occupies asyncio while it runs."""
    expect.set_options(timeout=TIMEOUT_MS)
    try:
        with chromium() as started:
            yield started
    except NoBrowserError as error:
        pytest.skip(str(error))


class Visit:
    """
    A window that has opened the address printed by ``promptkit dev``.

    Args:
        window:
            The window.

        folder:
            The folder of the recipes.

        address:
            The printed address.
    """

    def __init__(self, window, folder: Path, address: str):
        self.window, self.folder, self.address = window, folder, address
        self.page = window.page
        self.page.goto(address)

    def open(self, path: str):
        """Open a path and return the page."""
        self.page.goto(self.window.origin + path)
        return self.page

    def save(self, name: str, source: str):
        """Save a recipe file atomically, as editors do."""
        (self.folder / f".{name}").write_text(source, encoding="utf-8")
        (self.folder / f".{name}").replace(self.folder / name)

    def prompt(self, name: str, query: str = ""):
        """Open the page of a prompt."""
        return self.open(f"/prompts/{name}{query}")


@pytest.fixture
def servers():
    """An exit stack for the servers of a test; it closes after the windows."""
    with ExitStack() as started:
        yield started


@pytest.fixture
def windows(browser, servers):
    """A function that opens a window; teardown fails if any window recorded a problem."""
    opened = []

    def open_window(address, **options):
        url = urlsplit(address)
        opened.append(Window(browser, f"{url.scheme}://{url.netloc}", **options))
        return opened[-1]

    yield open_window
    problems = []
    for window in opened:
        window.context.close()
        problems += window.problems
    assert problems == []


@pytest.fixture
def visit_recipes(recipes, windows, servers):
    """A function that serves recipes and opens them in a window."""

    def open_recipes(**files):
        folder = recipes(**files)
        address = servers.enter_context(serve_preview(folder))
        return Visit(windows(address), folder, address)

    return open_recipes


@pytest.fixture(scope="module")
def served_recipes(request, tmp_path_factory):
    """The folder and the address of the recipes that all tests of a module share."""
    folder = tmp_path_factory.mktemp("preview") / "recipes"
    folder.mkdir()
    for name, source in request.module.RECIPES.items():
        (folder / name).write_text(source, encoding="utf-8")
    with serve_preview(folder) as address:
        yield folder, address


@pytest.fixture
def visit(served_recipes, windows):
    """A separate window on the module's recipes."""
    folder, address = served_recipes
    return Visit(windows(address), folder, address)
