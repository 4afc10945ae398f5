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
    strict: bool = False,  # noqa: FBT001, FBT002 (as authors write it)
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
    """Only for people."""
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
    """Return a client of a server with tools."""
    return Client(compile(Recipes(prompts=prompts or ALL)), revision, tools=tools, **options)


def texts(reply):
    """Return the text of each block of a result."""
    return [block["text"] for block in reply["result"]["content"]]


def error_text(reply):
    """Return the text of a result that is an error."""
    assert reply["result"]["isError"] is True
    (text,) = texts(reply)
    return text


class TestList:
    @pytest.mark.requirement("tools/annotations", "tools/input-schema")
    @EVERY_REVISION
    def test_every_prompt_is_a_tool(self, revision):
        """A tool has the fields of its prompt that the revision supports, and the schema of its arguments."""
        tools = {
            tool["name"]: tool for tool in client_of(revision=revision).ask("tools/list")["result"]["tools"]
        }

        assert list(tools) == sorted({declared.options.name for declared in ALL} - {"hidden"})
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

    def test_annotations(self):
        """`tool=` determines the annotations; only tools that change something can be destructive."""
        tools = {tool["name"]: tool for tool in client_of().ask("tools/list")["result"]["tools"]}

        assert tools["dialog"]["annotations"] == {
            "readOnlyHint": False,
            "idempotentHint": False,
            "openWorldHint": True,
            "destructiveHint": True,
        }

    @pytest.mark.requirement("tools/list/order")
    @EVERY_REVISION
    def test_pages(self, revision):
        """Tools are sorted by name, and cursors lead from page to page."""
        prompts = [prompt(name=f"p{number}")(lambda: "Hi.") for number in range(5)]
        client = client_of(*prompts, revision=revision, page_size=2)
        names, cursor = [], {}
        while cursor is not None:
            page = client.ask("tools/list", cursor)["result"]
            names += [tool["name"] for tool in page["tools"]]
            cursor = {"cursor": page["nextCursor"]} if "nextCursor" in page else None

        assert names == ["p0", "p1", "p2", "p3", "p4"]

    @pytest.mark.requirement("tools/capability")
    @EVERY_REVISION
    @pytest.mark.parametrize("tools", [True, "search"])
    def test_capability(self, revision, tools):
        """Change notifications are declared like those of other lists."""
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
    def test_tools_are_off_by_default(self, revision):
        """The list is empty, and a call is rejected as an unknown method, whatever its params are."""
        client = client_of(revision=revision, tools=False)

        assert client.ask("tools/list")["result"]["tools"] == []
        for params in ({"name": "review"}, {}, {"name": 3}):
            assert client.ask("tools/call", params)["error"]["code"] == -32601


class TestCalls:
    @EVERY_REVISION
    def test_text(self, revision):
        """The text of a prompt is the content of the result, and is sent once."""
        result = client_of(revision=revision).call("review", code="x")["result"]

        assert result["content"] == [{"type": "text", "text": "('x', 1, False, 'calm', None)"}]
        assert result.keys() - {"resultType", "_meta"} == {"content"}

    def test_json_values(self):
        """Arguments can be JSON values of their types, or text as people write it."""
        client = client_of()
        change = {"title": "t", "files": ["a"]}

        exact = client.call("review", code="", depth=2, strict=True, tone=None, change=change)
        written = client.call("review", code="", depth="2", strict="yes", tone="", change=json.dumps(change))

        assert texts(exact) == [f"('', 2, True, None, {Change(**change)!r})"]
        assert texts(written) == [f"('', 2, True, '', {Change(**change)!r})"]

    @EVERY_REVISION
    def test_blocks(self, revision):
        """Blocks keep their order, roles are labelled, and unsupported blocks are converted."""
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
        """Turns of plain text are one labelled block, because some clients read only the first block."""

        def talk():
            """Talk."""
            return user("Knock, knock.") + assistant("Hello?", "Come in.")

        content = client_of(prompt(talk), revision=revision).call("talk")["result"]["content"]

        assert content == [
            {
                "type": "text",
                "text": "[user]\n\nKnock, knock.\n\n[assistant]\n\nHello?\n\nCome in.",
            }
        ]

    def test_annotated_text_is_a_separate_block(self):
        """The annotations of a text block do not apply to other blocks."""

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
    def test_errors_are_results(self, revision):
        """Invalid arguments and author errors are results that a model can read."""
        client = client_of(revision=revision)

        assert error_text(client.call("review")) == "prompt 'review': 'code' is missing"
        assert error_text(client.call("review", code=1.5, dept=2)) == (
            "prompt 'review': 'code' is 1.5, not text; "
            "'dept' is not an argument of this prompt (did you mean 'depth'?)"
        )
        assert error_text(client.call("refuses", why="Try later.")) == "Try later."

    @EVERY_REVISION
    @pytest.mark.parametrize("name", ["toolCallId", "sessionId", "action", "chatInput", "x" * 1000, ""])
    def test_unknown_arguments_are_ignored(self, revision, name):
        """A tool ignores the arguments that hosts add, even with the value null."""
        client = client_of(revision=revision)

        assert texts(client.call("review", code="x", **{name: "7"})) == texts(client.call("review", code="x"))
        assert texts(client.call("review", code="x", **{name: None})) == texts(
            client.call("review", code="x")
        )

    @pytest.mark.parametrize("name", ["Code", "codes", "dept", "dep", "CODE"])
    def test_misspelt_arguments_are_errors(self, name):
        """An unknown argument with a name similar to an argument's is an error, even if all are optional."""
        message = error_text(client_of().call("review", **{"code": "x", name: "7"}))

        assert f"'{name}' is not an argument of this prompt (did you mean '" in message

    def test_ambiguous_name_is_an_error(self):
        """A name that is equally similar to several arguments is an error without a suggestion."""

        def compare(text_a: str = "", text_b: str = ""):
            """Compare two texts."""
            return text_a + text_b

        message = error_text(client_of(prompt(compare)).call("compare", text_c="x"))

        assert message == "prompt 'compare': 'text_c' is not an argument of this prompt"

    def test_prompts_reject_unknown_arguments(self):
        """Requests for a prompt cannot have unknown arguments, although the prompt is also a tool."""
        error = client_of().ask(
            "prompts/get", {"name": "review", "arguments": {"code": "x", "sessionId": "7"}}
        )

        assert "'sessionId' is not an argument of this prompt" in error["error"]["message"]

    @pytest.mark.parametrize(
        ("tool", "arguments"),
        [
            ("find_prompts", {"query": "review", "sessionId": "7"}),
            ("find_prompts", {"query": 42}),
            ("get_prompt", {"name": "review", "arguments": {"code": "x"}, "sessionId": "7"}),
            ("get_prompt", {"name": "review", "arguments": {"code": "x", "sessionId": "7"}}),
        ],
        ids=str,
    )
    def test_arguments_of_search_tools(self, tool, arguments):
        """The tools that find and get prompts ignore unknown arguments as well."""
        assert "isError" not in client_of(tools="search").call(tool, **arguments)["result"]

    @EVERY_REVISION
    def test_whole_number_as_text(self, revision):
        """A whole number is accepted for text; other numbers are not."""
        client = client_of(revision=revision)

        assert texts(client.call("review", code=42)) == texts(client.call("review", code="42"))
        for value, shown in ((1.1, "1.1"), (42.0, "42.0"), (True, "true")):
            message = error_text(client.call("review", code=value))
            assert message == f"prompt 'review': 'code' is {shown}, not text"

    def test_failing_prompt(self, capfd):
        """A prompt's exception is only on standard error. Its error id is also in the result."""
        message = error_text(client_of().call("fails"))

        assert message.startswith("prompt 'fails' failed (error ")
        assert "no client reads this" in capfd.readouterr().err

    @pytest.mark.requirement("tools/errors/unknown")
    @EVERY_REVISION
    @pytest.mark.parametrize("name", ["hidden", "reviw", ""])
    def test_unknown_tool(self, revision, name):
        """Unknown and hidden tools are protocol errors, with the nearest name as a hint."""
        error = client_of(revision=revision).call(name)["error"]

        assert error["code"] == -32602
        hint = "; did you mean 'review'?" if name == "reviw" else ""
        assert error["message"] == f"unknown tool {name!r}{hint}"

    def test_prompt_requests_are_unchanged(self):
        """With tools, null and empty text in a request for a prompt still mean a missing argument."""
        reply = client_of().get("review", code="x", tone="", change=None)

        assert reply["result"]["messages"][0]["content"]["text"] == "('x', 1, False, 'calm', None)"

    @EVERY_REVISION
    def test_progress(self, revision):
        """A prompt can report progress to the client of a call."""
        report, reply = client_of(revision=revision).post("tools/call", {"name": "steps"}, progressToken="p")

        assert report == notification(
            "notifications/progress", {"progressToken": "p", "progress": 1, "total": 2}
        )
        assert texts(reply) == ["Done."]

    def test_async_prompts(self):
        """The result of an asynchronous prompt is awaited."""
        client = client_of()

        (reply,) = client.post("tools/call", {"name": "awaits", "arguments": {"n": 3}}) or [reply_of(client)]

        assert texts(reply) == ["3"]

    def test_cancelled_call(self):
        """The prompt of a cancelled call is cancelled, and the call gets no reply."""
        started, ended = threading.Event(), threading.Event()

        @prompt
        async def waits():
            started.set()
            try:
                await asyncio.sleep(60)
            finally:
                ended.set()

        client = client_of(waits)

        assert client.post("tools/call", {"name": "waits"}, 7) == []
        assert started.wait(10)
        assert client.send(line(notification("notifications/cancelled", {"requestId": 7}))) == []
        assert ended.wait(10)
        assert client.ask("ping", number=8)["result"] == {}

    def test_cache_is_per_method(self):
        """A prompt and its tool are cached separately."""

        @prompt(cache=60)
        def cached(n: int):
            return str(n)

        client = client_of(cached)

        assert "messages" in client.get("cached", n="1")["result"]
        assert texts(client.call("cached", n="1")) == ["1"]
        assert client.call("cached", n=1) == client.call("cached", n=1)

    def test_reply_above_the_limit(self):
        """A result above the size limit is an error that a model can read."""
        client = client_of(limits=Limits(reply=200))

        assert "the limit is 200" in error_text(client.call("review", code="x" * 300))


def reply_of(client, within=5):
    """Wait for the reply, and return it."""
    until = time.monotonic() + within
    while not client.sent and time.monotonic() < until:
        time.sleep(0.001)
    (reply,) = client.replies()
    return reply


class TestSecrets:
    def test_secrets_are_not_repeated(self, tmp_path):
        """Neither the result nor the audit contains the value of a secret."""
        audit = Audit(tmp_path / "audit")
        message = error_text(client_of(observers=[audit]).call("login", token="s3cret-word"))  # noqa: S106

        assert "s3cret-word" not in message
        assert "is not known" in message
        assert "s3cret-word" not in (tmp_path / "audit").read_text()

    @pytest.mark.parametrize(
        ("sent", "expected"),
        [
            ("s3cret-word", "a JSON object"),
            (["s3cret-word"], "a JSON object"),
            ('{"token": s3cret-word', "valid JSON"),
        ],
    )
    def test_invalid_arguments_are_not_repeated(self, sent, expected):
        """Invalid arguments of `get_prompt` are not repeated, because they can contain a secret."""
        message = error_text(client_of(tools="search").call("get_prompt", name="login", arguments=sent))

        assert message == f"tool 'get_prompt': 'arguments' is not {expected}"


class TestAudit:
    def test_unknown_arguments_are_named(self, tmp_path):
        """The audit names unknown arguments, without their values, whether or not they are ignored."""
        client = client_of(observers=[Audit(tmp_path / "audit")])
        client.call("review", code="x", toolCallId="s3cret-word")
        client.call("review", code="x", dept=2)
        client.call("review", code="x")
        client.call("none", code="x")

        text = (tmp_path / "audit").read_text()
        records = [json.loads(record) for record in text.splitlines()][1:]
        assert [(record["outcome"], record.get("unknown")) for record in records] == [
            ("ok", ["toolCallId"]),
            ("failed", ["dept"]),
            ("ok", None),
            ("error", None),
        ]
        assert "s3cret-word" not in text

    def test_calls_are_recorded(self, tmp_path):
        """The audit records the prompt and the outcome of a call."""
        client = client_of(observers=[Audit(tmp_path / "audit")])
        client.call("review", code="x")
        client.call("review")
        client.call("none")

        records = [json.loads(text) for text in (tmp_path / "audit").read_text().splitlines()][1:]
        assert [(record["method"], record["prompt"], record["outcome"]) for record in records] == [
            ("tools/call", "review", "ok"),
            ("tools/call", "review", "failed"),
            ("tools/call", "none", "error"),
        ]


class TestElicitation:
    @pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
    def test_session(self, revision):
        """Missing arguments are requested, and the answer is combined with the arguments of the model."""
        client = client_of(revision=revision, capabilities=FORM)
        (question,) = client.post("tools/call", {"name": "release", "arguments": {"version": 3}})

        (reply,) = client.answer(question["id"], {"action": "accept", "content": {"notes": "long"}})
        assert texts(reply) == ["4: long"]

    def test_modern_client(self):
        """The state of a call is valid only for that call, and not for the prompt."""
        client = client_of(revision=MODERN, capabilities=FORM)
        params = {"name": "release", "arguments": {"version": 3}}
        question = client.ask("tools/call", params)["result"]
        (key,) = question["inputRequests"]
        answers = {key: {"action": "accept", "content": {"notes": "long"}}}
        retry = {**params, "inputResponses": answers, "requestState": question["requestState"]}

        assert texts(client.ask("tools/call", retry)) == ["4: long"]
        assert "not issued by this server" in client.ask("prompts/get", retry)["error"]["message"]
        altered = {**retry, "requestState": retry["requestState"][:-2] + "AA"}
        assert client.ask("tools/call", altered)["error"]["code"] == -32602

    @EVERY_REVISION
    def test_client_without_forms(self, revision):
        """Without forms, the result names the missing arguments."""
        message = error_text(client_of(revision=revision, capabilities={}).call("release", version=3))

        assert message == "prompt 'release': 'notes' is missing"


class TestSearch:
    def test_two_tools_replace_all_others(self):
        """The annotations of the two tools cover every prompt that they can call."""
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
    def test_find_and_get(self, revision):
        """A model finds a prompt by words, reads its schema, and gets it with valid arguments."""
        client = client_of(revision=revision, tools="search")
        (text,) = texts(client.call("find_prompts", query="code"))
        entry = json.loads(text)["prompts"][0]

        assert entry["name"] == "review"
        assert entry["arguments"]["properties"] == review.compiled.schema["properties"]
        reply = client.call("get_prompt", name="review", arguments={"code": "x", "depth": 2, "tone": None})
        assert texts(reply) == ["('x', 2, False, None, None)"]

    def test_errors(self):
        """Errors of the two tools are results; other tools are unknown, and hidden prompts are not found."""
        client = client_of(tools="search")

        assert (
            error_text(client.call("get_prompt", name="reviw"))
            == "unknown prompt 'reviw'; did you mean 'review'?"
        )
        assert error_text(client.call("get_prompt", name="hidden")) == "unknown prompt 'hidden'"
        assert error_text(client.call("get_prompt")) == "tool 'get_prompt': 'name' is missing"
        assert error_text(client.call("get_prompt", name="review")) == "prompt 'review': 'code' is missing"
        assert error_text(client.call("find_prompts")) == "tool 'find_prompts': 'query' is missing"
        assert client.call("review", code="x")["error"]["message"] == "unknown tool 'review'"
        assert "hidden" not in texts(client.call("find_prompts", query=""))[0]

    def test_elicitation(self):
        """`get_prompt` requests missing arguments."""
        client = client_of(revision=MODERN, capabilities=FORM, tools="search")
        params = {"name": "get_prompt", "arguments": {"name": "release", "arguments": {"version": 3}}}
        question = client.ask("tools/call", params)["result"]
        (key,) = question["inputRequests"]
        answers = {key: {"action": "accept", "content": {"notes": "long"}}}
        retry = {**params, "inputResponses": answers, "requestState": question["requestState"]}

        assert texts(client.ask("tools/call", retry)) == ["4: long"]

    def test_number_of_matches(self):
        """Only the best matches are returned, with the total number."""
        prompts = [
            prompt(name=f"p{number}", description="Sort books.")(lambda: "Hi.") for number in range(30)
        ]
        (text,) = texts(client_of(*prompts, tools="search").call("find_prompts", query="books"))
        result = json.loads(text)

        assert (len(result["prompts"]), result["found"]) == (10, 30)


class TestChanges:
    @pytest.mark.requirement("tools/list-changed/session")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_session_is_notified(self, revision):
        """A session is notified separately of prompts and tools; a prompt without a tool changes no tools."""
        client = client_of(review, revision=revision, changes=True)
        client.sent.clear()

        client.server.replace(compile(Recipes(prompts=(review, hidden))))
        assert [message["method"] for message in client.replies()] == ["notifications/prompts/list_changed"]
        client.sent.clear()
        client.server.replace(compile(Recipes(prompts=(review, steps))))
        assert [message["method"] for message in client.replies()] == [
            "notifications/prompts/list_changed",
            "notifications/tools/list_changed",
        ]
        listed = client.ask("tools/list")["result"]["tools"]
        assert [tool["name"] for tool in listed] == ["review", "steps"]

    @pytest.mark.requirement("tools/list-changed/stream")
    @pytest.mark.parametrize("tools", [True, False])
    def test_stream_is_notified(self, tools):
        """A stream for tools is acknowledged if there are tools, and gets no other notifications."""
        client = client_of(review, revision=MODERN, changes=True, tools=tools)
        filters = {"notifications": {"toolsListChanged": True}}
        (acknowledged,) = client.post("subscriptions/listen", filters)
        client.sent.clear()
        client.server.replace(compile(Recipes(prompts=(review, steps))))

        assert acknowledged["params"]["notifications"] == ({"toolsListChanged": True} if tools else {})
        methods = [message["method"] for message in client.replies()]
        assert methods == ["notifications/tools/list_changed"] * tools


class TestTimeouts:
    def test_timeout_is_a_result(self):
        """A prompt that exceeds its timeout ends in a result that a model can read."""
        client = client_of()
        data = [line({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": {"name": "sleeps"}})]
        client.methods[9] = "tools/call"
        client.sent.clear()
        client.server.read_from(lambda: data.pop() if data else time.sleep(0.3) or b"", bool)
        reply = reply_of(client)
        with suppress(RuntimeError):
            client.server.close(0)

        assert error_text(reply).startswith("prompt 'sleeps' took longer than its limit of 0.05 s (error ")
