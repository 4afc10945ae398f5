"""Scopes: prompts and resources whose scopes a caller lacks are answered as if they did not exist."""

import json

import pytest

from promptkit import PromptError, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.server.snapshot import MAX_VIEWS, Snapshot
from promptkit.testing import Client, ProtocolError
from tests.subjects import Site, caller
from tests.wire import initialize, modern, request

ADMIN = frozenset({"admin"})
OLD = "2025-11-25"


@prompt
def review(code: str = ""):
    """Review a change."""
    return f"Review {code}."


@prompt(scopes=["admin"])
def reviews(code: str = ""):
    """Review the reviews."""
    return f"Review the reviews of {code}."


@prompt(scopes=["admin", "team"], elicit=True, cache=60)
def rotate(key: str):
    """Rotate a key."""
    return f"Rotate {key}."


@resource("docs://handbook", scopes=["admin"])
def handbook() -> str:
    """The rules of the team."""
    return "The handbook."


@resource("docs://{name}", scopes=["team"])
def document(name: str) -> str:
    """Any document."""
    if name == "none":
        msg = "the document does not exist"
        raise PromptError(msg)
    return f"The document {name}."


def catalog_of(*items):
    """Return a catalog of prompts and resources."""
    prompts = tuple(item for item in items if hasattr(item, "options"))
    return compile(Recipes(prompts=prompts, resources=tuple(item for item in items if item not in prompts)))


ALL = catalog_of(review, reviews, rotate, handbook, document)


def outcome(ask, *arguments):
    """Return the result of a call, or the code, message and data of its error."""
    try:
        return ask(*arguments)
    except ProtocolError as error:
        return error.code, error.message, error.data


class TestOneClient:
    """Over stdio, the process has the scopes."""

    @pytest.mark.parametrize(
        ("scopes", "seen"),
        [
            ((), ["review"]),
            (["admin"], ["review", "reviews"]),
            (["team"], ["review"]),
            ("admin team", ["review", "reviews", "rotate"]),
        ],
    )
    def test_all_scopes_are_required(self, scopes, seen):
        """A client with one of two required scopes sees no more than a client with none."""
        with Client(ALL, scopes=scopes) as client:
            assert [item.name for item in client.list_prompts()] == seen

    @pytest.mark.parametrize("revision", [OLD, "2026-07-28"])
    def test_hidden_prompt_is_unknown(self, revision):
        """A hidden prompt gets the error of an unknown name, and no hint names the prompt."""
        visible = catalog_of(review)
        with Client(ALL, revision=revision) as client, Client(visible, revision=revision) as other:
            for name in ("reviews", "rotate", "reviewss"):
                assert outcome(client.get_prompt, name) == outcome(other.get_prompt, name)
                assert outcome(client.complete, name, "code") == outcome(other.complete, name, "code")

    def test_hidden_resource_is_unknown(self):
        """Hidden resources are neither listed, read nor completed."""
        with Client(ALL) as client:
            assert client.list_resources() == client.list_resource_templates() == []
            for error in (
                outcome(client.read_resource, "docs://handbook"),
                outcome(client.read_resource, "docs://plan"),
                outcome(client.complete, "docs://{name}", "name"),
            ):
                assert error[1].startswith("unknown resource")
                assert "did you mean" not in error[1]
        with Client(ALL, scopes=["admin"]) as client:
            assert client.read_resource("docs://handbook").text == "The handbook."

    def test_visible_template_matches_a_hidden_uri(self):
        """A visible template serves every URI that it matches, even the URI of a hidden resource."""
        with Client(ALL, scopes=["team"]) as client:
            assert client.read_resource("docs://handbook").text == "The document handbook."
        with Client(ALL, scopes=["admin", "team"]) as client:
            assert client.read_resource("docs://handbook").text == "The handbook."

    @pytest.mark.parametrize("tools", [True, "search"])
    def test_hidden_prompt_is_not_a_tool(self, tools):
        """Hidden prompts are neither listed, found nor called as tools."""
        with Client(ALL, tools=tools) as client, Client(catalog_of(review), tools=tools) as other:
            assert client.list_tools() == other.list_tools()
            for name in ("reviews", "rotate"):
                for call in (
                    (name, {}),
                    ("get_prompt", {"name": name, "arguments": {"key": "k"}}),
                    ("find_prompts", {"query": name}),
                    ("find_prompts", {"query": ""}),
                ):
                    assert outcome(client.call_tool, *call) == outcome(other.call_tool, *call)

    def test_subscription_to_a_hidden_resource(self):
        """A session cannot subscribe to a hidden resource."""
        with Client(ALL, revision=OLD) as client:
            error = outcome(client.request, "resources/subscribe", {"uri": "docs://handbook"})

        assert error == (-32002, "unknown resource 'docs://handbook'", {"uri": "docs://handbook"})

    def test_invalid_scope(self):
        """Invalid scopes are rejected when the client is created."""
        with pytest.raises(ValueError, match="is not a scope"):
            Client(ALL, scopes=['"'])


class TestCatalogs:
    def test_fully_visible_catalog_is_not_copied(self):
        """A caller who can see all items is served the catalog itself, not a copy."""
        assert ALL.visible_to(frozenset({"admin", "team", "more"})) is ALL
        assert catalog_of(review).visible_to(frozenset()).prompts == (review.compiled,)


class TestManyClients:
    """Over HTTP, each request has the scopes of its caller."""

    def test_lists_depend_on_the_caller(self):
        """Lists depend on scopes, so lists and resources have the private cache scope."""
        site = Site(ALL)
        seen = {}
        for scopes in ((), ("admin",), ("admin", "team")):
            reply = site.ask(modern(1, "prompts/list"), caller("ada", *scopes))["result"]
            assert reply["cacheScope"] == "private"
            seen[scopes] = [item["name"] for item in reply["prompts"]]

        assert list(seen.values()) == [["review"], ["review", "reviews"], ["review", "reviews", "rotate"]]
        read = site.ask(modern(1, "resources/read", {"uri": "docs://handbook"}), caller("ada", "admin"))
        assert read["result"]["cacheScope"] == "private"

    def test_anonymous_callers_have_the_scopes_of_the_process(self):
        """
        Without a token, a caller has the scopes of the process; with a token, only the scopes of the token.
        """
        site = Site(ALL, scopes=ADMIN)

        assert len(site.ask(modern(1, "prompts/list"))["result"]["prompts"]) == 2
        assert len(site.ask(modern(1, "prompts/list"), caller("ada"))["result"]["prompts"]) == 1

    def test_capabilities_do_not_depend_on_scopes(self):
        """All callers see the same capabilities, so capabilities do not reveal hidden items."""
        site = Site(ALL)
        ada, bob = (
            site.ask(initialize("2025-06-18"), principal)["result"]["capabilities"]
            for principal in (caller("ada"), caller("bob", "admin"))
        )

        assert ada == bob

    def test_cached_reply_requires_scopes(self):
        """A cached reply is not served to a caller without the scopes."""
        site = Site(ALL)
        message = modern(1, "prompts/get", {"name": "rotate", "arguments": {"key": "k"}})

        assert "result" in site.ask(message, caller("ada", "admin", "team"))
        assert site.ask(message, caller("bob", "admin"))["error"]["code"] == -32602

    def test_retry_requires_the_same_caller(self):
        """A retry by another caller, or with a token that has lost a scope, is rejected."""
        site, ada = Site(ALL), caller("ada", "admin", "team")
        params = {"name": "rotate", "arguments": {}}
        question = site.ask(modern(1, "prompts/get", params, capabilities={"elicitation": {}}), ada)["result"]
        answers = {"arguments": {"action": "accept", "content": {"key": "k"}}}
        again = modern(
            2,
            "prompts/get",
            {**params, "requestState": question["requestState"], "inputResponses": answers},
            capabilities={"elicitation": {}},
        )

        assert "requestState" in site.ask(again, caller("bob", "admin", "team"))["error"]["message"]
        assert "unknown prompt" in site.ask(again, caller("ada", "admin"))["error"]["message"]
        assert "result" in site.ask(again, ada)

    def test_views_are_bounded(self):
        """Sets of scopes that make no difference share a view, and the number of cached views is limited."""
        site = Site(catalog_of(review, *(_needing(number) for number in range(8))))
        for number in range(400):
            scopes = [f"s{bit}" for bit in range(8) if number >> bit & 1]
            site.ask(modern(1, "prompts/list"), caller("ada", *scopes, f"own{number}"))
        snapshot = site.server.snapshot

        assert snapshot._view.cache_info().currsize == MAX_VIEWS
        for scopes in ((), ("s0",), ("s0", "s7")):
            reply = site.ask(modern(1, "prompts/list"), caller("ada", *scopes))["result"]
            assert [item["name"] for item in reply["prompts"]] == [
                *(f"p{name[1:]}" for name in scopes),
                "review",
            ]

    def test_no_views_without_scopes(self):
        """If nothing requires scopes, all requests share one snapshot."""
        site = Site(catalog_of(review))
        site.ask(modern(1, "prompts/list"), caller("ada", "admin"))

        assert site.server.snapshot.view(frozenset(["admin"])) is site.server.snapshot

    def test_digest_includes_scopes(self):
        """The digest of a catalog covers the required scopes."""
        open_to_all = prompt(name="reviews", description="Review the reviews.")(reviews.function)

        digests = {Site(catalog_of(review, item)).server.snapshot.digest for item in (reviews, open_to_all)}
        assert len(digests) == 2
        assert Site(catalog_of(review, reviews)).server.snapshot.digest in digests


def _needing(number):
    @prompt(name=f"p{number}", scopes=[f"s{number}"])
    def needing():
        return "It."

    return needing


@resource("docs://open")
def document_of_all() -> str:
    """A document without scopes."""
    return "Open."


class TestReload:
    """Change notifications on streams."""

    def listen(self, site, principal, *uris):
        """Open a stream, and return the list to which its later output is appended."""
        filters = {
            "promptsListChanged": True,
            "resourcesListChanged": True,
            "resourceSubscriptions": uris,
        }
        output = site.post(modern("s", "subscriptions/listen", {"notifications": filters}), principal).said
        del output[:]
        return output

    def notifications_in(self, output):
        """Return the methods and URIs of the notifications."""
        lines = [json.loads(line) for part in output for line in part.splitlines()]
        return [(line["method"].removeprefix("notifications/"), line["params"].get("uri")) for line in lines]

    def test_added_scope(self):
        """Only callers who lose a prompt are notified; for all others nothing has changed."""
        open_to_all = prompt(name="reviews", description="Review the reviews.")(reviews.function)
        site = Site(catalog_of(review, open_to_all))
        ada, bob = self.listen(site, caller("ada", "admin")), self.listen(site, caller("bob"))

        site.replace(catalog_of(review, reviews))
        assert (self.notifications_in(ada), self.notifications_in(bob)) == (
            [],
            [("prompts/list_changed", None)],
        )
        assert len(site.ask(modern(1, "prompts/list"), caller("bob"))["result"]["prompts"]) == 1

    def test_change_of_a_hidden_prompt(self):
        """Callers are not notified of changes to prompts that they cannot see."""
        site = Site(catalog_of(review, reviews))
        ada, bob = self.listen(site, caller("ada", "admin")), self.listen(site, caller("bob"))

        site.replace(catalog_of(review, prompt(name="reviews", scopes=["admin"])(reviews.function)))
        site.replace(catalog_of(review))
        assert self.notifications_in(ada) == [("prompts/list_changed", None)]
        assert self.notifications_in(bob) == []

    def test_change_of_a_hidden_resource(self):
        """A subscription to a hidden resource gets the notifications of an unknown URI."""
        site, ada = Site(catalog_of(review, handbook)), caller("ada", "admin")
        hers, his = (
            self.listen(site, principal, "docs://handbook", "docs://nothing")
            for principal in (ada, caller("bob"))
        )

        site.replace(catalog_of(review, handbook))
        assert (self.notifications_in(hers), self.notifications_in(his)) == (
            [("resources/updated", "docs://handbook")],
            [],
        )
        site.replace(catalog_of(review, handbook, document_of_all))
        assert self.notifications_in(his) == [("resources/list_changed", None)]

    def test_equal_views_are_compared_once(self, monkeypatch):
        """Streams with the same view share one comparison of the lists."""
        site = Site(catalog_of(review, rotate, document_of_all))
        outputs = [self.listen(site, caller(f"u{number}", f"user:{number}")) for number in range(9)]
        compared = []
        compare = Snapshot.changed_lists
        monkeypatch.setattr(Snapshot, "changed_lists", lambda *both: compared.append(both) or compare(*both))
        site.replace(catalog_of(review, rotate))

        assert len(compared) == 1
        assert [self.notifications_in(each) for each in outputs] == [[("resources/list_changed", None)]] * 9

    def test_stream_keeps_its_scopes(self):
        """A stream keeps the scopes of the token that opened it. Over HTTP, it ends with that token."""
        site = Site(catalog_of(review))
        output = self.listen(site, caller("ada", "admin"))

        site.ask(modern(1, "prompts/list"), caller("ada"))
        site.replace(catalog_of(review, reviews))
        assert self.notifications_in(output) == [("prompts/list_changed", None)]


def test_session_requests_use_their_own_token():
    """A session belongs to a subject; the token of each request determines its scopes."""
    site = Site(ALL)
    listed = request(1, "prompts/list")
    counts = [
        len(site.ask(listed, caller("ada", *scopes), mcp_protocol_version=OLD)["result"]["prompts"])
        for scopes in ((), ("admin",), ())
    ]

    assert counts == [1, 2, 1]
