import asyncio
import gc
import json
import threading
import time
from typing import Annotated

import pytest

from promptkit import (
    Arg,
    ArgumentsError,
    Context,
    EmbeddedResource,
    Image,
    PromptError,
    assistant,
    prompt,
    user,
)
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from tests.wire import HANDSHAKES, REVISIONS, Client, line, request, validate


def client_of(*prompts, revision="2025-11-25", **options):
    catalog = compile(Recipes(prompts=prompts))
    assert catalog.diagnostics == ()
    return Client(catalog, revision, **options)


@prompt
def greet(name: str, times: int = 1):
    """Say hello."""
    return user(f"Hello, {name}!" * times) + assistant("Hello.")


def wait_for(client, seconds=5.0):
    """Wait until there are replies, and return them."""
    deadline = time.monotonic() + seconds
    while not client.sent and time.monotonic() < deadline:
        time.sleep(0.002)
    return client.replies()


class TestReplies:
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_prompt(self, revision):
        """A prompt is rendered with the strings that a client sends, in every revision."""
        result = client_of(greet, revision=revision).get("greet", name="Ada", times="2")["result"]

        validate(result, revision, "GetPromptResult")
        assert result == {
            "description": "Say hello.",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Hello, Ada!Hello, Ada!"}},
                {"role": "assistant", "content": {"type": "text", "text": "Hello."}},
            ],
        }

    def test_replies_to_one_read_are_sent_in_one_write(self):
        """The replies to the requests of one read are sent in one write, in order."""
        client = client_of(greet)

        answers = client.send(b"".join(line(request(i, "ping")) for i in range(50)))

        assert list(range(50)) == [answer["id"] for answer in answers]
        assert len(client.sent) == 1

    @pytest.mark.parametrize("arguments", [{"arguments": {}}, {"arguments": None}, {}], ids=str)
    def test_no_arguments(self, arguments):
        """Absent, null and empty arguments are equivalent."""

        @prompt
        def hello(name: str = "you") -> str:
            return f"Hello, {name}."

        answer = client_of(hello).ask("prompts/get", {"name": "hello", **arguments})

        assert answer["result"]["messages"][0]["content"]["text"] == "Hello, you."

    def test_context(self):
        """A parameter annotated Context receives the context of the request, and is not an argument."""

        @prompt
        def who(context: Context) -> str:
            client = f"{context.client_name} {context.client_version} {dict(context.capabilities)}"
            return f"{client} {context.revision} {context.request_id}"

        client = client_of(who, revision="2025-06-18")

        assert (
            (client.ask("prompts/get", {"name": "who"}, 7)["result"]["messages"][0]["content"]["text"])
            == "test 3.1 {'roots': {}} 2025-06-18 7"
        )
        assert "arguments" not in client.ask("prompts/list")["result"]["prompts"][0]


class TestErrors:
    def test_unknown_prompt(self):
        """An unknown prompt leads to -32602 with the nearest name."""
        answer = client_of(greet).get("gret")

        assert answer["error"] == {
            "code": -32602,
            "message": "unknown prompt 'gret'; did you mean 'greet'?",
            "data": {"name": "gret", "nearest": "greet"},
        }

    @pytest.mark.requirement("base/error/data")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_all_argument_errors_are_reported(self, revision):
        """Missing, invalid and unknown arguments are reported in one reply."""
        error = client_of(greet, revision=revision).get("greet", times="many", nme="Ada")["error"]

        assert error == {
            "code": -32602,
            "message": "prompt 'greet': 'times' is 'many', not a whole number; "
            "'nme' is not an argument of this prompt (did you mean 'name'?); 'name' is missing",
            "data": {
                "name": "greet",
                "errors": [
                    {
                        "argument": "times",
                        "reason": "is 'many', not a whole number",
                        "expected": "a whole number",
                        "got": "many",
                    },
                    {
                        "argument": "nme",
                        "reason": "is not an argument of this prompt",
                        "expected": "one of name, times",
                        "nearest": "name",
                    },
                    {"argument": "name", "reason": "is missing", "expected": "text"},
                ],
            },
        }

    def test_prompt_error(self):
        """The message of a PromptError is sent unchanged."""

        @prompt
        def strict() -> str:
            raise PromptError("there are no logs yet: run the service first")

        assert (client_of(strict).get("strict")["error"]) == {
            "code": -32602,
            "message": "there are no logs yet: run the service first",
        }

    def test_image_of_the_author(self, capfd):
        """Without arguments, an image that cannot be sent is the author's error, and the prompt fails."""

        @prompt
        def picture():
            return user("Look.", Image(b"\x89PNG\r\n\x1a\n" + bytes(20)))

        error = client_of(picture).get("picture")["error"]

        assert error["code"] == -32603
        assert error["message"].startswith("prompt 'picture' failed (error ")
        assert "the image is damaged or truncated" in capfd.readouterr().err

    def test_image_of_the_client(self, capfd):
        """An image that cannot be sent is the client's error if there are arguments, and names the prompt."""

        @prompt
        def picture(image: bytes):
            return user("Look.", Image(image))

        error = client_of(picture).get("picture", image="aGVsbG8=")["error"]

        assert error["code"] == -32602
        assert error["message"].startswith("prompt 'picture': the bytes are not in a known format, but ")
        assert capfd.readouterr().err == ""

    def test_image_of_the_author_or_the_client(self, capfd):
        """
        If no argument contains bytes, an image that cannot be sent can be the author's error, so the client
        gets the reason, and standard error shows the traceback without secrets.
        """

        @prompt
        def picture(size: int, key: Annotated[str, Arg(secret=True)] = ""):
            return user(key, Image(b"\x89PNG\r\n\x1a\n" + bytes(size)))

        error = client_of(picture).get("picture", size="20", key="hunter2hunter2")["error"]

        assert error["code"] == -32602
        assert error["message"].startswith("prompt 'picture': the image is damaged or truncated: ")
        lines = capfd.readouterr().err.splitlines()
        assert "error in prompt 'picture':" in lines[0]
        assert any("Image(b" in line for line in lines)
        assert "hunter2" not in "".join(lines)

    @pytest.mark.parametrize(
        "error",
        [
            ValueError,
            RecursionError,
            MemoryError,
            SystemExit,
            KeyboardInterrupt,
            UnicodeError,
            StopIteration,
            GeneratorExit,
            asyncio.CancelledError,
            BaseException,
        ],
    )
    def test_other_exception(self, error, capsys):
        """Any other exception leads to -32603 without its text; the traceback is logged with the error id."""

        @prompt
        def broken() -> str:
            raise error("password123")

        client = client_of(broken)
        answer = client.get("broken")["error"]

        logged = capsys.readouterr().err
        identifier = answer["message"].removeprefix("prompt 'broken' failed (error ").removesuffix(")")
        assert {"code", "message"} == set(answer)
        assert answer["code"] == -32603
        assert len(identifier) == 8
        assert f"error {identifier} in prompt 'broken'" in logged
        assert "password123" in logged
        assert client.ask("ping")["result"] == {}

    def test_invalid_prompt_that_another_calls(self, capsys):
        """An error in the declaration of a prompt that the author calls is not sent to the client."""

        @prompt
        def faulty(a) -> str:
            return a

        @prompt
        def outer() -> str:
            return str(faulty.render("x"))

        assert client_of(outer).get("outer")["error"]["code"] == -32603
        assert "PK301" in capsys.readouterr().err

    def test_data_of_an_exception_is_not_sent(self):
        """Attributes of an author's exception are not sent."""

        class DataError(PromptError):
            data = object()

        @prompt
        def strict() -> str:
            raise DataError("no")

        assert client_of(strict).get("strict")["error"] == {"code": -32602, "message": "no"}

    @pytest.mark.parametrize(
        "call", [lambda p: p.render_wire({"n": "password123"}), lambda p: p.render_wire()]
    )
    def test_argument_errors_of_another_prompt_are_not_sent(self, call, capsys):
        """Invalid arguments of a prompt that another calls are an internal error, without their values."""

        @prompt
        def inner(n: int) -> str:
            return str(n)

        @prompt
        def outer() -> str:
            return str(call(inner))

        error = client_of(inner, outer).get("outer")["error"]

        assert error["code"] == -32603
        assert "password123" not in error["message"]

    def test_lone_surrogate(self, capsys):
        """Text that UTF-8 cannot encode fails only its request."""

        @prompt
        def half() -> str:
            return "\ud800"

        client = client_of(half)

        assert client.get("half")["error"]["code"] == -32603
        assert client.ask("ping")["result"] == {}

    def test_lone_surrogate_in_an_error(self):
        """A lone surrogate in an author's message is escaped."""

        @prompt
        def half() -> str:
            raise PromptError("bad \ud800")

        assert client_of(half).get("half")["error"]["message"] == "bad \\ud800"


class TestAsynchronousPrompts:
    def test_coroutine_and_asynchronous_generator(self):
        """
        Coroutines and asynchronous generators run on an event loop, and are answered when they are ready.
        """

        @prompt
        async def later(name: str):
            await asyncio.sleep(0)
            return user(f"Hello, {name}.")

        @prompt
        async def stepwise():
            yield "one"
            await asyncio.sleep(0)
            yield assistant("two")

        client = client_of(later, stepwise)

        client.send(line(request(1, "prompts/get", {"name": "later", "arguments": {"name": "A"}})))
        (first,) = wait_for(client)
        client.send(line(request(2, "prompts/get", {"name": "stepwise"})))
        (second,) = wait_for(client)

        assert (first["id"], first["result"]["messages"][0]["content"]["text"]) == (1, "Hello, A.")
        assert [message["role"] for message in second["result"]["messages"]] == ["user", "assistant"]

    def test_other_requests_are_served(self):
        """
        While a coroutine waits, other requests are served. The coroutine has a grace period when the server
        closes.
        """

        @prompt
        async def slow() -> str:
            await asyncio.sleep(0.2)
            return "done"

        client = client_of(slow, greet)
        client.send(line(request(1, "prompts/get", {"name": "slow"})))

        assert client.ask("ping", number=2)["result"] == {}
        client.sent.clear()
        client.server.close(grace=5)
        assert [answer["id"] for answer in client.replies()] == [1]

    def test_cancelled_coroutine_is_not_answered(self):
        """After a cancellation nothing more is sent for the request."""
        cancelled, started = [], threading.Event()

        @prompt
        async def slow() -> str:
            started.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            return "done"

        client = client_of(slow)
        client.send(line(request(1, "prompts/get", {"name": "slow"})))
        started.wait(20)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

        assert client.send(line(cancel)) == []
        deadline = time.monotonic() + 50
        while not cancelled and time.monotonic() < deadline:
            time.sleep(0.002)
        client.server.close(grace=5)
        assert (client.replies(), cancelled) == ([], [True])

    @pytest.mark.requirement("base/request/reused-id", "base/response/same-id")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_id_in_use_is_rejected(self, revision):
        """
        A request with the id of a pending request is rejected, and the first is answered.

        The same digits as a string are a different id.
        """
        release = threading.Event()

        @prompt
        async def slow() -> str:
            await asyncio.to_thread(release.wait, 20)
            return "done"

        client = client_of(slow, revision=revision)
        client.post("prompts/get", {"name": "slow"}, 1)
        rejected = [client.ask(method, {"name": "slow"}, 1) for method in ("prompts/get", "prompts/list")]
        served = client.ask("prompts/list", {}, "1")
        client.sent.clear()
        client.methods[1] = "prompts/get"
        release.set()
        client.server.close(grace=5)

        assert [(answer["id"], answer["error"]["code"]) for answer in rejected] == [(1, -32600)] * 2
        assert (served["id"], "prompts" in served["result"]) == ("1", True)
        assert [(answer["id"], "messages" in answer["result"]) for answer in client.replies()] == [(1, True)]

    def test_id_is_reusable(self):
        """The id of an answered request is free, however fast the reply was."""

        @prompt
        async def quick() -> str:
            return "done"

        client = client_of(quick)
        for _ in range(300):
            client.send(line(request(1, "prompts/get", {"name": "quick"})))
            (answer,) = wait_for(client)
            assert "result" in answer

    def test_exiting_task(self, capsys):
        """Whatever a task of a prompt raises, its request fails and later requests are served."""

        async def leave():
            raise SystemExit(3)

        @prompt
        async def broken() -> str:
            await asyncio.gather(leave(), asyncio.sleep(0.01))
            return "done"

        @prompt
        async def fine() -> str:
            return "done"

        client = client_of(broken, fine)
        outcomes = []
        for name in ("broken", "fine", "broken", "fine"):
            client.send(line(request(1, "prompts/get", {"name": name})))
            outcomes += ["result" in answer for answer in wait_for(client)]

        assert outcomes == [False, True, False, True]

    @pytest.mark.parametrize(
        "error",
        [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit, asyncio.CancelledError, BaseException],
    )
    def test_failing_coroutine(self, error, capsys):
        """Whatever a coroutine raises, its request fails and the next is served."""

        @prompt
        async def broken() -> str:
            raise error("password123")

        client = client_of(broken)
        codes = []
        for number in (1, 2):
            client.send(line(request(number, "prompts/get", {"name": "broken"})))
            codes += [answer["error"]["code"] for answer in wait_for(client)]

        assert codes == [-32603, -32603]

    @pytest.mark.requirement("base/batch/received")
    def test_coroutine_in_a_batch(self):
        """The reply to a batch waits for its coroutines."""

        @prompt
        async def later() -> str:
            await asyncio.sleep(0.05)
            return "done"

        client = client_of(later, revision="2025-03-26")
        batch = [request(1, "prompts/get", {"name": "later"}), request(2, "ping")]

        assert client.send(line(batch)) == []
        (answers,) = wait_for(client)
        assert {1, 2} == {answer["id"] for answer in answers}


class TestTimeouts:
    @pytest.mark.parametrize("kind", ["plain", "async"])
    def test_slow_prompt(self, kind):
        """A prompt that exceeds its timeout is answered with an error, whether it is asynchronous or not."""

        @prompt(name="slow", timeout=0.05)
        def plain() -> str:
            time.sleep(0.3)
            return "done"

        @prompt(name="slow", timeout=0.05)
        async def coroutine() -> str:
            await asyncio.sleep(30)
            return "done"

        client = client_of(plain if kind == "plain" else coroutine, threads=True)
        client.send(line(request(1, "prompts/get", {"name": "slow"})))
        (answer,) = wait_for(client)

        message = "prompt 'slow' took longer than its limit of 0.05 s"
        assert (answer["error"]["code"], answer["error"]["message"][:-17]) == (-32603, message)

    def test_timeout_error_of_the_author(self, capsys):
        """A TimeoutError from the prompt's own code is not mistaken for the limit."""

        @prompt(timeout=5)
        def impatient() -> str:
            raise TimeoutError("the database")

        client = client_of(impatient)
        client.send(line(request(1, "prompts/get", {"name": "impatient"})))
        (answer,) = wait_for(client)

        assert answer["error"]["message"].startswith("prompt 'impatient' failed (error ")

    @pytest.mark.parametrize("error", [StopIteration, SystemExit, BaseException])
    def test_exception_in_a_prompt_with_a_timeout(self, error, capsys):
        """A prompt with a timeout is answered immediately if it raises, whatever it raises."""

        @prompt(timeout=30)
        def broken() -> str:
            raise error

        client = client_of(broken)
        client.send(line(request(1, "prompts/get", {"name": "broken"})))
        (answer,) = wait_for(client)

        assert answer["error"]["message"].startswith("prompt 'broken' failed (error ")

    def test_hanging_prompts_do_not_delay_others(self):
        """Prompts that continue after their timeout do not delay others."""

        @prompt(timeout=0.05)
        def hangs() -> str:
            time.sleep(1)
            return "done"

        @prompt(timeout=5)
        def quick() -> str:
            return "done"

        client = client_of(hangs, quick, threads=True)
        replies = [
            reply
            for number in range(20)
            for reply in client.post("prompts/get", {"name": "hangs"}, number)
            + client.post("prompts/get", {"name": "quick"}, 100 + number)
        ]
        time.sleep(0.1)  # the last ones
        replies += client.replies()

        assert {reply["id"] for reply in replies if "result" in reply} == set(range(100, 120))

    def test_prompt_within_its_timeout(self):
        """A prompt that returns within its timeout is answered."""

        @prompt(timeout=5)
        def quick(name: str) -> str:
            return name

        client = client_of(quick)
        client.send(line(request(1, "prompts/get", {"name": "quick", "arguments": {"name": "x"}})))

        assert wait_for(client)[0]["result"]["messages"][0]["content"]["text"] == "x"


class TestCache:
    def test_eviction_order(self, monkeypatch):
        """The oldest replies are evicted first, and a renewed reply counts as new."""
        calls = []

        @prompt(cache=60)
        def counted(n: int) -> str:
            calls.append(n)
            return str(n)

        client = client_of(counted)
        now = time.monotonic()
        for n in range(256):
            client.get("counted", n=str(n))
        monkeypatch.setattr(time, "monotonic", lambda: now + 100)
        client.get("counted", n="0")
        client.get("counted", n="256")
        calls.clear()
        client.get("counted", n="0")

        assert calls == []

    def test_equal_arguments(self, monkeypatch):
        """A reply is served again for the same arguments until it expires."""
        calls = []

        @prompt(cache=60)
        def counted(name: str = "x") -> str:
            calls.append(name)
            return f"{name} {len(calls)}"

        client = client_of(counted)

        def text(**arguments):
            return client.get("counted", **arguments)["result"]["messages"][0]["content"]["text"]

        assert [
            text(name="a"),
            text(name="a"),
            text(name="b"),
            text(name="a"),
        ] == ["a 1", "a 1", "b 2", "a 1"]
        later = time.monotonic() + 61
        monkeypatch.setattr(time, "monotonic", lambda: later)
        assert text(name="a") == "a 3"

    def test_errors_are_not_cached(self):
        """A prompt that has failed is rendered again."""
        calls = []

        @prompt(cache=60)
        def flaky() -> str:
            calls.append(1)
            if len(calls) == 1:
                raise PromptError("not yet")
            return "now"

        client = client_of(flaky)

        assert "error" in client.get("flaky")
        assert "result" in client.get("flaky")

    def test_prompt_with_a_context_is_not_cached(self):
        """A prompt that depends on the request is rendered for each request."""

        @prompt(cache=60)
        def who(context: Context) -> str:
            return str(context.request_id)

        client = client_of(who)
        texts = [
            client.ask("prompts/get", {"name": "who"}, number)["result"]["messages"][0]["content"]["text"]
            for number in (1, 2)
        ]

        assert texts == ["1", "2"]


@pytest.mark.requirement("stdio/one-line")
@pytest.mark.parametrize("revision", REVISIONS)
def test_every_reply_is_one_line(revision):
    """Line breaks in results, errors and ids are escaped."""
    broken = "a\nb\r\n\u2028c\x85\x0b"

    @prompt
    def file(text: str):
        raise PromptError(text)

    @prompt(description=broken)
    def document(text: str):
        return EmbeddedResource("file:///a", text=text)

    client = client_of(file, document, revision=revision)
    sent = []
    for method, params in [
        ("prompts/get", {"name": "file", "arguments": {"text": broken}}),
        ("prompts/get", {"name": "document", "arguments": {"text": broken}}),
        ("prompts/list", {}),
        (broken, {}),
    ]:
        assert client.ask(method, params, broken)["id"] == broken
        sent += client.sent

    assert [data.count(b"\n") for data in sent] == [1] * 4
    assert {data.count(b"\r") for data in sent} == {0}
    assert json.loads(sent[1])["result"]["messages"][0]["content"]["resource"]["text"] == broken


def test_rejected_request_is_freed():
    """The objects of a rejected request are freed without the garbage collector."""
    client = client_of(greet)
    client.get("greet", times="many")

    def count_errors():
        return sum(type(thing) is ArgumentsError for thing in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = count_errors()
        for _ in range(20):
            client.server.receive_data(line(request(1, "prompts/get", {"name": "greet"})))
        after = count_errors()
    finally:
        gc.enable()

    assert after == before
