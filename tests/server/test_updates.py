"""Updates after a reload: no resource, and no client's text, holds up what looks after the others."""

import json
import threading
import time
from queue import Queue

import pytest

from promptkit import prompt, resource
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.compiler.loading.loader import Recipes
from promptkit.protocol.limits import Limits
from promptkit.server import Server
from promptkit.server.exchange import reply_to
from promptkit.server.scheduling.workers import WorkerThread
from tests.wire import initialize, line, notification, request


@prompt
def greet():
    """Say hello."""
    return "Hello."


def saying(found):
    """The function of a resource that holds a text, or what is returned."""

    def say() -> str:
        return found() if callable(found) else found

    return say


def catalog_of(**notes):
    """A catalog of the resources with these names; a value is a text, or what returns it."""
    made = [resource(f"notes://{name}", name=name)(saying(found)) for name, found in notes.items()]
    return compile(Recipes(prompts=(greet,), resources=tuple(made)))


class Reading:
    """A client that has read, and subscribed to, every resource of a server that reads by itself."""

    def __init__(self, catalog, uris, **limits):
        self.arrived, self.told, self.ended = Queue(), Queue(), threading.Event()
        self.server = Server(catalog, self.told.put, changes=True, limits=Limits(**limits))
        self.server.read_from(self.arrived.get, self.ended.set)
        self.ask(initialize("2025-11-25"))
        self.arrived.put(line(notification("notifications/initialized")))
        for number, uri in enumerate(uris, 1):
            self.ask(request(number, "resources/read", {"uri": uri}))
            self.ask(request(number, "resources/subscribe", {"uri": uri}))

    def ask(self, message):
        """Send one request; return what comes next."""
        self.arrived.put(line(message))
        return json.loads(self.told.get(timeout=50))

    def updated(self, count):
        """Wait for so many updates; return of which resources."""
        found = set()
        while len(found) < count:
            for text in self.told.get(timeout=50).splitlines():
                message = json.loads(text)
                if message.get("method") == "notifications/resources/updated":
                    found.add(message["params"]["uri"])
        return found

    def end(self):
        """End the input."""
        self.arrived.put(b"")
        assert self.ended.wait(50)


@pytest.fixture
def release():
    """What resources that hang wait for."""
    event = threading.Event()
    yield event
    event.set()


def test_a_resource_that_hangs_stops_no_reload(release):
    """
    The catalog is published at once; after a timeout the hanging resource and unread ones count as updated.
    """
    notes = {"a": "one", "b": "two", "c": "three"}
    reading = Reading(catalog_of(**notes), [f"notes://{name}" for name in notes], timeout=0.3)

    new = catalog_of(a="one", b=lambda: release.wait(60) and "", c="three")
    reading.server.replace(new)
    assert reading.server.catalog is new
    assert reading.updated(2) == {"notes://b", "notes://c"}

    last = catalog_of(a="one", b="two", c="four")
    reading.server.replace(last)
    assert reading.server.catalog is last
    assert "notes://c" in reading.updated(3)
    assert reading.ask(request(9, "ping"))["result"] == {}
    reading.end()


def test_only_what_has_changed_is_told(release):
    """
    What is read in time is compared with what the client has.
    """
    notes = {"a": "one", "b": "two", "c": "three"}
    reading = Reading(catalog_of(**notes), [f"notes://{name}" for name in notes])

    reading.server.replace(catalog_of(a="one", b="more", c="three"))
    assert reading.updated(1) == {"notes://b"}
    reading.server.replace(catalog_of(a="else", b="two", c="three"))
    assert reading.updated(1) == {"notes://a"}
    assert reading.ask(request(9, "ping"))["result"] == {}
    reading.end()


def test_one_reader_at_most(release):
    """
    However often recipes are reloaded beside a resource that hangs, one thread waits for it.
    """
    reading = Reading(catalog_of(a="one"), ["notes://a"], timeout=0.2)
    threads = threading.active_count()

    for _ in range(5):
        reading.server.replace(catalog_of(a=lambda: release.wait(60) and ""))
        assert reading.updated(1) == {"notes://a"}

    assert threading.active_count() <= threads + 2  # the reader, and perhaps the watchdog
    reading.end()


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt, ValueError])
def test_a_resource_that_cannot_be_read(error):
    """
    Whatever it raises, an update is sent: reading it again shows what is wrong.
    """

    def fail():
        raise error

    reading = Reading(catalog_of(a="one", b="two"), ["notes://a", "notes://b"])
    reading.server.replace(catalog_of(a=fail, b="more"))

    assert reading.updated(2) == {"notes://a", "notes://b"}
    reading.end()


def test_threads_that_cannot_be_started(monkeypatch):
    """
    If nothing can be read, everything counts as updated.
    """
    reading = Reading(catalog_of(a="one", b="two"), ["notes://a", "notes://b"])

    def refuse(_thread):
        msg = "can't start new thread"
        raise RuntimeError(msg)

    monkeypatch.setattr(WorkerThread, "start", refuse)
    reading.server.replace(catalog_of(a="one", b="two"))

    assert reading.updated(2) == {"notes://a", "notes://b"}
    reading.end()


URIS = [
    ("resources/read", {"uri": "pages://x"}),
    ("resources/subscribe", {"uri": "pages://x"}),
    ("resources/unsubscribe", {"uri": "pages://x"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "pages://x"}, "argument": {"name": "x", "value": ""}},
    ),
    ("prompts/get", {"name": "pages"}),
]


@pytest.mark.parametrize(("method", "params"), URIS)
def test_a_request_changes_hands_whatever_it_is_about(monkeypatch, method, params):
    """
    The thread that relieves another, under a lock that all need, matches no URI and looks nothing up.
    """

    def noting(name):
        function = getattr(Catalog, name)

        def call(*args):
            looked.append((threading.current_thread().name, name))
            return function(*args)

        return call

    looked, stuck = [], threading.Event()
    reading = Reading(catalog_of(pages="one"), [])

    def wait(exchange, *others):
        if exchange.request.id == 5:
            stuck.wait(50)
        return reply_to(exchange, *others)

    monkeypatch.setattr("promptkit.server.server.reply_to", wait)
    for name in ("resource", "template", "__getitem__"):
        monkeypatch.setattr(Catalog, name, noting(name))
    reading.arrived.put(line(request(5, method, params)))
    assert reading.ask(request(6, "ping"))["id"] == 6  # its thread was relieved
    stuck.set()
    assert json.loads(reading.told.get(timeout=50))["id"] == 5

    assert {thread for thread, _ in looked} <= {"promptkit-worker"}
    reading.end()


def test_a_time_limit_names_what_was_found(release):
    """
    What takes too long is called by its author's name once that is known, and by its method before.
    """

    @resource("pages://{name}")
    def page(name: str) -> str:
        release.wait(60)
        return name

    catalog = compile(Recipes(prompts=(greet,), resources=(page,)))
    reading = Reading(catalog, [], timeout=0.2)
    reply = reading.ask(request(1, "resources/read", {"uri": "pages://secret"}))

    assert reply["error"]["message"] == "resource 'pages://{name}' took longer than its limit of 0.2 s"
    reading.end()


def test_ends_in_time():
    """
    The end waits for no reader.
    """
    release = threading.Event()
    reading = Reading(catalog_of(a="one"), ["notes://a"], timeout=60)
    reading.server.replace(catalog_of(a=lambda: release.wait(60) and ""))
    started = time.monotonic()
    reading.end()
    reading.server.close(0.1)

    assert time.monotonic() - started < 20
    release.set()
