"""Slow resources delay neither a reload nor a timeout."""

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


def function_of(content):
    """Return a resource function for a string, or for a function that returns one."""

    def read() -> str:
        return content() if callable(content) else content

    return read


def catalog_of(**notes):
    """Return a catalog of resources by name; a value is a string, or a function that returns one."""
    resources = [
        resource(f"notes://{name}", name=name)(function_of(content)) for name, content in notes.items()
    ]
    return compile(Recipes(prompts=(greet,), resources=tuple(resources)))


class Subscriber:
    """A client that has read and subscribed to the resources of a threaded server."""

    def __init__(self, catalog, uris, **limits):
        self.arrived, self.output, self.ended = Queue(), Queue(), threading.Event()
        self.server = Server(catalog, self.output.put, changes=True, limits=Limits(**limits))
        self.server.read_from(self.arrived.get, self.ended.set)
        self.ask(initialize("2025-11-25"))
        self.arrived.put(line(notification("notifications/initialized")))
        for number, uri in enumerate(uris, 1):
            self.ask(request(number, "resources/read", {"uri": uri}))
            self.ask(request(number, "resources/subscribe", {"uri": uri}))

    def ask(self, message):
        """Send one request, and return the next message."""
        self.arrived.put(line(message))
        return json.loads(self.output.get(timeout=50))

    def wait_for_updates(self, count):
        """Wait for *count* updates, and return the URIs of the resources."""
        uris = set()
        while len(uris) < count:
            for text in self.output.get(timeout=50).splitlines():
                message = json.loads(text)
                if message.get("method") == "notifications/resources/updated":
                    uris.add(message["params"]["uri"])
        return uris

    def end(self):
        """End the input."""
        self.arrived.put(b"")
        assert self.ended.wait(50)


@pytest.fixture
def release():
    """Return the event that hanging resources wait for."""
    event = threading.Event()
    yield event
    event.set()


def test_hanging_resource_does_not_delay_a_reload(release):
    """
    A reload publishes the catalog without reading any resource, so a hanging resource does not delay it.
    """
    notes = {"a": "one", "b": "two"}
    subscriber = Subscriber(catalog_of(**notes), [f"notes://{name}" for name in notes])

    new = catalog_of(a="one", b=lambda: release.wait(60) and "")
    subscriber.server.replace(new)
    assert subscriber.server.snapshot.catalog is new
    assert subscriber.wait_for_updates(2) == {"notes://a", "notes://b"}
    assert subscriber.ask(request(9, "ping"))["result"] == {}
    subscriber.end()


def test_timeout_names_the_resource(release):
    """The timeout error names the resource as its author declared it."""

    @resource("pages://{name}")
    def page(name: str) -> str:
        release.wait(60)
        return name

    catalog = compile(Recipes(prompts=(greet,), resources=(page,)))
    subscriber = Subscriber(catalog, [], timeout=0.2)
    reply = subscriber.ask(request(1, "resources/read", {"uri": "pages://secret"}))

    assert reply["error"]["message"].startswith(
        "resource 'pages://{name}' took longer than its limit of 0.2 s"
    )
    subscriber.end()
