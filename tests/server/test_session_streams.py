"""The streams of sessions over HTTP, and the limits on them."""

import json
from types import SimpleNamespace

import pytest

from promptkit.protocol.capabilities import Capabilities, ServerInfo
from promptkit.protocol.http.messages import STREAM
from promptkit.protocol.jsonrpc import MethodNotFound, TooManyRequests
from promptkit.protocol.session import Session
from promptkit.server import notifier
from promptkit.server.notifier import Streams

URI = "text://a"


class Client:
    """The requests of one session."""

    def __init__(self, session_id):
        self.session_id, self.scopes, self.received = session_id, None, []
        self.revision = SimpleNamespace(stateless=False)

    def request(self, method, uri=URI):
        """Return a request."""
        return SimpleNamespace(
            method=method,
            params=SimpleNamespace(uri=uri),
            session_id=self.session_id,
            scopes=self.scopes,
            revision=self.revision,
            sender=lambda _send: self.received.append,
        )


@pytest.fixture
def shared_changes():
    """The changes that other workers apply as well."""
    return []


@pytest.fixture
def streams(shared_changes):
    """The streams of a server whose recipes can change."""
    connection = Session(ServerInfo("tests", "1"), Capabilities(changes=True))
    return Streams(connection, lambda _line: None, shared_changes.append)


def change(streams):
    """Notify all streams of a change of the prompts, and of the resource at `URI`."""
    for notifiers in streams.by_scopes.values():
        for each in notifiers:
            each.notify({"prompts/list"}, lambda uri: uri == URI)


def methods(client):
    """Return the methods of the notifications on a client's stream."""
    lines = b"".join(client.received).splitlines()
    return [json.loads(line)["method"] for line in lines]


def test_a_stream_gets_what_its_session_has_subscribed_to(streams, shared_changes):
    """Every stream is notified of lists; only subscribers are notified of a resource."""
    subscriber, other = Client("one"), Client("two")
    streams.change_subscription(subscriber.request("resources/subscribe"), is_subscribed=True)
    for client in (subscriber, other):
        streams.stream(client.request(STREAM), lambda: None)

    change(streams)

    assert methods(subscriber) == ["notifications/prompts/list_changed", "notifications/resources/updated"]
    assert methods(other) == ["notifications/prompts/list_changed"]
    assert [(each.session_id, each.uri, each.is_subscribed) for each in shared_changes] == [
        ("one", URI, True)
    ]


def test_the_end_of_a_subscription(streams, shared_changes):
    """After a subscription ends, its resource is not reported; after a stream ends, nothing is."""
    client = Client("one")
    opening = client.request(STREAM)
    streams.stream(opening, lambda: None)
    streams.change_subscription(client.request("resources/subscribe"), is_subscribed=True)
    streams.change_subscription(client.request("resources/unsubscribe"), is_subscribed=False)
    change(streams)
    streams.cancel(opening)
    change(streams)

    assert methods(client) == ["notifications/prompts/list_changed"]
    assert [each.is_subscribed for each in shared_changes] == [True, False]


def test_a_change_in_another_worker(streams, shared_changes):
    """A subscription that another worker has received applies to this worker, and is not passed on again."""
    client = Client("one")
    streams.stream(client.request(STREAM), lambda: None)
    streams.apply(notifier.SubscriptionChange("one", URI, is_subscribed=True))
    change(streams)

    assert "notifications/resources/updated" in methods(client)
    assert shared_changes == []


def test_without_a_session(streams):
    """A client without a session cannot subscribe to anything."""
    for is_subscribed in (True, False):
        with pytest.raises(MethodNotFound):
            streams.change_subscription(
                Client("").request("resources/subscribe"), is_subscribed=is_subscribed
            )


def test_sessions_without_a_stream_are_evicted(streams, monkeypatch):
    """If there are too many sessions, the least recently used one without a stream is evicted."""
    monkeypatch.setattr(notifier, "_MAX_SESSIONS", 3)
    oldest, second = Client("oldest"), Client("second")
    streams.stream(oldest.request(STREAM), lambda: None)
    for client in (oldest, second, Client("third"), Client("fourth")):
        streams.change_subscription(client.request("resources/subscribe"), is_subscribed=True)
    streams.stream(second.request(STREAM), lambda: None)

    change(streams)

    assert "notifications/resources/updated" in methods(oldest)
    assert "notifications/resources/updated" not in methods(second)


def test_limits(streams, monkeypatch):
    """The subscriptions of all sessions together are limited."""
    monkeypatch.setattr(notifier, "_MAX_URIS", 2)
    for number in range(2):
        streams.change_subscription(
            Client(f"session {number}").request("resources/subscribe"), is_subscribed=True
        )

    with pytest.raises(TooManyRequests, match="at most 2 subscriptions"):
        streams.change_subscription(Client("three").request("resources/subscribe"), is_subscribed=True)
