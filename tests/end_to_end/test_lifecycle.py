"""Sessions of the older eras, and stateless requests of the modern era, from the client's view."""

import asyncio
import threading
import time
from datetime import UTC, datetime

import pytest

from promptkit import Audio, Context, Icon, ResourceLink, Text, prompt
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.requirements.requirement import HANDSHAKE_SINCE_2025_03
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

INFO = "io.modelcontextprotocol/clientInfo"
FORM = {"elicitation": {}}
WITH_ELICITATION = HANDSHAKES[2:]


@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}."


@prompt
def who(context: Context):
    return f"{context.client_name} {dict(context.capabilities)} {context.revision}"


@prompt(elicit=True)
def review(diff: str, depth: int):
    return f"{diff} {depth + 1}"


@prompt(elicit=True)
def plan(goal: str):
    return f"Plan {goal}."


@prompt(timeout=0.05)
async def brief():
    await asyncio.sleep(30)


def catalog_of(*prompts):
    catalog = compile(Recipes(prompts=prompts))
    assert catalog.diagnostics == ()
    return catalog


CATALOG = catalog_of(greet, who, review, plan, brief)


def open_session(revision, capabilities=None, *, ready=True):
    """Open a session, and return its client. Tests pass it complete messages."""
    client = Client(CATALOG, None, changes=True)
    client.send(line(initialize(revision, capabilities=capabilities)))
    if ready:
        client.send(line(notification("notifications/initialized")))
    return client


def ask(client, message):
    """Return the only reply to a message."""
    (reply,) = client.send(line(message))
    return reply


def wait_for(client, count, seconds=20.0):
    """Wait for *count* lines, and return the replies."""
    deadline = time.monotonic() + seconds
    while sum(data.count(b"\n") for data in client.sent) < count and time.monotonic() < deadline:
        time.sleep(0.002)
    return client.replies()


def get(number, name, /, **arguments):
    return request(number, "prompts/get", {"name": name, "arguments": arguments})


def text(reply):
    (message,) = reply["result"]["messages"]
    return message["content"]["text"]


class TestBeforeInitialized:
    @pytest.mark.requirement("lifecycle/before-initialized")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_no_elicitation_before_initialized(self, revision):
        """Until the client is initialized, a missing argument is an error; then it is requested."""
        client = open_session(revision, FORM, ready=False)

        early = ask(client, get(1, "review", diff="x"))
        client.send(line(notification("notifications/initialized")))
        later = ask(client, get(2, "review", diff="x"))

        assert (early["id"], early["error"]["code"]) == (1, -32602)
        assert later.get("method") == ("elicitation/create" if revision in WITH_ELICITATION else None)

    @pytest.mark.requirement("lifecycle/before-initialized")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_no_notifications_before_initialized(self, revision):
        """The client is not notified of changes until it is initialized."""
        client = open_session(revision, FORM, ready=False)
        client.sent.clear()

        client.server.replace(catalog_of(greet))

        assert client.replies() == []


class TestOperation:
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_ping_while_a_prompt_waits(self, revision):
        """A ping is answered with an empty result before an earlier request."""
        release = threading.Event()

        @prompt
        async def slow():
            await asyncio.to_thread(release.wait, 20)
            return "done"

        client = Client(catalog_of(slow), revision)
        client.post("prompts/get", {"name": "slow"}, 1)

        assert client.ask("ping", None, 2) == {"jsonrpc": "2.0", "id": 2, "result": {}}
        release.set()

    @pytest.mark.requirement("lifecycle/operation/version", "lifecycle/operation/version-advised")
    @pytest.mark.parametrize(
        ("revision", "members", "kinds", "annotations"),
        [
            ("2024-11-05", set(), ["text", "resource", "text"], {"priority"}),
            ("2025-03-26", set(), ["text", "audio", "text"], {"priority"}),
            (
                "2025-06-18",
                {"title", "_meta"},
                ["text", "audio", "resource_link"],
                {"priority", "lastModified"},
            ),
            (
                "2025-11-25",
                {"title", "_meta", "icons"},
                ["text", "audio", "resource_link"],
                {"priority", "lastModified"},
            ),
        ],
    )
    def test_content_follows_the_revision(self, revision, members, kinds, annotations, wav):
        """Only fields and kinds of content of the agreed revision are sent."""

        @prompt(title="All", icons=[Icon("data:,")], tags=["x"])
        def everything():
            """Show it."""
            yield Text("x", priority=1, last_modified=datetime(2026, 1, 31, tzinfo=UTC))
            yield Audio(wav)
            yield ResourceLink("file:///a", name="a")

        client = Client(catalog_of(everything), revision)
        (entry,) = client.ask("prompts/list")["result"]["prompts"]
        result = client.get("everything")["result"]

        contents = [message["content"] for message in result["messages"]]
        assert entry.keys() == {"name", "description"} | members
        assert [content["type"] for content in contents] == kinds
        assert contents[0]["annotations"].keys() == annotations
        assert result.keys() == {"messages", "description"}

    @pytest.mark.requirement("lifecycle/operation/capabilities", "lifecycle/operation/capabilities-advised")
    @pytest.mark.parametrize(
        ("revision", "capabilities"),
        [*[(revision, {}) for revision in HANDSHAKES], *[(revision, FORM) for revision in HANDSHAKES[:2]]],
    )
    def test_no_elicitation_without_the_capability(self, revision, capabilities):
        """A client without forms, or with a revision without elicitation, gets an error."""
        reply = ask(open_session(revision, capabilities), get(1, "review", diff="x"))

        assert (reply["id"], reply["error"]["code"]) == (1, -32602)

    @pytest.mark.requirement("lifecycle/operation/capabilities", "lifecycle/operation/capabilities-advised")
    @pytest.mark.parametrize("changes", [True, False])
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_notifications_need_the_declared_capability(self, revision, changes):
        """A client is notified of a changed list only if the server declared it."""
        client = Client(CATALOG, revision, changes=changes)
        declared = client.ask("initialize", initialize(revision)["params"])["result"]["capabilities"]
        client.send(line(notification("notifications/initialized")))
        client.sent.clear()

        client.server.replace(catalog_of(greet))

        assert declared["prompts"]["listChanged"] is changes
        assert len(client.replies()) == int(changes)

    @pytest.mark.requirement("lifecycle/errors/prepared")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_session_survives_errors(self, revision):
        """
        The session continues after an unknown revision, missing capabilities and a prompt that times out.
        """
        client = open_session(revision, {})
        ask(client, initialize("1999-01-01", capabilities={}))
        ask(client, initialize(revision, capabilities={}))
        client.send(line(get(1, "brief")))
        (late,) = wait_for(client, 1)

        assert late["error"]["code"] == -32603
        assert text(ask(client, get(2, "greet"))) == "Hello, you."


class TestTimeouts:
    @pytest.mark.requirement("lifecycle/timeouts/sent", "lifecycle/timeouts/cancelled")
    @pytest.mark.parametrize("revision", WITH_ELICITATION)
    def test_unanswered_elicitation_times_out(self, revision, monkeypatch):
        """An unanswered elicitation is cancelled, its request gets an error, and a late answer is ignored."""
        # With a much shorter timeout, it could expire before it is sent.
        monkeypatch.setattr("promptkit.server.elicitation._ANSWER_WITHIN_S", 0.5)
        client = open_session(revision, FORM)
        client.send(line(get(1, "review", diff="x")))
        elicitation, *messages = wait_for(client, 3)
        (error,) = [message for message in messages if "error" in message]

        late = client.answer(elicitation["id"], {"action": "accept", "content": {"depth": 1}})

        assert notification("notifications/cancelled", {"requestId": elicitation["id"]}) in messages
        assert (error["id"], error["error"]["code"]) == (1, -32602)
        assert late == []

    @pytest.mark.requirement("lifecycle/timeouts/configurable")
    @pytest.mark.parametrize("revision", HANDSHAKE_SINCE_2025_03)
    def test_prompts_have_separate_timeouts(self, revision):
        """One prompt times out while another with a longer limit continues."""
        release = threading.Event()

        @prompt(timeout=30)
        async def patient():
            await asyncio.to_thread(release.wait, 20)
            return "done"

        client = Client(catalog_of(brief, patient), revision)
        client.post("prompts/get", {"name": "patient"}, 1)
        client.post("prompts/get", {"name": "brief"}, 2)
        (first,) = wait_for(client, 1)
        client.sent.clear()
        release.set()
        (second,) = wait_for(client, 1)

        assert first["id"] == 2
        assert first["error"]["message"].startswith("prompt 'brief' took longer than its limit of 0.05 s")
        assert (second["id"], text(second)) == (1, "done")

    @pytest.mark.requirement("lifecycle/timeouts/maximum")
    @pytest.mark.parametrize("revision", HANDSHAKE_SINCE_2025_03)
    def test_progress_does_not_extend_the_timeout(self, revision):
        """A prompt that reports progress endlessly is stopped at its limit."""

        @prompt(timeout=0.1)
        async def busy(context: Context):
            for done in range(10**9):
                context.report_progress(done)
                await asyncio.sleep(0.01)

        client = Client(catalog_of(busy), revision)
        client.post("prompts/get", {"name": "busy"}, 1, progressToken="p")
        deadline = time.monotonic() + 50
        while b'"error"' not in b"".join(client.sent) and time.monotonic() < deadline:
            time.sleep(0.005)
        *reports, reply = client.replies()

        assert {report["method"] for report in reports} == {"notifications/progress"}
        assert reply["error"]["message"].startswith("prompt 'busy' took longer than its limit of 0.1 s")


class TestEras:
    @pytest.mark.requirement("versioning/dual-era")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_clients_of_both_eras(self, revision):
        """Clients with and without a handshake list prompts and get them."""
        client = Client(CATALOG, revision)

        assert [entry["name"] for entry in client.ask("prompts/list")["result"]["prompts"]] == sorted(CATALOG)
        assert text(client.get("greet", name="Ada")) == "Hello, Ada."

    @pytest.mark.requirement("versioning/one-process")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_both_eras_in_one_process(self, revision):
        """Requests of both eras alternate, and each is answered in its own format."""
        client = open_session(revision)
        params = {"name": "who", "arguments": {}}

        turns = [
            ask(client, message)["result"]
            for message in [
                request(1, "prompts/list"),
                modern(2, "prompts/list"),
                request(3, "prompts/get", params),
                modern(4, "prompts/get", params),
                request(5, "prompts/get", params),
            ]
        ]

        assert ["resultType" in result for result in turns] == [False, True, False, True, False]
        revisions = [text({"result": result}).split()[-1] for result in turns[2:]]
        assert revisions == [revision, MODERN, revision]

    @pytest.mark.requirement("versioning/modern-requests")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_handshake_does_not_affect_modern_requests(self, revision):
        """Replies to modern requests are the same before and after a handshake."""
        client = Client(CATALOG, None)
        messages = [modern(1, "prompts/list"), modern(2, "prompts/get", {"name": "who"})]

        before = [ask(client, message) for message in messages]
        ask(client, initialize(revision, capabilities=FORM))
        after = [ask(client, message) for message in messages]

        assert after == before

    @pytest.mark.requirement("base/meta/client-info")
    def test_client_name_does_not_affect_replies(self):
        """A modern client gets the same bytes whatever its name, and without one."""
        client = Client(CATALOG, None)
        metas = [envelope(**{INFO: {"name": name, "version": "1"}}) for name in ("claude-code", "x")]
        metas.append({key: value for key, value in envelope().items() if key != INFO})

        replies = []
        for meta in metas:
            for method, params in [
                ("prompts/list", {}),
                ("prompts/get", {"name": "greet"}),
                ("server/discover", {}),
                ("prompts/get", {"name": "nope"}),
            ]:
                client.send(line(request(1, method, {**params, "_meta": meta})))
                replies.append(b"".join(client.sent))

        assert replies[:4] == replies[4:8] == replies[8:]


class TestStatelessness:
    @pytest.mark.requirement("base/stateless/nothing-remembered")
    def test_requests_are_independent(self):
        """
        A prompt sees the client, capabilities and revision of its own request, regardless of earlier
        requests.
        """
        client = open_session("2025-06-18", FORM)
        declared = envelope(FORM, **{INFO: {"name": "desk", "version": "1"}})
        anonymous = {key: value for key, value in envelope().items() if key != INFO}

        texts = [
            text(ask(client, request(1, "prompts/get", {"name": "who", "_meta": meta})))
            for meta in (declared, anonymous, declared)
        ]

        assert texts == [f"desk {FORM} {MODERN}", f" {{}} {MODERN}", f"desk {FORM} {MODERN}"]

    @pytest.mark.requirement("base/meta/undeclared-capability", "base/stateless/nothing-remembered")
    def test_undeclared_capability_is_not_used(self):
        """A request that does not declare elicitation gets an error, even if other requests declare it."""
        client = open_session("2025-06-18", FORM)
        params = {"name": "review", "arguments": {"diff": "x"}}

        replies = [
            ask(client, modern(number, "prompts/get", params, capabilities=capabilities))
            for number, capabilities in enumerate([FORM, {}, FORM, {}])
        ]

        assert [reply.get("result", {}).get("resultType") for reply in replies] == [
            "input_required",
            None,
        ] * 2
        assert [replies[1]["error"]["code"], replies[3]["error"]["code"]] == [-32602] * 2

    @pytest.mark.requirement("base/stateless/unrelated-work")
    def test_unrelated_requests_can_be_interleaved(self):
        """Two prompts with input requests, a stream and lists continue independently."""
        client = Client(CATALOG, MODERN, capabilities=FORM, changes=True)
        subscription = {"notifications": {"promptsListChanged": True}}
        first, second = {"name": "review", "arguments": {"diff": "x"}}, {"name": "plan"}

        def retry(params, question, **content):
            answer = {"arguments": {"action": "accept", "content": content}}
            state = question["result"]["requestState"]
            return client.ask("prompts/get", {**params, "requestState": state, "inputResponses": answer})

        first_result = client.ask("prompts/get", first)
        client.post("subscriptions/listen", subscription, "s")
        second_result = client.ask("prompts/get", second)
        listed = client.ask("prompts/list")
        done = [retry(second, second_result, goal="b"), retry(first, first_result, depth=1)]
        client.sent.clear()
        client.server.replace(catalog_of(greet))
        (notification_,) = client.replies()

        assert [text(reply) for reply in done] == ["Plan b.", "x 2"]
        assert len(listed["result"]["prompts"]) == len(CATALOG)
        assert notification_["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": "s"}

    @pytest.mark.requirement("base/stateless/named-state")
    def test_continuation_needs_its_state(self):
        """Without its state an input request is repeated, and without its cursor a list starts again."""
        client = Client(CATALOG, MODERN, capabilities=FORM, page_size=2)
        params = {"name": "plan"}
        answers = {"inputResponses": {"arguments": {"action": "accept", "content": {"goal": "b"}}}}
        result, page = client.ask("prompts/get", params), client.ask("prompts/list")

        for retry in (params, {**params, **answers}):
            assert client.ask("prompts/get", retry)["result"]["resultType"] == "input_required"
        state = {"requestState": result["result"]["requestState"]}
        assert text(client.ask("prompts/get", {**params, **answers, **state})) == "Plan b."
        assert client.ask("prompts/list") == page
        cursor = {"cursor": page["result"]["nextCursor"]}
        assert client.ask("prompts/list", cursor)["result"]["prompts"] != page["result"]["prompts"]
