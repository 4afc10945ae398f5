"""Fixtures for the server tests."""

import pytest

from tests.server.busy_server import BUSY, Process


@pytest.fixture
def start(recipes):
    """Return a function that starts a client of a server with slow prompts."""
    started = []

    def make(*options, source=BUSY, **kwargs):
        client = Process(recipes(recipe=source), *options, **kwargs)
        started.append(client.process)
        return client

    yield make
    for process in started:
        process.kill()
        process.wait()
        process.stdin.close()
        process.stdout.close()
        process.stderr.close()
