"""Scopes: who lacks those of a prompt or a resource is answered as if there were no such thing."""

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
    """How it is done."""
    return "The handbook."


@resource("docs://{name}", scopes=["team"])
def document(name: str) -> str:
    """Any document."""
    if name == "none":
        msg = "there is no such document"
        raise PromptError(msg)
    return f"The document {name}."


def catalog_of(*items):
    """A catalog of prompts and resources."""
    prompts = tuple(item for item in items if hasattr(item, "options"))
    return compile(Recipes(prompts=prompts, resources=tuple(item for item in items if item not in prompts)))


ALL = catalog_of(review, reviews, rotate, handbook, document)


def outcome(ask, *arguments):
    """What is returned, or the code, message and data of the refusal."""
    try:
        return ask(*arguments)
    except ProtocolError as refused:
        return refused.code, refused.message, refused.data


class TestOneClient:
    """Over standard input and output, the process has scopes."""

    @pytest.mark.parametrize(
        ("scopes", "seen"),
        [
            ((), ["review"]),
            (["admin"], ["review", "reviews"]),
            (["team"], ["review"]),
            ("admin team", ["review", "reviews", "rotate"]),
        ],
    )
    def test_prompts_are_listed_for_those_with_all_scopes(self, scopes, seen):
        """
        With one of two scopes one sees no more than with none.
        """
        with Client(ALL, scopes=scopes) as client:
            assert [one.name for one in client.list_prompts()] == seen

    @pytest.mark.parametrize("revision", [OLD, "2026-07-28"])
    def test_what_is_hidden_is_unknown(self, revision):
        """
        It is refused in the words for a name that nothing has, and no hint names it.
        """
        alone = catalog_of(review)
        with Client(ALL, revision=revision) as client, Client(alone, revision=revision) as other:
            for name in ("reviews", "rotate", "reviewss"):
                assert outcome(client.get_prompt, name) == outcome(other.get_prompt, name)
                assert outcome(client.complete, name, "code") == outcome(other.complete, name, "code")

    def test_resources(self):
        """
        Lists, reads and completions of resources, too.
        """
        with Client(ALL) as client:
            assert client.list_resources() == client.list_resource_templates() == []
            for found in (
                outcome(client.read_resource, "docs://handbook"),
                outcome(client.read_resource, "docs://plan"),
                outcome(client.complete, "docs://{name}", "name"),
            ):
                assert found[1].startswith("unknown resource")
                assert "did you mean" not in found[1]
        with Client(ALL, scopes=["admin"]) as client:
            assert client.read_resource("docs://handbook").text == "The handbook."

    def test_a_template_that_matches_a_hidden_uri_answers(self):
        """
        Who may use a template may use it for every URI that matches: its author wrote it for them all.
        """
        with Client(ALL, scopes=["team"]) as client:
            assert client.read_resource("docs://handbook").text == "The document handbook."
        with Client(ALL, scopes=["admin", "team"]) as client:
            assert client.read_resource("docs://handbook").text == "The handbook."

    @pytest.mark.parametrize("tools", [True, "search"])
    def test_tools(self, tools):
        """
        No tool lists, finds or calls what is hidden.
        """
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

    def test_subscriptions(self):
        """
        A session cannot subscribe to what is hidden.
        """
        with Client(ALL, revision=OLD) as client:
            found = outcome(client.request, "resources/subscribe", {"uri": "docs://handbook"})

        assert found == (-32002, "unknown resource 'docs://handbook'", {"uri": "docs://handbook"})

    def test_a_text_that_is_no_scope(self):
        """
        Scopes are checked where they are given.
        """
        with pytest.raises(ValueError, match="is not a scope"):
            Client(ALL, scopes=['"'])


class TestCatalogs:
    def test_nothing_is_made_where_nothing_is_hidden(self):
        """
        A catalog of which all is visible is served itself.
        """
        assert ALL.visible_to(frozenset({"admin", "team", "more"})) is ALL
        assert catalog_of(review).visible_to(frozenset()).prompts == (review.compiled,)


class TestManyClients:
    """Over HTTP, each request has the scopes of its sender."""

    def test_each_sees_what_is_theirs(self):
        """
        Lists depend on scopes; so they are private, and so is what is read.
        """
        site = Site(ALL)
        seen = {}
        for scopes in ((), ("admin",), ("admin", "team")):
            reply = site.ask(modern(1, "prompts/list"), caller("ada", *scopes))["result"]
            assert reply["cacheScope"] == "private"
            seen[scopes] = [one["name"] for one in reply["prompts"]]

        assert list(seen.values()) == [["review"], ["review", "reviews"], ["review", "reviews", "rotate"]]
        read = site.ask(modern(1, "resources/read", {"uri": "docs://handbook"}), caller("ada", "admin"))
        assert read["result"]["cacheScope"] == "private"

    def test_who_was_not_asked_has_the_scopes_of_the_process(self):
        """
        Without tokens, all have the same; those of the process do not count for who has a token.
        """
        site = Site(ALL, scopes=ADMIN)

        assert len(site.ask(modern(1, "prompts/list"))["result"]["prompts"]) == 2
        assert len(site.ask(modern(1, "prompts/list"), caller("ada"))["result"]["prompts"]) == 1

    def test_capabilities(self):
        """
        Capabilities are the same for all callers, so they do not reveal what others may read.
        """
        site = Site(ALL)
        ada, bob = (
            site.ask(initialize("2025-06-18"), principal)["result"]["capabilities"]
            for principal in (caller("ada"), caller("bob", "admin"))
        )

        assert ada == bob

    def test_a_cached_reply_is_no_way_around(self):
        """
        What was answered to one is not answered to who may not ask for it.
        """
        site = Site(ALL)
        message = modern(1, "prompts/get", {"name": "rotate", "arguments": {"key": "k"}})

        assert "result" in site.ask(message, caller("ada", "admin", "team"))
        assert site.ask(message, caller("bob", "admin"))["error"]["code"] == -32602

    def test_a_question_is_answered_by_whom_it_was_asked(self):
        """
        A retry with the token of someone else does not go on, nor does one whose token has lost a scope.
        """
        site, ada = Site(ALL), caller("ada", "admin", "team")
        params = {"name": "rotate", "arguments": {}}
        asked = site.ask(modern(1, "prompts/get", params, capabilities={"elicitation": {}}), ada)["result"]
        answers = {"arguments": {"action": "accept", "content": {"key": "k"}}}
        again = modern(
            2,
            "prompts/get",
            {**params, "requestState": asked["requestState"], "inputResponses": answers},
            capabilities={"elicitation": {}},
        )

        assert "requestState" in site.ask(again, caller("bob", "admin", "team"))["error"]["message"]
        assert "unknown prompt" in site.ask(again, caller("ada", "admin"))["error"]["message"]
        assert "result" in site.ask(again, ada)

    def test_views_are_bounded(self):
        """
        However many sets of scopes there are: those that make no difference share a view, and few are kept.
        """
        site = Site(catalog_of(review, *(_needing(number) for number in range(8))))
        for number in range(400):
            mine = [f"s{bit}" for bit in range(8) if number >> bit & 1]
            site.ask(modern(1, "prompts/list"), caller("ada", *mine, f"own{number}"))
        snapshot = site.server.snapshot

        assert snapshot._view.cache_info().currsize == MAX_VIEWS
        for mine in ((), ("s0",), ("s0", "s7")):
            reply = site.ask(modern(1, "prompts/list"), caller("ada", *mine))["result"]
            assert [one["name"] for one in reply["prompts"]] == [
                *(f"p{name[1:]}" for name in mine),
                "review",
            ]

    def test_items_are_encoded_once_for_all_views(self):
        """
        A view holds no copy of what is listed in others, too.
        """
        site = Site(ALL)
        for scopes in ((), ("admin",), ("admin", "team")):
            site.ask(modern(1, "prompts/list"), caller("ada", *scopes))
        views = [site.server.snapshot.view(frozenset(s)) for s in ((), ("admin",), ("admin", "team"))]
        listed = [pages.items for view in views for pages in view._pages.values()]

        assert len({id(items[0]) for items in listed}) == 1

    def test_no_views_without_scopes(self):
        """
        Where nothing needs scopes, requests are answered from the one snapshot that there is.
        """
        site = Site(catalog_of(review))
        site.ask(modern(1, "prompts/list"), caller("ada", "admin"))

        assert site.server.snapshot.view(frozenset(["admin"])) is site.server.snapshot

    def test_replicas_with_other_scopes_differ(self):
        """
        The digest of a catalog covers who sees what.
        """
        open_to_all = prompt(name="reviews", description="Review the reviews.")(reviews.function)

        digests = {Site(catalog_of(review, one)).server.snapshot.digest for one in (reviews, open_to_all)}
        assert len(digests) == 2
        assert Site(catalog_of(review, reviews)).server.snapshot.digest in digests


def _needing(number):
    @prompt(name=f"p{number}", scopes=[f"s{number}"])
    def needing():
        return "It."

    return needing


@resource("docs://open")
def document_of_all() -> str:
    """What everybody may read."""
    return "Open."


class TestReload:
    """Streams of changes, and what they are told."""

    def listen(self, site, principal, *uris):
        """Open a stream, and return what is said on it."""
        wanted = {"promptsListChanged": True, "resourcesListChanged": True, "resourceSubscriptions": uris}
        said = site.post(modern("s", "subscriptions/listen", {"notifications": wanted}), principal).said
        del said[:]
        return said

    def told(self, said):
        """The methods of notifications, and the URI of each."""
        lines = [json.loads(line) for part in said for line in part.splitlines()]
        return [(line["method"].removeprefix("notifications/"), line["params"].get("uri")) for line in lines]

    def test_a_scope_that_is_added(self):
        """
        Those who lose a prompt are told, as if it were gone. Those who keep it are not: nothing has changed.
        """
        open_to_all = prompt(name="reviews", description="Review the reviews.")(reviews.function)
        site = Site(catalog_of(review, open_to_all))
        ada, bob = self.listen(site, caller("ada", "admin")), self.listen(site, caller("bob"))

        site.replace(catalog_of(review, reviews))
        assert (self.told(ada), self.told(bob)) == ([], [("prompts/list_changed", None)])
        assert len(site.ask(modern(1, "prompts/list"), caller("bob"))["result"]["prompts"]) == 1

    def test_a_change_of_what_is_hidden(self):
        """
        Nobody is told of changes of what they do not see.
        """
        site = Site(catalog_of(review, reviews))
        ada, bob = self.listen(site, caller("ada", "admin")), self.listen(site, caller("bob"))

        site.replace(catalog_of(review, prompt(name="reviews", scopes=["admin"])(reviews.function)))
        site.replace(catalog_of(review))
        assert self.told(ada) == [("prompts/list_changed", None)]
        assert self.told(bob) == []

    def test_a_resource_that_is_hidden(self):
        """
        Of a hidden resource one is told what one is told of any unknown URI.
        """
        site, ada = Site(catalog_of(review, handbook)), caller("ada", "admin")
        hers, his = (
            self.listen(site, one, "docs://handbook", "docs://nothing") for one in (ada, caller("bob"))
        )

        site.replace(catalog_of(review, handbook))
        assert (self.told(hers), self.told(his)) == ([("resources/updated", "docs://handbook")], [])
        site.replace(catalog_of(review, handbook, document_of_all))
        assert self.told(his) == [("resources/list_changed", None)]

    def test_those_who_see_the_same_are_compared_once(self, monkeypatch):
        """
        A token may say who somebody is: a thousand streams are not a thousand comparisons of all lists.
        """
        site = Site(catalog_of(review, rotate, document_of_all))
        said = [self.listen(site, caller(f"u{number}", f"user:{number}")) for number in range(9)]
        compared = []
        compare = Snapshot.changed_lists
        monkeypatch.setattr(Snapshot, "changed_lists", lambda *both: compared.append(both) or compare(*both))
        site.replace(catalog_of(review, rotate))

        assert len(compared) == 1
        assert [self.told(each) for each in said] == [[("resources/list_changed", None)]] * 9

    def test_a_stream_keeps_what_its_token_allowed(self):
        """
        A stream that was opened is told what its token allowed then. Over HTTP, it ends with its token.
        """
        site = Site(catalog_of(review))
        said = self.listen(site, caller("ada", "admin"))

        site.ask(modern(1, "prompts/list"), caller("ada"))
        site.replace(catalog_of(review, reviews))
        assert self.told(said) == [("prompts/list_changed", None)]


def test_requests_of_old_clients():
    """
    A session belongs to a subject; what it may do is said by the token of each request.
    """
    site = Site(ALL)
    listed = request(1, "prompts/list")
    counts = [
        len(site.ask(listed, caller("ada", *scopes), mcp_protocol_version=OLD)["result"]["prompts"])
        for scopes in ((), ("admin",), ())
    ]

    assert counts == [1, 2, 1]
