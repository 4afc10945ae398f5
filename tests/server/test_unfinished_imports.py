"""What is said to clients that wait for recipes which are still being imported."""

import json
import threading
from queue import Queue

import pytest

from promptkit import prompt
from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.server.snapshot import Snapshot
from tests.wire import line, modern

ended = threading.Event()


class Unfinished(Catalog):
    """
    A catalog in which everything is waited for.
    """

    __slots__ = ()

    def __getitem__(self, name):
        """Find a prompt, later."""
        ended.wait()
        return super().__getitem__(name)

    def resource(self, uri):
        """Find a resource, later."""
        ended.wait()
        return super().resource(uri)


@prompt
def greet() -> str:
    return "Hello."


@pytest.fixture
def told():
    """What a server says whose recipes are still being imported, once it was asked for two of them."""
    ended.clear()
    arrived, told = Queue(), Queue()
    snapshot = Snapshot(Unfinished((greet.compiled,)), ServerInfo("test", "1"), 10, changes=False)
    lines = iter([10, 20, 30])
    snapshot.importing = lambda: f": slow.py is at line {next(lines)}"
    server = Server(snapshot, told.put, limits=Limits(timeout=0.2))
    server.read_from(arrived.get, lambda: None)
    yield arrived, told
    ended.set()
    arrived.put(b"")
    server.close(1)


@pytest.mark.parametrize(
    ("method", "params"),
    [("prompts/get", {"name": "greet"}), ("resources/read", {"uri": "notes://today"})],
)
def test_who_waits_too_long_is_told_what_is_imported(told, method, params):
    """
    The refusal says where the import is when the time is over.
    """
    arrived, told = told
    arrived.put(line(modern(1, method, params)))
    error = json.loads(told.get(timeout=20))["error"]

    said = "the recipes are still being imported after 0.2 s: slow.py is at line 10"
    assert (error["code"], error["message"].partition(" (error ")[0]) == (-32603, said)
