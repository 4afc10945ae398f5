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
from promptkit.preview.live import LiveCatalog
from promptkit.preview.routes import create_application

HOST = "127.0.0.1:8137"
TOKEN = "the-token"  # noqa: S105 (of a test)


class WordDiff:
    """A comparison that uses the command line's word diff, and finds no commit."""

    words = staticmethod(changed_words)

    def changes_since_commit(self, *_):
        """Raise the error for a missing commit."""
        msg = "there is no commit"
        raise PromptkitError(msg)


@attrs.frozen
class Preview:
    """A browser that has sent the token, and the served recipes."""

    client: TestClient
    live: LiveCatalog

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


def get_cookie(app, host=HOST):
    """Return the cookie header of a browser that has sent the token."""
    with closing(TestClient(app, base_url=f"http://{host}", follow_redirects=False)) as client:
        client.get(f"/?access-token={TOKEN}")
        return "; ".join(f"{name}={value}" for name, value in client.cookies.items()).encode()


@pytest.fixture
def make_client():
    """A function that returns a browser without the token."""

    def make(live, host=HOST, app=None):
        app = app or create_application(
            live, "recipes", TOKEN, [HOST, "localhost:8137"], comparison=WordDiff()
        )
        return TestClient(app, base_url=f"http://{host}", follow_redirects=False)

    return make


@pytest.fixture
def serve_preview(recipes, make_client):
    """A function that serves recipes in a preview."""

    def serve(**files):
        live = LiveCatalog(compile(load(recipes(**files))))
        client = make_client(live)
        assert client.get(f"/?access-token={TOKEN}").status_code == 303
        opened.append(client)
        return Preview(client, live)

    opened = []
    yield serve
    for client in opened:
        with closing(client):
            pass
