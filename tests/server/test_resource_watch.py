"""Subscribers are notified of changes to resources whose authors declare how to detect them."""

import json
import threading

import pytest

from promptkit import prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes
from promptkit.server import notifier
from tests.server.test_updates import Subscriber
from tests.wire import line, modern


@pytest.fixture(autouse=True)
def short_interval(monkeypatch):
    """Compare stamps at short intervals."""
    monkeypatch.setattr(notifier, "_CHECK_EVERY_S", 0.01)


class Client(Subscriber):
    """A client that stops its server at the end of its input."""

    def end(self):
        """End the input, and stop the server."""
        super().end()
        self.server.close(1)


def count_watch_threads():
    """Return the number of threads that compare stamps."""
    return [thread.name for thread in threading.enumerate()].count("promptkit-resources")


def subscribe(*resources, uris):
    """Return a client that has subscribed to resources."""

    @prompt
    def greet():
        return "Hello."

    return Client(compile(Recipes(prompts=(greet,), resources=resources)), uris)


def test_file_of_a_recipe(recipes):
    """A change of a watched file is noticed; its path is relative to the folder of the recipe."""
    folder = recipes(
        logs="""
            from pathlib import Path
            from promptkit import prompt, resource

            @prompt
            def greet():
                return "Hello."

            @resource("logs://today", watch="today.log")
            def today() -> str:
                return Path(__file__).with_name("today.log").read_text()
        """
    )
    (folder / "today.log").write_text("one", encoding="utf-8")
    subscriber = Client(compile(load(folder)), ["logs://today"])

    (folder / "today.log").write_text("one two", encoding="utf-8")

    assert subscriber.wait_for_updates(1) == {"logs://today"}
    subscriber.end()


def test_stamp_function():
    """A watch function returns a version. When it differs, only the function's resource has changed."""
    version = threading.Event()

    @resource("docs://{name}", watch=version.is_set)
    def page(name: str) -> str:
        return name

    @resource("docs://fixed/text", watch=lambda: 1)
    def fixed() -> str:
        return "text"

    subscriber = subscribe(page, fixed, uris=["docs://a", "docs://fixed/text", "docs://b"])
    version.set()

    assert subscriber.wait_for_updates(2) == {"docs://a", "docs://b"}
    subscriber.end()


def test_without_watch_no_thread_starts():
    """No thread starts for resources that declare nothing to watch."""

    @resource("docs://a")
    def page() -> str:
        return "a"

    before = count_watch_threads()
    subscriber = subscribe(page, uris=["docs://a"])

    assert count_watch_threads() <= before
    subscriber.end()


def test_failing_stamp_function_is_reported_once(capfd):
    """A stamp function that raises is reported once, and other stamp functions still work."""
    version = threading.Event()

    @resource("docs://bad", watch=lambda: 1 / 0)
    def bad() -> str:
        return "bad"

    @resource("docs://good", watch=version.is_set)
    def good() -> str:
        return "good"

    subscriber = subscribe(bad, good, uris=["docs://good"])
    version.set()

    assert subscriber.wait_for_updates(1) == {"docs://good"}
    subscriber.end()
    reports = [text for text in capfd.readouterr().err.splitlines() if "cannot be watched" in text]
    assert reports == ["promptkit: resource 'bad' cannot be watched: ZeroDivisionError: division by zero"]


def test_stream_of_the_modern_era():
    """A stream of the modern era gets the notification of an update."""
    version = threading.Event()

    @resource("docs://a", watch=version.is_set)
    def page() -> str:
        return "a"

    subscriber = subscribe(page, uris=[])
    params = {"notifications": {"resourceSubscriptions": ["docs://a"]}}
    subscriber.arrived.put(line(modern(7, "subscriptions/listen", params)))
    acknowledged = json.loads(subscriber.output.get(timeout=50))
    version.set()

    assert acknowledged["method"] == "notifications/subscriptions/acknowledged"
    assert subscriber.wait_for_updates(1) == {"docs://a"}
    subscriber.end()


@pytest.mark.parametrize("watch", [3, [3], {"a"}], ids=str)
def test_invalid_watch(watch):
    """Anything but paths or a function is an error at the declaration."""
    with pytest.raises(TypeError, match="watch must be a path, a list of paths or a function, not "):
        resource("docs://a", watch=watch)
