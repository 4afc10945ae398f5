"""What a token that is known costs a request: two servers side by side, with tokens and without."""

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import attrs

from benchmarks import recipes
from benchmarks.http.load import load
from benchmarks.http.peers import under_uvicorn
from benchmarks.http.server import HttpServer, Post, free_port
from benchmarks.runner import UNSET

#: How often the two servers take turns.
TURNS = 5


@attrs.frozen
class PostWithToken(Post):
    """
    A request of the modern era with a token.

    Args:
        token:
            The token.
    """

    token: str

    @property
    def fields(self) -> dict[str, str]:
        """
        The fields of its head.
        """
        return {**super().fields, "Authorization": f"Bearer {self.token}"}


def cost_of_a_token(
    folder: Path,
    count: int,
    plain: Post,
    *,
    seconds: int,
    processors: tuple[set[int] | None, set[int] | None],
) -> float:
    """
    Return how much processor time a token that is known adds to a request, in seconds.

    Args:
        folder:
            Where the folders of recipes lie.

        count:
            How many prompts there are.

        plain:
            The request.

        seconds:
            How long each turn takes.

        processors:
            Those of the servers, and those of the load.

    Raises:
        Absent: If wrk is not installed.

        Refused: If a server does not answer.
    """
    token = secrets.token_urlsafe(32)
    shell = {name: value for name, value in os.environ.items() if name not in UNSET}
    own = {"BENCHMARK_TOKEN": token, "BENCHMARK_RECIPES": str(recipes.folder(folder, count))}
    posts = {"with_tokens": PostWithToken(plain.case, token), "without": plain}
    spent: dict[str, list[float]] = {name: [] for name in posts}
    with ExitStack() as stack:
        servers = {
            name: stack.enter_context(_start(name, {**shell, **own}, post, processors[0]))
            for name, post in posts.items()
        }
        for _ in range(1 + TURNS):
            for name, post in posts.items():
                spent[name].append(_work(servers[name], post, seconds, processors[1]))
    # What disturbs a turn only adds to it. The first one warms them up.
    with_token, without = (min(spent[name][1:]) for name in posts)
    return with_token - without


def _start(name: str, environment: Mapping[str, str], post: Post, processors: set[int] | None) -> HttpServer:
    command = under_uvicorn(f"with_tokens:{name}", "--factory", "--lifespan", "off")
    port = free_port()
    put = {"PORT": str(port), "WORKERS": "1"}
    return HttpServer([put.get(part, part) for part in command], environment, port, post, processors)


def _work(server: HttpServer, post: Post, seconds: int, processors: set[int] | None) -> float:
    """The processor time of a request."""
    before = sum(server.processor_times())
    found = load(server.port, post, seconds=seconds, processors=processors)
    return (sum(server.processor_times()) - before) / found.requests
