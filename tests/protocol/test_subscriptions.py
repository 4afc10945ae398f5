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


def saying(text):
    return lambda: text


def catalog_of(names="ab", notes=None):
    """Prompts of these names, and a resource for each of *notes*."""
    prompts = [prompt(name=name)(lambda: "x") for name in names]
    notes = {"a": "one"} if notes is None else notes
    resources = [resource(f"notes://{name}", name=name)(saying(text)) for name, text in notes.items()]
    catalog = compile(Recipes(prompts=tuple(prompts), resources=tuple(resources)))
    assert {fault.rule for fault in catalog.diagnostics} <= {Rule.NO_PROMPTS}
    return catalog


def client_of(revision, **options):
    return Client(catalog_of(), revision, changes=True, **options)


def told(client, catalog):
    """What is sent when another catalog takes the place of the one that is served."""
    client.sent.clear()
    client.server.replace(catalog)
    return client.replies()


def templates(scheme="any"):
    """A resource at every URI of a scheme."""
    return compile(Recipes(resources=(resource(f"{scheme}://{{name}}")(lambda name: name),)))


def opening(revision):
    """What a client asks to learn of capabilities."""
    if revision == MODERN:
        return ("server/discover",)
    return "initialize", initialize(revision)["params"]


def tagged(method, stream, **params):
    return notification(method, {**params, "_meta": {STREAM: stream}})


class TestSessions:
    @pytest.mark.requirement("prompts/list-changed/session", "resources/list-changed/session")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_list_that_changes_is_told(self, revision):
        """
        A client with a session is notified of each list that changes, without a tag.
        """
        client = client_of(revision)

        assert told(client, catalog_of("abc")) == [notification("notifications/prompts/list_changed", {})]
        assert told(client, catalog_of("abc", {})) == [
            notification("notifications/resources/list_changed", {})
        ]
        assert told(client, catalog_of("abc", {})) == []
        assert len(told(client, catalog_of("a"))) == 2

    @pytest.mark.parametrize("revision", REVISIONS)
    def test_a_list_that_stays_is_not(self, revision):
        """
        An equal list causes no notification.
        """
        client = client_of(revision)
        if revision == MODERN:
            wanted = {"promptsListChanged": True, "resourcesListChanged": True}
            client.post("subscriptions/listen", {"notifications": wanted}, 7)

        assert told(client, catalog_of()) == []

    def test_nothing_is_told_before_the_client_is_ready(self):
        """
        Between initialize and its notification no other notification is sent.
        """
        client = Client(catalog_of(), None, changes=True)
        client.send(line(initialize("2025-06-18")))

        assert told(client, catalog_of("abc")) == []

    def test_a_client_without_a_session_is_told_nothing(self):
        """
        A client of the modern era that does not listen sees no notification at all.
        """
        client = client_of(MODERN)
        client.ask("prompts/list")

        assert told(client, catalog_of("abc")) == []

    def test_the_new_list_is_there_when_it_is_told(self):
        """
        A client that asks on the notification gets the new list.
        """
        client = client_of("2025-06-18")
        told(client, catalog_of("xyz"))

        listed = client.ask("prompts/list")["result"]["prompts"]

        assert [found["name"] for found in listed] == ["x", "y", "z"]

    @pytest.mark.requirement("resources/subscribe", "resources/unsubscribe")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_resource_that_changes_is_told_to_who_asked(self, revision):
        """
        A subscriber is notified of updates until it unsubscribes.
        """
        client = client_of(revision)
        client.ask("resources/read", {"uri": "notes://a"})
        updated = notification("notifications/resources/updated", {"uri": "notes://a"})

        assert client.ask("resources/subscribe", {"uri": "notes://a"})["result"] == {}
        assert told(client, catalog_of(notes={"a": "two"})) == [updated]
        client.ask("resources/unsubscribe", {"uri": "notes://a"})
        assert told(client, catalog_of(notes={"a": "three"})) == []

    @pytest.mark.requirement("resources/unsubscribed")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_other_resources_are_not_told(self, revision):
        """
        Reading is not subscribing, and one subscription says nothing of another resource.
        """
        client = Client(catalog_of(notes={"a": "one", "b": "one"}), revision, changes=True)
        for name in "ab":
            client.ask("resources/read", {"uri": f"notes://{name}"})

        assert told(client, catalog_of(notes={"a": "two", "b": "two"})) == []
        client.ask("resources/subscribe", {"uri": "notes://b"})
        found = told(client, catalog_of(notes={"a": "three", "b": "three"}))
        assert [one["params"]["uri"] for one in found] == ["notes://b"]

    def test_where_no_resource_was_loaded_anew_none_is_told(self):
        """
        A subscriber is not notified of other prompts, only where a resource was loaded anew.
        """
        first = catalog_of("a")
        client = Client(first, "2025-06-18", changes=True)
        client.ask("resources/subscribe", {"uri": "notes://a"})
        others = Catalog(catalog_of("ab").prompts, (), first.resources)

        assert [one["method"] for one in told(client, others)] == ["notifications/prompts/list_changed"]
        assert len(told(client, catalog_of("ab"))) == 1

    def test_only_those_that_were_loaded_anew_are_told(self):
        """
        The resource of a URI is told if it was loaded anew; what templates make, if one of these was.
        """
        first = catalog_of(notes={"a": "one", "b": "one"}).resources + templates("notes").resources
        client = Client(Catalog((), (), first), "2025-06-18", changes=True)
        for name in ("a", "b", "c"):
            client.ask("resources/subscribe", {"uri": f"notes://{name}"})
        second = (catalog_of(notes={"a": "two"}).resources[0], *first[1:])
        third = second[:2] + templates("notes").resources

        def uris(resources):
            return [one["params"]["uri"] for one in told(client, Catalog((), (), resources))]

        assert uris(first) == []
        assert uris(second) == ["notes://a"]
        assert uris(third) == ["notes://c"]

    @pytest.mark.requirement("resources/unsubscribe")
    @pytest.mark.requirement("lifecycle/operation/capabilities", "lifecycle/operation/capabilities-advised")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_the_first_resources(self, revision):
        """
        A session is notified when there are resources for the first time.
        """
        client = Client(catalog_of(notes={}), revision, changes=True)

        (message,) = told(client, catalog_of())
        assert message["method"] == "notifications/resources/list_changed"

    def test_a_session_begins_anew(self):
        """
        After a second handshake nothing is sent until the client is ready again.
        """
        client = client_of("2025-11-25")
        client.ask("resources/subscribe", {"uri": "notes://a"})
        client.send(line(initialize("2025-11-25")))

        assert told(client, catalog_of("abc", {"a": "two"})) == []

    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_resource_that_there_is_not(self, revision):
        """
        Subscribing to an unknown resource fails; ending an unknown subscription is no error.
        """
        client = client_of(revision)

        assert client.ask("resources/subscribe", {"uri": "notes://z"})["error"] == {
            "code": -32002,
            "message": "unknown resource 'notes://z'; did you mean 'notes://a'?",
            "data": {"uri": "notes://z"},
        }
        assert client.ask("resources/unsubscribe", {"uri": "notes://z"})["result"] == {}


class TestStreams:
    @pytest.mark.requirement("subscriptions/acknowledged")
    def test_it_is_acknowledged_first(self):
        """
        The first message on a stream lists what will be sent on it, under the id of the request.
        """
        opened = client_of(MODERN).post("subscriptions/listen", {"notifications": ALL}, "s")

        assert opened == [tagged("notifications/subscriptions/acknowledged", "s", notifications=ALL)]

    @pytest.mark.requirement("subscriptions/nothing-before", "subscriptions/acknowledged")
    def test_nothing_overtakes_the_acknowledgement(self):
        """
        A change during the acknowledgement is sent after it.
        """
        client = client_of(MODERN)
        append, changing = client.sent.append, Thread(target=client.server.replace, args=[catalog_of("abc")])

        def send(data):
            if not changing.ident:
                changing.start()
                changing.join(0.1)  # which ends only if nothing makes the change wait
            append(data)

        client.server._notifier._send = client.server._send = send
        opened = client.post("subscriptions/listen", {"notifications": ALL}, "s")
        changing.join()

        assert [found["method"] for found in opened[:1]] == ["notifications/subscriptions/acknowledged"]
        assert client.replies()[1] == tagged("notifications/prompts/list_changed", "s")

    @pytest.mark.requirement("subscriptions/subset")
    @pytest.mark.parametrize(
        ("wanted", "accepted"),
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
    def test_it_is_narrowed_to_what_is_supported(self, wanted, accepted):
        """
        The acknowledgement names only kinds that were asked for and that there are.
        """
        (opened,) = client_of(MODERN).post("subscriptions/listen", {"notifications": wanted})

        assert opened["params"]["notifications"] == accepted

    @pytest.mark.requirement("subscriptions/subset")
    @pytest.mark.parametrize(
        ("catalog", "changes", "accepted"),
        [(catalog_of(), False, {}), (catalog_of(notes={}), False, {}), (catalog_of(notes={}), True, ALL)],
        ids=["nothing-changes", "nothing-changes-and-no-resources", "no-resources-yet"],
    )
    def test_what_the_server_does_not_offer(self, catalog, changes, accepted):
        """
        Where nothing changes, nothing is promised; where it does, there may be resources later.
        """
        client = Client(catalog, MODERN, changes=changes)

        (opened,) = client.post("subscriptions/listen", {"notifications": ALL})

        assert opened["params"]["notifications"] == accepted

    @pytest.mark.requirement("prompts/list-changed/stream", "resources/list-changed/stream")
    @pytest.mark.requirement("subscriptions/id", "subscriptions/resources")
    @pytest.mark.parametrize("stream", [7, "7", 0, "", "ü"])
    def test_every_notification_bears_the_id(self, stream):
        """
        The id of the request comes with each notification, as the type that it has.
        """
        client = client_of(MODERN)
        opened = client.post("subscriptions/listen", {"notifications": ALL}, stream)

        assert opened == [tagged("notifications/subscriptions/acknowledged", stream, notifications=ALL)]
        assert told(client, catalog_of("abc", {"b": "x"})) == [
            tagged("notifications/prompts/list_changed", stream),
            tagged("notifications/resources/list_changed", stream),
            tagged("notifications/resources/updated", stream, uri="notes://a"),
            tagged("notifications/resources/updated", stream, uri="notes://b"),
        ]

    @pytest.mark.requirement("subscriptions/unrequested")
    @pytest.mark.parametrize(
        ("wanted", "methods"),
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
    def test_what_was_not_asked_for_is_not_told(self, wanted, methods):
        """
        Of everything that changes at once, a stream hears what its filter names.
        """
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": wanted}, "s")

        changed = told(client, catalog_of("abc", {"a": "two", "b": "new"}))

        assert [found["method"] for found in changed] == methods

    @pytest.mark.requirement("subscriptions/resources", "subscriptions/unrequested")
    def test_only_the_resources_that_are_named(self):
        """
        A stream hears of its own resources, and of no other one.
        """
        client = Client(catalog_of(notes={"a": "one", "b": "one"}), MODERN, changes=True)
        client.post("subscriptions/listen", {"notifications": {"resourceSubscriptions": ["notes://a"]}}, "s")

        own = told(client, catalog_of(notes={"a": "two", "b": "two"}))

        assert own == [tagged("notifications/resources/updated", "s", uri="notes://a")]

    @pytest.mark.requirement("subscriptions/several", "subscriptions/cancelled")
    def test_several_streams(self):
        """
        Each hears of what it asked for, and ends on its own.
        """
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, 1)
        client.post("subscriptions/listen", {"notifications": {"resourcesListChanged": True}}, 2)
        client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, "1")

        first = told(client, catalog_of("abc"))
        cancelled = client.send(line(notification("notifications/cancelled", {"requestId": 1})))
        second = told(client, catalog_of("ab"))

        assert [found["params"]["_meta"][STREAM] for found in first] == [1, "1"]
        assert cancelled == []
        assert [found["params"]["_meta"][STREAM] for found in second] == ["1"]

    def test_the_id_is_in_use_while_it_is_open(self):
        """
        A second request with the id of an open stream is refused; once it is closed it is free.
        """
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": ALL}, 1)

        assert client.ask("prompts/list", number=1)["error"]["code"] == -32600
        client.send(line(notification("notifications/cancelled", {"requestId": 1})))
        assert "result" in client.ask("prompts/list", number=1)

    @pytest.mark.requirement("subscriptions/graceful", "subscriptions/torn-down", "subscriptions/id")
    def test_the_server_ends_it(self):
        """
        At the end the request gets its result, then what a page of the specification wants beside.
        """
        client = client_of(MODERN)
        client.post("subscriptions/listen", {"notifications": ALL}, "s")
        client.sent.clear()
        client.server.close(0)
        result, cancelled = client.replies()

        assert (result["id"], result["result"]["resultType"]) == ("s", "complete")
        assert result["result"]["_meta"][STREAM] == "s"
        assert cancelled == notification("notifications/cancelled", {"requestId": "s"})

    @pytest.mark.requirement("subscriptions/graceful", "subscriptions/torn-down")
    def test_the_server_ends_every_one(self):
        """
        Each stream that is open gets its own result and, after it, its own cancellation; nothing more.
        """
        client = client_of(MODERN)
        for stream in (1, "1", 2):
            client.post("subscriptions/listen", {"notifications": ALL}, stream)
        client.send(line(notification("notifications/cancelled", {"requestId": 2})))
        client.server.close(0)
        ended = [(found.get("id"), found.get("params", {}).get("requestId")) for found in client.replies()]

        assert ended == [(1, None), (None, 1), ("1", None), (None, "1")]
        assert told(client, catalog_of("abc")) == []

    @pytest.mark.parametrize("wanted", [None, 3, [], {"promptsListChanged": "yes"}], ids=str)
    def test_a_filter_that_is_none(self, wanted):
        """
        An invalid filter is refused, and no stream is opened.
        """
        client = client_of(MODERN)

        assert client.ask("subscriptions/listen", {"notifications": wanted})["error"]["code"] == -32602
        assert told(client, catalog_of("abc")) == []

    def test_a_session_and_a_stream(self):
        """
        One server notifies each era in its own way.
        """
        client = Client(catalog_of(), None, changes=True)
        client.send(line(initialize("2025-11-25")) + line(notification("notifications/initialized")))
        client.send(line(modern(5, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})))

        assert told(client, catalog_of("abc")) == [
            notification("notifications/prompts/list_changed", {}),
            tagged("notifications/prompts/list_changed", 5),
        ]

    @pytest.mark.requirement("resources/unsubscribed")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_session_does_not_hear_of_what_a_stream_names(self, revision):
        """
        Updates for a stream are not sent to a session on the same wire.
        """
        client = Client(catalog_of(), None, changes=True)
        client.send(line(initialize(revision)) + line(notification("notifications/initialized")))
        wanted = {"resourceSubscriptions": ["notes://a"]}
        client.send(line(modern(5, "subscriptions/listen", {"notifications": wanted})))

        assert told(client, catalog_of(notes={"a": "two"})) == [
            tagged("notifications/resources/updated", 5, uri="notes://a")
        ]


def stream_of(uris):
    return {"notifications": {"resourceSubscriptions": uris}}


class TestLimits:
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_so_many_resources_of_a_session(self, revision):
        """
        A client with too many subscriptions is asked to end some; then it may add others.
        """
        client = Client(templates(), revision, changes=True)
        for number in range(MAX_SUBSCRIPTIONS):
            client.server.receive_data(
                line(request(number, "resources/subscribe", {"uri": f"any://{number}"}))
            )

        refused = client.ask("resources/subscribe", {"uri": "any://more"})
        again = client.ask("resources/subscribe", {"uri": "any://7"})
        client.ask("resources/unsubscribe", {"uri": "any://7"})

        assert refused["error"] == {
            "code": 429,
            "message": "there would be more than 10,000 subscriptions to resources: end some of them first",
        }
        assert again["result"] == {}
        assert client.ask("resources/subscribe", {"uri": "any://more"})["result"] == {}

    def test_so_many_resources_of_streams(self):
        """
        Those of all streams count together, and those of a stream that is ended do not.
        """
        client = Client(templates(), MODERN, changes=True)
        uris = [f"any://{number}" for number in range(MAX_SUBSCRIPTIONS // 2)]
        for number in ("a", "b"):
            client.post("subscriptions/listen", stream_of(uris), number)

        refused = client.ask("subscriptions/listen", stream_of(["any://1"]), "c")
        (bare,) = client.post("subscriptions/listen", {"notifications": {"promptsListChanged": True}}, "d")
        client.send(line(notification("notifications/cancelled", {"requestId": "a"})))
        (opened,) = client.post("subscriptions/listen", stream_of(uris), "c")

        assert refused["error"]["code"] == 429
        assert bare["method"] == opened["method"] == "notifications/subscriptions/acknowledged"

    @pytest.mark.parametrize(("size", "code"), [(MAX_CHARACTERS, None), (MAX_CHARACTERS + 1, -32602)])
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_the_length_of_a_uri(self, revision, size, code):
        """
        It is kept for as long as the client is there, so it is not of any length.
        """
        client, uri = Client(templates(), revision, changes=True), "any://".ljust(size, "x")

        if revision == MODERN:
            (reply,) = client.post("subscriptions/listen", stream_of([uri]), "s")
        else:
            reply = client.ask("resources/subscribe", {"uri": uri})

        assert reply.get("error", {}).get("code") == code

    def test_telling_many_is_linear(self):
        """
        To tell sixteen times as many streams takes sixteen times as many calls.
        """

        def calls(size):
            subscriptions, count = Subscriptions(), 0
            wanted = [
                SubscriptionFilter(resource_subscriptions=[f"any://{number}"]) for number in range(size)
            ]
            for number, filter_ in enumerate(wanted):
                subscriptions.listen(number, filter_, Capabilities(changes=True))

            def note(_frame, event, _argument):
                nonlocal count
                count += event in {"call", "c_call"}

            sys.setprofile(note)
            said = [subscriptions.updated(uri) for uri in subscriptions.uris]
            sys.setprofile(None)
            assert all(said)
            return count

        assert calls(16 * 50) <= 24 * calls(50)


class TestCapabilities:
    @pytest.mark.requirement("prompts/capability", "resources/capability", "completion/capability")
    @pytest.mark.parametrize("revision", REVISIONS)
    @pytest.mark.parametrize("changes", [True, False])
    @pytest.mark.parametrize("names", ["", "ab"], ids=["no-prompts", "prompts"])
    @pytest.mark.parametrize("notes", [{}, {"a": "x"}], ids=["no-resources", "resources"])
    def test_what_is_declared(self, revision, changes, names, notes):
        """
        Prompts, resources, completion and skills always, because the handshake does not wait for recipes.

        In the modern era the list of tools is declared, too, because it is answered.
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
    def test_what_is_not_declared_is_not_told(self, revision, changes):
        """
        A client hears of other prompts just if it was promised that it would.
        """
        client = Client(catalog_of(), revision, changes=changes)
        if revision == MODERN:
            client.post("subscriptions/listen", {"notifications": ALL}, "s")

        declared = client.ask(*opening(revision))["result"]["capabilities"]["prompts"]["listChanged"]
        client.send(line(notification("notifications/initialized")))

        assert (declared, len(told(client, catalog_of("abc"))) > 0) == (changes, changes)

    def test_they_follow_the_catalog(self):
        """
        A catalog with resources that takes the place of one without brings them along.
        """
        client = Client(catalog_of(notes={}), MODERN, changes=True)
        before = client.ask("resources/list")
        client.server.replace(catalog_of())

        assert before["result"]["resources"] == []
        assert len(client.ask("resources/list")["result"]["resources"]) == 1


def test_an_envelope_without_a_session_is_enough():
    """
    A stream needs no handshake, only what every request of its era carries.
    """
    client = client_of(MODERN)
    request = {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen"}
    params = {"notifications": {}, "_meta": envelope()}

    (opened,) = client.send(line({**request, "params": params}))

    assert opened["method"] == "notifications/subscriptions/acknowledged"
