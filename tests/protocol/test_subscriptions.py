import sys
from threading import Thread

import pytest

from promptkit import prompt, resource
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import compile
from promptkit.errors.rules import Rule
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import Capabilities
from promptkit.protocol.subscriptions import MAX_CHARACTERS, MAX_SUBSCRIPTIONS, Subscriptions
from promptkit.protocol.wire import SubscriptionFilter
from tests.wire import (
    HANDSHAKES,
    MODERN,
    REVISIONS,
    Client,
    envelope,
    initialize,
    line,
    modern,
    notification,
    request,
)

STREAM = "io.modelcontextprotocol/subscriptionId"
ALL = {
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["notes://a", "notes://b"],
}


def returning(text):
    return lambda: text


def catalog_of(names="ab", notes=None):
    """Return a catalog of prompts with these names, and a resource for each of *notes*."""
    prompts = [prompt(name=name)(lambda: "x") for name in names]
    notes = {"a": "one"} if notes is None else notes
    resources = [resource(f"notes://{name}", name=name)(returning(text)) for name, text in notes.items()]
    catalog = compile(Recipes(prompts=tuple(prompts), resources=tuple(resources)))
    assert {diagnostic.rule for diagnostic in catalog.diagnostics} <= {Rule.NO_PROMPTS}
    return catalog


def client_of(revision, **options):
    return Client(catalog_of(), revision, changes=True, **options)


def replace_catalog(client, catalog):
    """Replace the served catalog, and return the messages that are sent."""
    client.sent.clear()
    client.server.replace(catalog)
    return client.replies()


def templates(scheme="any"):
    """Return a catalog with a template for every URI of a scheme."""
    return compile(Recipes(resources=(resource(f"{scheme}://{{name}}")(lambda name: name),)))


def opening(revision):
    """Return the method and the params with which a client requests the capabilities."""
    if revision == MODERN:
        return ("server/discover",)
    return "initialize", initialize(revision)["params"]


def stream_notification(method, stream, **params):
    return notification(method, {**params, "_meta": {STREAM: stream}})


class TestSessions:
    @pytest.mark.requirement("prompts/list-changed/session", "resources/list-changed/session")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_changed_list(self, revision):
        """A session is notified of each list that changes, without a subscription id."""
        client = client_of(revision)

        assert replace_catalog(client, catalog_of("abc")) == [
            notification("notifications/prompts/list_changed", {})
        ]
        assert replace_catalog(client, catalog_of("abc", {})) == [
            notification("notifications/resources/list_changed", {})
        ]
        assert replace_catalog(client, catalog_of("abc", {})) == []
        assert len(replace_catalog(client, catalog_of("a"))) == 2

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_equal_list(self, revision):
        """An equal list causes no notification."""
        client = client_of(revision)
        if revision == MODERN:
            filters = {"promptsListChanged": True, "resourcesListChanged": True}
            client.post("subscriptions/listen", {"notifications": filters}, 7)

        assert replace_catalog(client, catalog_of()) == []

    def test_uninitialized_client_gets_no_notification(self):
        """No notification is sent between `initialize` and `notifications/initialized`."""
        client = Client(catalog_of(), None, changes=True)
        client.send(line(initialize("2025-06-18")))

        assert replace_catalog(client, catalog_of("abc")) == []

    def test_modern_client_without_a_stream(self):
        """A modern client without a stream gets no notifications."""
        client = client_of(MODERN)
        client.ask("prompts/list")

        assert replace_catalog(client, catalog_of("abc")) == []

    def test_new_list_is_served_after_the_notification(self):
        """A client that requests the list after the notification gets the new one."""
        client = client_of("2025-06-18")
        replace_catalog(client, catalog_of("xyz"))

        listed = client.ask("prompts/list")["result"]["prompts"]

        assert [item["name"] for item in listed] == ["x", "y", "z"]

    @pytest.mark.requirement("resources/subscribe", "resources/unsubscribe")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_subscription(self, revision):
        """A subscriber is notified of updates until it unsubscribes."""
        client = client_of(revision)
        client.ask("resources/read", {"uri": "notes://a"})
        updated = notification("notifications/resources/updated", {"uri": "notes://a"})

        assert client.ask("resources/subscribe", {"uri": "notes://a"})["result"] == {}
        assert replace_catalog(client, catalog_of(notes={"a": "two"})) == [updated]
        client.ask("resources/unsubscribe", {"uri": "notes://a"})
        assert replace_catalog(client, catalog_of(notes={"a": "three"})) == []

    @pytest.mark.requirement("resources/unsubscribed")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_other_resources(self, revision):
        """Reading is not subscribing, and a subscription applies to one resource."""
        client = Client(catalog_of(notes={"a": "one", "b": "one"}), revision, changes=True)
        for name in "ab":
            client.ask("resources/read", {"uri": f"notes://{name}"})

        assert replace_catalog(client, catalog_of(notes={"a": "two", "b": "two"})) == []
        client.ask("resources/subscribe", {"uri": "notes://b"})
        messages = replace_catalog(client, catalog_of(notes={"a": "three", "b": "three"}))
        assert [message["params"]["uri"] for message in messages] == ["notes://b"]

    def test_resources_that_were_not_reloaded(self):
        """A subscriber is notified only if resources were reloaded."""
        first = catalog_of("a")
        client = Client(first, "2025-06-18", changes=True)
        client.ask("resources/subscribe", {"uri": "notes://a"})
        same_resources = Catalog(catalog_of("ab").prompts, (), first.resources)

        assert [message["method"] for message in replace_catalog(client, same_resources)] == [
            "notifications/prompts/list_changed"
        ]
        assert len(replace_catalog(client, catalog_of("ab"))) == 1

    def test_reloaded_resources(self):
        """A subscriber is notified of a resource that was reloaded, or whose template was."""
        first = catalog_of(notes={"a": "one", "b": "one"}).resources + templates("notes").resources
        client = Client(Catalog((), (), first), "2025-06-18", changes=True)
        for name in ("a", "b", "c"):
            client.ask("resources/subscribe", {"uri": f"notes://{name}"})
        second = (catalog_of(notes={"a": "two"}).resources[0], *first[1:])
        third = second[:2] + templates("notes").resources

        def uris(resources):
            return [
                message["params"]["uri"] for message in replace_catalog(client, Catalog((), (), resources))
            ]

        assert uris(first) == []
        assert uris(second) == ["notes://a"]
        assert uris(third) == ["notes://c"]

    @pytest.mark.requirement("resources/unsubscribe")
    @pytest.mark.requirement("lifecycle/operation/capabilities", "lifecycle/operation/capabilities-advised")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_first_resource(self, revision):
        """A session is notified of the first resource."""
        client = Client(catalog_of(notes={}), revision, changes=True)

        (message,) = replace_catalog(client, catalog_of())
        assert message["method"] == "notifications/resources/list_changed"

    def test_second_handshake(self):
        """After a second handshake, no notification is sent until the client is initialized again."""
        client = client_of("2025-11-25")
        client.ask("resources/subscribe", {"uri": "notes://a"})
        client.send(line(initialize("2025-11-25")))

        assert replace_catalog(client, catalog_of("abc", {"a": "two"})) == []

    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_unknown_resource(self, revision):
        """Subscribing to an unknown resource fails; unsubscribing from it does not."""
        client = client_of(revision)

        assert client.ask("resources/subscribe", {"uri": "notes://z"})["error"] == {
            "code": -32002,
            "message": "unknown resource 'notes://z'; did you mean 'notes://a'?",
            "data": {"uri": "notes://z"},
        }
        assert client.ask("resources/unsubscribe", {"uri": "notes://z"})["result"] == {}


class TestStreams:
    @pytest.mark.requirement("subscriptions/acknowledged")
    def test_acknowledgement(self):
        """The first message of a stream lists its notifications, with the id of the request."""
        opened = client_of(MODERN).post("subscriptions/listen", {"notifications": ALL}, "s")

        assert opened == [
            stream_notification("notifications/subscriptions/acknowledged", "s", notifications=ALL)
        ]

    @pytest.mark.requirement("subscriptions/nothing-before", "subscriptions/acknowledged")
    def test_change_during_the_acknowledgement(self):
        """A change during the acknowledgement is sent after it."""
        client = client_of(MODERN)
        append, changing = client.sent.append, Thread(target=client.server.replace, args=[catalog_of("abc")])

        def send(data):
            if not changing.ident:
                changing.start()
                changing.join(0.1)  # ends early only if the change does not wait
            append(data)

        client.server._notifier._send = client.server._send = send
        opened = client.post("subscriptions/listen", {"notifications": ALL}, "s")
        changing.join()

        assert [message["method"] for message in opened[:1]] == ["notifications/subscriptions/acknowledged"]
        assert client.replies()[1] == stream_notification("notifications/prompts/list_changed", "s")

    @pytest.mark.requirement("subscriptions/subset")
    @pytest.mark.parametrize(
        ("filters", "accepted"),
        [
            ({}, {}),
            ({"toolsListChanged": True}, {}),
            ({"promptsListChanged": True, "toolsListChanged": True}, {"promptsListChanged": True}),
            ({"promptsListChanged": False}, {}),
            ({"resourceSubscriptions": []}, {}),
            ({"resourcesListChanged": True, "x": 1}, {"resourcesListChanged": True}),
        ],
        ids=str,
    )
    def test_unsupported_notifications(self, filters, accepted):
        """The acknowledgement lists only requested and supported notifications."""
        (opened,) = client_of(MODERN).post("subscriptions/listen", {"notifications": filters})

        assert opened["params"]["notifications"] == accepted

    @pytest.mark.requirement("subscriptions/subset")
    @pytest.mark.parametrize(
        ("catalog", "changes", "accepted"),
        [(catalog_of(), False, {}), (catalog_of(notes={}), False, {}), (catalog_of(notes={}), True, ALL)],
        ids=["nothing-changes", "nothing-changes-and-no-resources", "no-resources-yet"],
    )
    def test_server_without_changes(self, catalog, changes, accepted):
        """
        A server whose lists cannot change promises no notifications; other servers do, even without
        resources.
        """
        client = Client(catalog, MODERN, changes=changes)

        (opened,) = client.post("subscriptions/listen", {"notifications": ALL})

        assert opened["params"]["notifications"] == accepted

    @pytest.mark.requirement("prompts/list-changed/stream", "resources/list-changed/stream")
    @pytest.mark.requirement("subscriptions/id", "subscriptions/resources")
    @pytest.mark.parametrize("stream", [7, "7", 0, "", "ü"])
    def test_subscription_id(self, stream):
        """Every notification has the id of the request, in its type."""
        client = client_of(MODERN)
        opened = client.post("subscriptions/listen", {"notifications": ALL}, stream)

        assert opened == [
            stream_notification("notifications/subscriptions/acknowledged", stream, notifications=ALL)
        ]
        assert replace_catalog(client, catalog_of("abc", {"b": "x"})) == [
            stream_notification("notifications/prompts/list_changed", stream),
            stream_notification("notifications/resources/list_changed", stream),
            stream_notification("notifications/resources/updated", stream, uri="notes://a"),
            stream_notification("notifications/resources/updated", stream, uri="notes://b"),
        ]

    @pytest.mark.requirement("subscriptions/unrequested")
    @pytest.mark.parametrize(
        ("filters", "methods"),
        [
            ({}, []),
            ({"promptsListChanged": False, "resourcesListChanged": False, "resourceSubscriptions": []}, []),
            ({"toolsListChanged": True}, []),
            ({"promptsListChanged": True}, ["notifications/prompts/list_changed"]),
            ({"resourcesListChanged": True}, ["notifications/resources/list_changed"]),
            ({"resourceSubscriptions": ["notes://a"]}, ["notifications/resources/updated"]),
        ],
        ids=str,
    )
    def test_unrequested_notifications(self, filters, methods):
        """A stream gets only the notifications that its filter names."""
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": filters}, "s")

        changed = replace_catalog(client, catalog_of("abc", {"a": "two", "b": "new"}))

        assert [message["method"] for message in changed] == methods

    @pytest.mark.requirement("subscriptions/resources", "subscriptions/unrequested")
    def test_unrequested_resources(self):
        """A stream gets only updates of the resources that its filter names."""
        client = Client(catalog_of(notes={"a": "one", "b": "one"}), MODERN, changes=True)
        client.post("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["notes://a"]}}, "s")

        own = replace_catalog(client, catalog_of(notes={"a": "two", "b": "two"}))

        assert own == [stream_notification("notifications/resources/updated", "s", uri="notes://a")]

    @pytest.mark.requirement("subscriptions/several", "subscriptions/cancelled")
    def test_several_streams(self):
        """Each stream gets its own notifications, and ends separately."""
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, 1)
        client.post("subscriptions/listen", {"notifications": {"resourcesListChanged": True}}, 2)
        client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, "1")

        first = replace_catalog(client, catalog_of("abc"))
        cancelled = client.send(line(notification("notifications/cancelled", {"requestId": 1})))
        second = replace_catalog(client, catalog_of("ab"))

        assert [message["params"]["_meta"][STREAM] for message in first] == [1, "1"]
        assert cancelled == []
        assert [message["params"]["_meta"][STREAM] for message in second] == ["1"]

    def test_id_of_an_open_stream(self):
        """A second request with the id of an open stream is rejected; the id of a closed stream is free."""
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": ALL}, 1)

        assert client.ask("prompts/list", number=1)["error"]["code"] == -32600
        client.send(line(notification("notifications/cancelled", {"requestId": 1})))
        assert "result" in client.ask("prompts/list", number=1)

    @pytest.mark.requirement("subscriptions/graceful", "subscriptions/torn-down", "subscriptions/id")
    def test_end_of_a_stream(self):
        """At shutdown, a stream gets its result and then a cancellation."""
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": ALL}, "s")
        client.sent.clear()
        client.server.close(0)
        result, cancelled = client.replies()

        assert (result["id"], result["result"]["resultType"]) == ("s", "complete")
        assert result["result"]["_meta"][STREAM] == "s"
        assert cancelled == notification("notifications/cancelled", {"requestId": "s"})

    @pytest.mark.requirement("subscriptions/graceful", "subscriptions/torn-down")
    def test_end_of_several_streams(self):
        """Each open stream gets its own result and cancellation, and no further message."""
        client = client_of(MODERN)
        for stream in (1, "1", 2):
            client.post("subscriptions/listen", {"notifications": ALL}, stream)
        client.send(line(notification("notifications/cancelled", {"requestId": 2})))
        client.server.close(0)
        ended = [
            (message.get("id"), message.get("params", {}).get("requestId")) for message in client.replies()
        ]

        assert ended == [(1, None), (None, 1), ("1", None), (None, "1")]
        assert replace_catalog(client, catalog_of("abc")) == []

    @pytest.mark.parametrize("filters", [None, 3, [], {"promptsListChanged": "yes"}], ids=str)
    def test_invalid_filter(self, filters):
        """An invalid filter is rejected, and no stream is opened."""
        client = client_of(MODERN)

        assert client.ask("subscriptions/listen", {"notifications": filters})["error"]["code"] == -32602
        assert replace_catalog(client, catalog_of("abc")) == []

    def test_session_and_stream(self):
        """A session and a stream on the same connection get separate notifications."""
        client = Client(catalog_of(), None, changes=True)
        client.send(line(initialize("2025-11-25")) + line(notification("notifications/initialized")))
        client.send(line(modern(5, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})))

        assert replace_catalog(client, catalog_of("abc")) == [
            notification("notifications/prompts/list_changed", {}),
            stream_notification("notifications/prompts/list_changed", 5),
        ]

    @pytest.mark.requirement("resources/unsubscribed")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_updates_of_a_stream_are_not_sent_to_the_session(self, revision):
        """Updates for a stream are not sent to a session on the same connection."""
        client = Client(catalog_of(), None, changes=True)
        client.send(line(initialize(revision)) + line(notification("notifications/initialized")))
        filters = {"resourceSubscriptions": ["notes://a"]}
        client.send(line(modern(5, "subscriptions/listen", {"notifications": filters})))

        assert replace_catalog(client, catalog_of(notes={"a": "two"})) == [
            stream_notification("notifications/resources/updated", 5, uri="notes://a")
        ]


def stream_of(uris):
    return {"notifications": {"resourceSubscriptions": uris}}


class TestLimits:
    def test_subscriptions_of_a_session(self):
        """The number of subscriptions is limited; after one has ended, another can be added."""
        client = Client(templates(), "2025-11-25", changes=True)
        for number in range(MAX_SUBSCRIPTIONS):
            client.server.receive_data(
                line(request(number, "resources/subscribe", {"uri": f"any://{number}"}))
            )

        rejected = client.ask("resources/subscribe", {"uri": "any://more"})
        again = client.ask("resources/subscribe", {"uri": "any://7"})
        client.ask("resources/unsubscribe", {"uri": "any://7"})

        assert rejected["error"] == {
            "code": 429,
            "message": "a client can have at most 10,000 subscriptions to resources: end some of them first",
        }
        assert again["result"] == {}
        assert client.ask("resources/subscribe", {"uri": "any://more"})["result"] == {}

    def test_subscriptions_of_streams(self):
        """The subscriptions of all open streams are counted together."""
        client = Client(templates(), MODERN, changes=True)
        uris = [f"any://{number}" for number in range(MAX_SUBSCRIPTIONS // 2)]
        for number in ("a", "b"):
            client.post("subscriptions/listen", stream_of(uris), number)

        rejected = client.ask("subscriptions/listen", stream_of(["any://1"]), "c")
        (bare,) = client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, "d")
        client.send(line(notification("notifications/cancelled", {"requestId": "a"})))
        (opened,) = client.post("subscriptions/listen", stream_of(uris), "c")

        assert rejected["error"]["code"] == 429
        assert bare["method"] == opened["method"] == "notifications/subscriptions/acknowledged"

    @pytest.mark.parametrize(("size", "code"), [(MAX_CHARACTERS, None), (MAX_CHARACTERS + 1, -32602)])
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_length_of_a_uri(self, revision, size, code):
        """The length of a URI is limited, because it is stored."""
        client, uri = Client(templates(), revision, changes=True), "any://".ljust(size, "x")

        if revision == MODERN:
            (reply,) = client.post("subscriptions/listen", stream_of([uri]), "s")
        else:
            reply = client.ask("resources/subscribe", {"uri": uri})

        assert reply.get("error", {}).get("code") == code

    def test_linear_time(self):
        """Notifying 16 times as many streams takes at most 24 times as many calls."""

        def calls(size):
            subscriptions, count = Subscriptions(), 0
            filters = [
                SubscriptionFilter(resource_subscriptions=[f"any://{number}"]) for number in range(size)
            ]
            for number, filter_ in enumerate(filters):
                subscriptions.listen(number, filter_, Capabilities(changes=True))

            def note(_frame, event, _argument):
                nonlocal count
                count += event in {"call", "c_call"}

            sys.setprofile(note)
            notifications = [subscriptions.encode_resource_change(uri) for uri in subscriptions.uris]
            sys.setprofile(None)
            assert all(notifications)
            return count

        assert calls(16 * 50) <= 24 * calls(50)


class TestCapabilities:
    @pytest.mark.requirement("prompts/capability", "resources/capability", "completion/capability")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("changes", [True, False])
    @pytest.mark.parametrize(("names", "notes"), [("", {}), ("ab", {"a": "x"})], ids=["empty", "filled"])
    def test_declared_capabilities(self, revision, changes, names, notes):
        """
        Prompts, resources, completion and skills are always declared, even before the import.

        In the modern era the tool list is always answered, so it is declared, too.
        """
        client = Client(catalog_of(names, notes), revision, changes=changes)

        declared = client.ask(*opening(revision))["result"]["capabilities"]

        completions = {"completions": {}} if revision >= "2025-03-26" else {}
        tools = {"tools": {"listChanged": False}} if revision == MODERN else {}
        assert declared == {
            "prompts": {"listChanged": changes},
            "resources": {"subscribe": changes, "listChanged": changes},
            "extensions": {"io.modelcontextprotocol/skills": {"directoryRead": True}},
            **completions,
            **tools,
        }

    @pytest.mark.requirement("prompts/capabilities-respected")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("changes", [True, False])
    def test_undeclared_changes(self, revision, changes):
        """A client is notified of changes only if they were declared."""
        client = Client(catalog_of(), revision, changes=changes)
        if revision == MODERN:
            client.post("subscriptions/listen", {"notifications": ALL}, "s")

        declared = client.ask(*opening(revision))["result"]["capabilities"]["prompts"]["listChanged"]
        client.send(line(notification("notifications/initialized")))

        assert (declared, len(replace_catalog(client, catalog_of("abc"))) > 0) == (changes, changes)

    def test_replaced_catalog(self):
        """The resources of a replaced catalog are listed, even if there were none before."""
        client = Client(catalog_of(notes={}), MODERN, changes=True)
        before = client.ask("resources/list")
        client.server.replace(catalog_of())

        assert before["result"]["resources"] == []
        assert len(client.ask("resources/list")["result"]["resources"]) == 1


def test_stream_without_a_handshake():
    """A stream needs an envelope, but no handshake."""
    client = client_of(MODERN)
    request = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    params = {"notifications": {}, "_meta": envelope()}

    (opened,) = client.send(line({**request, "params": params}))

    assert opened["method"] == "notifications/subscriptions/acknowledged"
