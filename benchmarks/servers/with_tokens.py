"""promptkit as an ASGI application, for which each request needs a token; and the same without."""

import os
import time
from functools import partial

from promptkit.asgi import Application, Principal, app


class Known:
    """Takes one token, for as long as the server is measured."""

    def verify(self, token: str) -> Principal | None:
        """Return who bears a token."""
        if token != os.environ["BENCHMARK_TOKEN"]:
            return None
        return Principal("ada", {"prompts:read"}, time.time() + 3600)


_app = partial(app, os.environ["BENCHMARK_RECIPES"], watch=False)


def with_tokens() -> Application:
    """Return the application that asks for tokens."""
    return _app(verifier=Known(), required_scopes=["prompts:read"])


def without() -> Application:
    """Return the one that asks nobody."""
    return _app()
