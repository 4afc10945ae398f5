"""Fixtures that request the preview's pages as a browser does."""

from contextlib import closing

import attrs
import pytest

pytest.importorskip("starlette")

from starlette.testclient import TestClient

from promptkit.cli.diff_changes import changed_words
from promptkit.compiler.compilation import compile
from promptkit.errors.exceptions import PromptkitError
from promptkit.loader.loader import load
from promptkit.preview.live import Live
from promptkit.preview.routes import application

HOST = "127.0.0.1:8137"
TOKEN = "the-token"  # noqa: S105 (of a test)


class Words:
    """A comparison with the command line's word diff, but without a commit."""

    words = staticmethod(changed_words)

    def since_commit(self, *_):
        """Raise the error for a missing commit."""
        msg = "there is no commit"
        raise PromptkitError(msg)


@attrs.frozen
class Preview:
    """A browser that has sent the token, and the served recipes."""

    client: TestClient
    live: Live

    def page(self, path):
        """Return the text of an existing page."""
        response = self.client.get(path)
        assert response.status_code == 200
        return response.text

    def render(self, name, **values):
        """Submit the form of a prompt and return the reply."""
        response = self.client.post(f"/prompts/{name}/render", data=values)
        assert response.status_code == 200
        return response.text


def cookie_of(pages, host=HOST):
    """Return the cookie header of a browser that has sent the token."""
    with closing(TestClient(pages, base_url=f"http://{host}", follow_redirects=False)) as client:
        client.get(f"/?access-token={TOKEN}")
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items()).encode()


@pytest.fixture
def stranger():
    """A function that returns a browser without the token."""

    def meet(live, host=HOST, pages=None):
        pages = pages or application(live, "recipes", TOKEN, [HOST, "localhost:8137"], comparison=Words())
        return TestClient(pages, base_url=f"http://{host}", follow_redirects=False)

    return meet


@pytest.fixture
def preview(recipes, stranger):
    """A function that serves recipes in a preview."""

    def show(**files):
        live = Live(compile(load(recipes(**files))))
        client = stranger(live)
        assert client.get(f"/?access-token={TOKEN}").status_code == 303
        opened.append(client)
        return Preview(client, live)

    opened = []
    yield show
    for client in opened:
        with closing(client):
            pass
