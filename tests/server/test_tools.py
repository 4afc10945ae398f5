import asyncio
import json
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest

from promptkit import (
    Arg,
    Audio,
    Context,
    EmbeddedResource,
    Icon,
    Image,
    PromptError,
    ResourceLink,
    Text,
    Tool,
    assistant,
    prompt,
    user,
)
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.limits import Limits
from promptkit.server.audit import Audit
from tests.clients.recipes._samples import PNG, WAV
from tests.wire import HANDSHAKES, MODERN, REVISIONS, Client, line, notification

EVERY_REVISION = pytest.mark.parametrize("revision", REVISIONS)
FORM = {"elicitation": {}}


@dataclass
class Change:
    title: str
    files: list[str]


@prompt(title="Review a change", icons=[Icon("https://example.com/i.png")], tags=["code"])
def review(
    code: Annotated[str, Arg("The code")],
    depth: int = 1,
    strict: bool = False,  # noqa: FBT001, FBT002 (people write it so)
    tone: str | None = "calm",
    change: Change | None = None,
) -> str:
    """Ask for a review."""
    return repr((code, depth, strict, tone, change))


@prompt(tool=Tool(read_only=False, idempotent=False, open_world=True, destructive=True))
def dialog(media: bool = False):  # noqa: FBT001, FBT002
    """Walk through an error."""
    yield user("Look.", Image(PNG) if media else None)
    yield user(Audio(WAV) if media else None)
    yield user(EmbeddedResource("a://b", text="held")) if media else None
    yield user(ResourceLink("a://c", name="linked")) if media else None
    yield assistant("I see.")


@prompt(tool=False)
def hidden():
    """For people alone."""
    return "Hidden."


@prompt
def refuses(why: str):
    raise PromptError(why)


@prompt
def fails():
    reason = "no client reads this"
    raise ValueError(reason)


@prompt(elicit=True)
def release(version: int, notes: Literal["short", "long"]):
    return f"{version + 1}: {notes}"


@prompt(timeout=0.05)
def sleeps():
    time.sleep(1)
    return "Late."


@prompt
def steps(context: Context):
    context.report_progress(1, 2)
    return "Done."


@prompt
def login(token: Annotated[str, Arg(secret=True)]):
    raise PromptError(f"{token} is not known")


@prompt
async def awaits(n: int):
    return str(n)


ALL = (review, dialog, hidden, refuses, fails, release, sleeps, steps, login, awaits)


def client_of(*prompts, revision="2025-11-25", tools=True, **options):
    """A client of a server that offers tools."""
    return Client(compile(Recipes(prompts=prompts or ALL)), revision, tools=tools, **options)


def texts(reply):
    """What a result says."""
    return [block["text"] for block in reply["result"]["content"]]


def fault(reply):
    """What a result says that is an error."""
    assert reply["result"]["isError"] is True
    (text,) = texts(reply)
    return text


class TestList:
    @pytest.mark.requirement("tools/annotations", "tools/input-schema")
    @EVERY_REVISION
    def test_every_prompt_is_a_tool(self, revision):
        """
        A tool has what its prompt has, where the revision has it, and the schema of its arguments.
        """
        tools = {
            tool["name"]: tool for tool in client_of(revision=revision).ask("tools/list")["result"]["tools"]
        }

        assert list(tools) == sorted({found.options.name for found in ALL} - {"hidden"})
        listed = tools["review"]
        assert listed.pop("inputSchema") == review.compiled.schema
        expected = {"name": "review", "description": "Ask for a review."}
        if revision >= "2025-03-26":
            expected["annotations"] = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
        if revision >= "2025-06-18":
            expected |= {"title": "Review a change", "_meta": {"promptkit/tags": ["code"]}}
        if revision >= "2025-11-25":
            expected["icons"] = [{"src": "https://example.com/i.png"}]
        assert listed == expected

    def test_the_author_says_what_to_expect(self):
        """
        `tool=` says what a call may do. That it destroys is said only of a tool that changes something.
        """
        tools = {tool["name"]: tool for tool in client_of().ask("tools/list")["result"]["tools"]}

        assert tools["dialog"]["annotations"] == {
            "readOnlyHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
            "destructiveHint": True,
        }

    @pytest.mark.requirement("tools/list/order")
    @EVERY_REVISION
    def test_it_comes_in_pages(self, revision):
        """
        The order is that of the names, and cursors lead from page to page.
        """
        many = [prompt(name=f"p{number}")(lambda: "Hi.") for number in range(5)]
        client = client_of(*many, revision=revision, page_size=2)
        found, cursor = [], {}
        while cursor is not None:
            page = client.ask("tools/list", cursor)["result"]
            found += [tool["name"] for tool in page["tools"]]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None

        assert found == ["p0", "p1", "p2", "p3", "p4"]

    @pytest.mark.requirement("tools/capability")
    @EVERY_REVISION
    @pytest.mark.parametrize("tools", [True, "search"])
    def test_the_capability_is_declared(self, revision, tools):
        """
        Changes are told of, as those of other lists are.
        """
        client = client_of(revision=revision, tools=tools, changes=True)
        method = "server/discover" if revision == MODERN else "initialize"
        params = {} if revision == MODERN else {"protocolVersion": revision, "capabilities": {}}
        client.methods[2] = method

        declared = client.ask(
            method, params | ({} if revision == MODERN else {"clientInfo": {"name": "t", "version": "1"}}), 2
        )["result"]["capabilities"]

        assert declared["tools"] == {"listChanged": True}


class TestOff:
    @EVERY_REVISION
    def test_there_are_none_unless_they_are_asked_for(self, revision):
        """
        The list is empty, and a call is unknown, whatever its params are.
        """
        client = client_of(revision=revision, tools=False)

        assert client.ask("tools/list")["result"]["tools"] == []
        for params in ({"name": "review"}, {}, {"name": 3}):
            assert client.ask("tools/call", params)["error"]["code"] == -32601


class TestCalls:
    @EVERY_REVISION
    def test_a_text_is_one_block(self, revision):
        """
        What a prompt returns is the content, and nothing is sent twice.
        """
        result = client_of(revision=revision).call("review", code="x")["result"]

        assert result["content"] == [{"type": "text", "text": "('x', 1, False, 'calm', None)"}]
        assert result.keys() - {"resultType", "_meta"} == {"content"}

    def test_values_are_json(self):
        """
        Numbers, booleans, null and objects arrive as such; text that people write is read, too.
        """
        client = client_of()
        change = {"title": "t", "files": ["a"]}

        exact = client.call("review", code="", depth=2, strict=True, tone=None, change=change)
        people = client.call("review", code="", depth="2", strict="yes", tone="", change=json.dumps(change))

        assert texts(exact) == [f"('', 2, True, None, {Change(**change)!r})"]
        assert texts(people) == [f"('', 2, True, '', {Change(**change)!r})"]

    @EVERY_REVISION
    def test_every_part_is_a_block(self, revision):
        """
        Parts keep their order, a block says whose each of several turns is, and what a revision lacks is sent
        as something that it has.
        """
        content = client_of(revision=revision).call("dialog", media=True)["result"]["content"]

        assert [block["type"] for block in content] == [
            *("text", "text", "image"),
            "audio" if revision > "2024-11-05" else "resource",
            "resource",
            "resource_link" if revision >= "2025-06-18" else "text",
            *("text", "text"),
        ]
        assert [content[i]["text"] for i in (0, 1, -2, -1)] == ["[user]", "Look.", "[assistant]", "I see."]

    @EVERY_REVISION
    def test_plain_text_is_one_block(self, revision):
        """
        Whose each of several turns is stands above it, with blank lines between: some clients read the first
        block alone.
        """

        def talk():
            """Talk."""
            return user("Knock, knock.") + assistant("Who is there?", "Come in.")

        content = client_of(prompt(talk), revision=revision).call("talk")["result"]["content"]

        assert content == [
            {
                "type": "text",
                "text": "[user]\n\nKnock, knock.\n\n[assistant]\n\nWho is there?\n\nCome in.",
            }
        ]

    def test_texts_with_annotations_are_blocks_of_their_own(self):
        """
        What is said of one text is not said of the others.
        """

        def notes():
            """Write notes."""
            return user("Read this.", Text("For you.", priority=1.0))

        content = client_of(prompt(notes)).call("notes")["result"]["content"]

        assert [(block["text"], "annotations" in block) for block in content] == [
            ("Read this.", False),
            ("For you.", True),
        ]

    @pytest.mark.requirement("tools/errors/execution", "tools/inputs")
    @EVERY_REVISION
    def test_what_is_wrong_is_a_result(self, revision):
        """
        A model reads what is wrong with its call, and with the prompt, in the sentences that people read.
        """
        client = client_of(revision=revision)

        assert fault(client.call("review")) == "prompt 'review': 'code' is missing"
        assert fault(client.call("review", code=1, dept=2)) == (
            "prompt 'review': 'code' is 1, not text; "
            "'dept' is not an argument of this prompt (did you mean 'depth'?)"
        )
        assert fault(client.call("refuses", why="Try later.")) == "Try later."

    def test_a_failure_keeps_its_reason(self, capfd):
        """
        What a prompt raises stays on standard error, under the number that the model reads.
        """
        said = fault(client_of().call("fails"))

        assert said.startswith("prompt 'fails' failed (error ")
        assert "no client reads this" in capfd.readouterr().err

    @pytest.mark.requirement("tools/errors/unknown")
    @EVERY_REVISION
    @pytest.mark.parametrize("name", ["hidden", "reviw", ""])
    def test_an_unknown_tool_is_an_error_of_the_protocol(self, revision, name):
        """
        So is one whose author keeps it for people. The name that was meant is said.
        """
        error = client_of(revision=revision).call(name)["error"]

        assert error["code"] == -32602
        hint = "; did you mean 'review'?" if name == "reviw" else ""
        assert error["message"] == f"unknown tool {name!r}{hint}"

    def test_prompts_take_what_they_took(self):
        """
        With tools, null and empty text in a request for a prompt still mean that nothing is given.
        """
        got = client_of().get("review", code="x", tone="", change=None)

        assert got["result"]["messages"][0]["content"]["text"] == "('x', 1, False, 'calm', None)"

    @EVERY_REVISION
    def test_progress(self, revision):
        """
        A prompt that reports progress does so for who calls it.
        """
        told, reply = client_of(revision=revision).post("tools/call", {"name": "steps"}, progressToken="p")

        assert told == notification(
            "notifications/progress", {"progressToken": "p", "progress": 1, "total": 2}
        )
        assert texts(reply) == ["Done."]

    def test_async_prompts(self):
        """
        They are awaited.
        """
        client = client_of()

        (reply,) = client.post("tools/call", {"name": "awaits", "arguments": {"n": 3}}) or [reply_of(client)]

        assert texts(reply) == ["3"]

    def test_a_call_is_cancelled(self):
        """
        Its prompt ends, and nothing more is sent for it.
        """
        begun, ended = threading.Event(), threading.Event()

        @prompt
        async def waits():
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        client = client_of(waits)

        assert client.post("tools/call", {"name": "waits"}, 7) == []
        assert begun.wait(10)
        assert client.send(line(notification("notifications/cancelled", {"requestId": 7}))) == []
        assert ended.wait(10)
        assert client.ask("ping", number=8)["result"] == {}

    def test_a_cached_reply_is_that_of_its_method(self):
        """
        A prompt and a tool of the same arguments have a reply each.
        """

        @prompt(cache=60)
        def kept(n: int):
            return str(n)

        client = client_of(kept)

        assert "messages" in client.get("kept", n="1")["result"]
        assert texts(client.call("kept", n="1")) == ["1"]
        assert client.call("kept", n=1) == client.call("kept", n=1)

    def test_a_reply_that_is_too_long(self):
        """
        The limit of replies holds, and a model reads of it.
        """
        client = client_of(limits=Limits(reply=200))

        assert "at most 200 are sent" in fault(client.call("review", code="x" * 300))


def reply_of(client, within=5):
    """The reply that comes later."""
    until = time.monotonic() + within
    while not client.sent and time.monotonic() < until:
        time.sleep(0.001)
    (reply,) = client.replies()
    return reply


class TestSecrets:
    def test_they_are_repeated_nowhere(self, tmp_path):
        """
        Neither the result nor the audit holds the value of a secret.
        """
        audit = Audit(tmp_path / "audit")
        said = fault(client_of(observers=[audit]).call("login", token="s3cret-word"))  # noqa: S106

        assert "s3cret-word" not in said
        assert "is not known" in said
        assert "s3cret-word" not in (tmp_path / "audit").read_text()

    @pytest.mark.parametrize(
        ("sent", "expected"),
        [
            ("s3cret-word", "a JSON object"),
            (["s3cret-word"], "a JSON object"),
            ('{"token": s3cret-word', "JSON that can be read"),
        ],
    )
    def test_nor_are_arguments_that_cannot_be_read(self, sent, expected):
        """
        What is sent in their place to the tool that gets a prompt may hold a secret, too.
        """
        said = fault(client_of(tools="search").call("get_prompt", name="login", arguments=sent))

        assert said == f"tool 'get_prompt': 'arguments' is not {expected}"


class TestAudit:
    def test_calls_are_noted(self, tmp_path):
        """
        A line says which prompt was called, and whether it went wrong.
        """
        client = client_of(observers=[Audit(tmp_path / "audit")])
        client.call("review", code="x")
        client.call("review")
        client.call("none")

        noted = [json.loads(found) for found in (tmp_path / "audit").read_text().splitlines()][1:]
        assert [(one["method"], one["prompt"], one["outcome"]) for one in noted] == [
            ("tools/call", "review", "ok"),
            ("tools/call", "review", "failed"),
            ("tools/call", "none", "error"),
        ]


class TestQuestions:
    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_a_session_is_asked(self, revision):
        """
        What is missing is asked for, and what the person enters is read with what the model sent.
        """
        client = client_of(revision=revision, capabilities=FORM)
        (asked,) = client.post("tools/call", {"name": "release", "arguments": {"version": 3}})

        (reply,) = client.answer(asked["id"], {"action": "accept", "content": {"notes": "long"}})
        assert texts(reply) == ["4: long"]

    def test_a_modern_client_repeats_its_call(self):
        """
        The state of a call belongs to that call: a request for the prompt is refused with it.
        """
        client = client_of(revision=MODERN, capabilities=FORM)
        params = {"name": "release", "arguments": {"version": 3}}
        asked = client.ask("tools/call", params)["result"]
        (key,) = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"notes": "long"}}}
        retry = {**params, "inputResponses": answers, "requestState": asked["requestState"]}

        assert texts(client.ask("tools/call", retry)) == ["4: long"]
        assert "another request" in client.ask("prompts/get", retry)["error"]["message"]
        bent = {**retry, "requestState": retry["requestState"][:-2] + "AA"}
        assert client.ask("tools/call", bent)["error"]["code"] == -32602

    @EVERY_REVISION
    def test_who_declines_is_told_what_is_missing(self, revision):
        """
        Without an answer, or without forms, the model reads what it has to send.
        """
        said = fault(client_of(revision=revision, capabilities={}).call("release", version=3))

        assert said == "prompt 'release': 'notes' is missing"


class TestSearch:
    def test_two_tools_take_the_place_of_all(self):
        """
        They expect what may be expected of any prompt that they may call.
        """
        find, get = client_of(tools="search").ask("tools/list")["result"]["tools"]

        assert (find["name"], get["name"]) == ("find_prompts", "get_prompt")
        assert find["annotations"]["readOnlyHint"] is True
        assert get["annotations"] == {
            "readOnlyHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
            "destructiveHint": True,
        }

    @EVERY_REVISION
    def test_what_is_found_can_be_got(self, revision):
        """
        A model finds a prompt by words, reads its schema, and gets it with values that fit.
        """
        client = client_of(revision=revision, tools="search")
        (text,) = texts(client.call("find_prompts", query="code"))
        found = json.loads(text)["prompts"][0]

        assert found["name"] == "review"
        assert found["arguments"]["properties"] == review.compiled.schema["properties"]
        got = client.call("get_prompt", name="review", arguments={"code": "x", "depth": 2, "tone": None})
        assert texts(got) == ["('x', 2, False, None, None)"]

    def test_what_is_wrong_is_a_result(self):
        """
        A model may have misread a name, or an argument. Only the two tools are known, and no hidden prompt.
        """
        client = client_of(tools="search")

        assert (
            fault(client.call("get_prompt", name="reviw")) == "unknown prompt 'reviw'; did you mean 'review'?"
        )
        assert fault(client.call("get_prompt", name="hidden")) == "unknown prompt 'hidden'"
        assert fault(client.call("get_prompt")) == "tool 'get_prompt': 'name' is missing"
        assert fault(client.call("get_prompt", name="review")) == "prompt 'review': 'code' is missing"
        assert fault(client.call("find_prompts")) == "tool 'find_prompts': 'query' is missing"
        assert client.call("review", code="x")["error"]["message"] == "unknown tool 'review'"
        assert "hidden" not in texts(client.call("find_prompts", query=""))[0]

    def test_questions(self):
        """
        A prompt that asks for what is missing does so here, too.
        """
        client = client_of(revision=MODERN, capabilities=FORM, tools="search")
        params = {"name": "get_prompt", "arguments": {"name": "release", "arguments": {"version": 3}}}
        asked = client.ask("tools/call", params)["result"]
        (key,) = asked["inputRequests"]
        answers = {key: {"action": "accept", "content": {"notes": "long"}}}
        retry = {**params, "inputResponses": answers, "requestState": asked["requestState"]}

        assert texts(client.ask("tools/call", retry)) == ["4: long"]

    def test_only_the_best_are_shown(self):
        """
        How many match is said; a longer query finds fewer of them first.
        """
        many = [prompt(name=f"p{number}", description="Sort books.")(lambda: "Hi.") for number in range(30)]
        (text,) = texts(client_of(*many, tools="search").call("find_prompts", query="books"))
        found = json.loads(text)

        assert (len(found["prompts"]), found["found"]) == (10, 30)


class TestChanges:
    @pytest.mark.requirement("tools/list-changed/session")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_session_is_told(self, revision):
        """
        Once for prompts, once for tools; a prompt that is no tool changes no tools.
        """
        client = client_of(review, revision=revision, changes=True)
        client.sent.clear()

        client.server.replace(compile(Recipes(prompts=(review, hidden))))
        assert [told["method"] for told in client.replies()] == ["notifications/prompts/list_changed"]
        client.sent.clear()
        client.server.replace(compile(Recipes(prompts=(review, steps))))
        assert [told["method"] for told in client.replies()] == [
            "notifications/prompts/list_changed",
            "notifications/tools/list_changed",
        ]
        listed = client.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["review", "steps"]

    @pytest.mark.requirement("tools/list-changed/stream")
    @pytest.mark.parametrize("tools", [True, False])
    def test_a_stream_is_told_of_what_it_wants(self, tools):
        """
        Tools are acknowledged where they are offered, and a stream for them hears of nothing else.
        """
        client = client_of(review, revision=MODERN, changes=True, tools=tools)
        wanted = {"notifications": {"toolsListChanged": True}}
        (acknowledged,) = client.post("subscriptions/listen", wanted)
        client.sent.clear()
        client.server.replace(compile(Recipes(prompts=(review, steps))))

        assert acknowledged["params"]["notifications"] == ({"toolsListChanged": True} if tools else {})
        methods = [told["method"] for told in client.replies()]
        assert methods == ["notifications/tools/list_changed"] * tools


class TestTimeLimits:
    def test_a_model_reads_of_the_limit(self):
        """
        A prompt that takes longer than its author allows ends in a result.
        """
        client = client_of()
        data = [line({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "sleeps"}})]
        client.methods[9] = "tools/call"
        client.sent.clear()
        client.server.read_from(lambda: data.pop() if data else time.sleep(0.3) or b"", bool)
        found = reply_of(client)
        with suppress(RuntimeError):
            client.server.close(0)

        assert fault(found).startswith("prompt 'sleeps' took longer than its limit of 0.05 s (error ")
