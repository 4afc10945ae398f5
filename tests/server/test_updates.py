"""No resource holds up a reload or a time limit."""

import json
import threading
from queue import Queue

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.limits import Limits
from promptkit.server import Server
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
    The catalog is published at once, and no resource is read for that.
    """
    notes = {"a": "one", "b": "two"}
    reading = Reading(catalog_of(**notes), [f"notes://{name}" for name in notes])

    new = catalog_of(a="one", b=lambda: release.wait(60) and "")
    reading.server.replace(new)
    assert reading.server.snapshot.catalog is new
    assert reading.updated(2) == {"notes://a", "notes://b"}
    assert reading.ask(request(9, "ping"))["result"] == {}
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

    assert reply["error"]["message"].startswith(
        "resource 'pages://{name}' took longer than its limit of 0.2 s"
    )
    reading.end()
