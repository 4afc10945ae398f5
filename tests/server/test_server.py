import asyncio
import gc
import json
import threading
import time

import pytest

from promptkit import ArgumentsError, Context, EmbeddedResource, PromptError, assistant, prompt, user
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
    """The replies, once there are any."""
    deadline = time.monotonic() + seconds
    while not client.sent and time.monotonic() < deadline:
        time.sleep(0.002)
    return client.replies()


class TestAnswers:
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_a_prompt(self, revision):
        """
        A prompt is rendered for the strings that a client sends, in every revision.
        """
        result = client_of(greet, revision=revision).get("greet", name="Ada", times="2")["result"]

        validate(result, revision, "GetPromptResult")
        assert result == {
            "description": "Say hello.",
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "Hello, Ada!Hello, Ada!"}},
                {"role": "assistant", "content": {"type": "text", "text": "Hello."}},
            ],
        }

    def test_one_write_for_all_that_one_read_brought(self):
        """
        The replies to a chunk leave together, in order.
        """
        client = client_of(greet)

        answers = client.send(b"".join(line(request(i, "ping")) for i in range(50)))

        assert list(range(50)) == [answer["id"] for answer in answers]
        assert len(client.sent) == 1

    @pytest.mark.parametrize("arguments", [{"arguments": {}}, {"arguments": None}, {}], ids=str)
    def test_no_arguments_are_all_alike(self, arguments):
        """
        AbsentError, null and empty arguments mean the same.
        """

        @prompt
        def hello(name: str = "you") -> str:
            return f"Hello, {name}."

        answer = client_of(hello).ask("prompts/get", {"name": "hello", **arguments})

        assert answer["result"]["messages"][0]["content"]["text"] == "Hello, you."

    def test_the_context(self):
        """
        A parameter annotated Context receives the request's, and is no argument.
        """

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


class TestRefusals:
    def test_an_unknown_prompt(self):
        """
        It is -32602, with the nearest name.
        """
        answer = client_of(greet).get("gret")

        assert answer["error"] == {
            "code": -32602,
            "message": "unknown prompt 'gret'; did you mean 'greet'?",
            "data": {"name": "gret", "nearest": "greet"},
        }

    @pytest.mark.requirement("base/error/data")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_every_fault_at_once(self, revision):
        """
        A missing, a wrong and an unknown argument are three faults of one reply.
        """
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

    def test_what_an_author_says(self):
        """
        The message of a PromptError is sent unchanged.
        """

        @prompt
        def strict() -> str:
            raise PromptError("there are no logs yet: run the service first")

        assert (client_of(strict).get("strict")["error"]) == {
            "code": -32602,
            "message": "there are no logs yet: run the service first",
        }

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
    def test_what_an_author_does_not_say(self, error, capsys):
        """
        Any other exception is -32603 without its text; the traceback is on stderr, under the id
        that the client got.
        """

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

    def test_a_prompt_at_fault_that_another_calls(self, capsys):
        """
        What promptkit raises for the author is not sent to the client.
        """

        @prompt
        def faulty(a) -> str:
            return a

        @prompt
        def outer() -> str:
            return str(faulty.render("x"))

        assert client_of(outer).get("outer")["error"]["code"] == -32603
        assert "PK301" in capsys.readouterr().err

    def test_an_authors_data_stays_here(self):
        """
        What else an author's exception carries is not sent.
        """

        class Refusal(PromptError):
            data = object()

        @prompt
        def strict() -> str:
            raise Refusal("no")

        assert client_of(strict).get("strict")["error"] == {"code": -32602, "message": "no"}

    @pytest.mark.parametrize(
        "call", [lambda p: p.render_wire({"n": "password123"}), lambda p: p.render_wire()]
    )
    def test_the_faults_of_another_prompt_stay_here(self, call, capsys):
        """
        A prompt that is refused by one that it calls has a bug: its client did nothing wrong.
        """

        @prompt
        def inner(n: int) -> str:
            return str(n)

        @prompt
        def outer() -> str:
            return str(call(inner))

        error = client_of(inner, outer).get("outer")["error"]

        assert error["code"] == -32603
        assert "password123" not in error["message"]

    def test_half_a_surrogate_pair(self, capsys):
        """
        Text that UTF-8 cannot hold fails that one request.
        """

        @prompt
        def half() -> str:
            return "\ud800"

        client = client_of(half)

        assert client.get("half")["error"]["code"] == -32603
        assert client.ask("ping")["result"] == {}

    def test_half_a_surrogate_pair_in_an_error(self):
        """
        An author's message is sent, whatever it holds.
        """

        @prompt
        def half() -> str:
            raise PromptError("bad \ud800")

        assert client_of(half).get("half")["error"]["message"] == "bad \\ud800"


class TestAsynchronousPrompts:
    def test_a_coroutine_and_an_asynchronous_generator(self):
        """
        Both are rendered on an event loop, and answered when they are ready.
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

    def test_it_does_not_hold_up_others(self):
        """
        While one waits, others are answered; at the end it is given its grace.
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

    def test_a_cancelled_one_is_not_answered(self):
        """
        After a cancellation nothing more is sent for the request.
        """
        cancelled, begun = [], threading.Event()

        @prompt
        async def slow() -> str:
            begun.set()
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                cancelled.append(True)
                raise
            return "done"

        client = client_of(slow)
        client.send(line(request(1, "prompts/get", {"name": "slow"})))
        begun.wait(20)
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}

        assert client.send(line(cancel)) == []
        deadline = time.monotonic() + 50
        while not cancelled and time.monotonic() < deadline:
            time.sleep(0.002)
        client.server.close(grace=5)
        assert (client.replies(), cancelled) == ([], [True])

    @pytest.mark.requirement("base/request/reused-id", "base/response/same-id")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_an_id_in_use_is_refused(self, revision):
        """
        A request with the id of one that still runs is invalid, be it the same or another; the
        first is answered. The same digits as text are another id.
        """
        release = threading.Event()

        @prompt
        async def slow() -> str:
            await asyncio.to_thread(release.wait, 20)
            return "done"

        client = client_of(slow, revision=revision)
        client.post("prompts/get", {"name": "slow"}, 1)
        refused = [client.ask(method, {"name": "slow"}, 1) for method in ("prompts/get", "prompts/list")]
        served = client.ask("prompts/list", {}, "1")
        client.sent.clear()
        client.methods[1] = "prompts/get"
        release.set()
        client.server.close(grace=5)

        assert [(answer["id"], answer["error"]["code"]) for answer in refused] == [(1, -32600)] * 2
        assert (served["id"], "prompts" in served["result"]) == ("1", True)
        assert [(answer["id"], "messages" in answer["result"]) for answer in client.replies()] == [(1, True)]

    def test_an_id_may_be_used_again(self):
        """
        Once a request is answered its id is free, however fast the answer was.
        """

        @prompt
        async def quick() -> str:
            return "done"

        client = client_of(quick)
        for _ in range(300):
            client.send(line(request(1, "prompts/get", {"name": "quick"})))
            (answer,) = wait_for(client)
            assert "result" in answer

    def test_a_task_that_exits_takes_no_other_with_it(self, capsys):
        """
        Whatever a task of a prompt raises, this request fails and later ones are served.
        """

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
    def test_a_failing_one(self, error, capsys):
        """
        Whatever it raises fails that one request, and the next is served.
        """

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
    def test_part_of_a_batch(self):
        """
        In a batch its reply is waited for.
        """

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
    def test_a_prompt_that_takes_too_long(self, kind):
        """
        It is answered with an error when its time is over, whatever kind it is.
        """

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

    def test_an_authors_own_timeout_is_an_exception_like_any_other(self, capsys):
        """
        TimeoutError from the prompt's own code is not mistaken for the limit.
        """

        @prompt(timeout=5)
        def impatient() -> str:
            raise TimeoutError("the database")

        client = client_of(impatient)
        client.send(line(request(1, "prompts/get", {"name": "impatient"})))
        (answer,) = wait_for(client)

        assert answer["error"]["message"].startswith("prompt 'impatient' failed (error ")

    @pytest.mark.parametrize("error", [StopIteration, SystemExit, BaseException])
    def test_what_ends_no_thread(self, error, capsys):
        """
        A prompt with a limit that raises is answered at once, whatever it raises.
        """

        @prompt(timeout=30)
        def broken() -> str:
            raise error

        client = client_of(broken)
        client.send(line(request(1, "prompts/get", {"name": "broken"})))
        (answer,) = wait_for(client)

        assert answer["error"]["message"].startswith("prompt 'broken' failed (error ")

    def test_those_that_hang_do_not_hold_up_others(self):
        """
        Prompts that run after their time limit do not delay others.
        """

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

    def test_one_that_is_in_time(self):
        """
        A prompt with a limit is answered like any other.
        """

        @prompt(timeout=5)
        def quick(name: str) -> str:
            return name

        client = client_of(quick)
        client.send(line(request(1, "prompts/get", {"name": "quick", "arguments": {"name": "x"}})))

        assert wait_for(client)[0]["result"]["messages"][0]["content"]["text"] == "x"


class TestCache:
    def test_a_renewed_reply_is_the_newest(self, monkeypatch):
        """
        Of too many replies those go first that were kept first, a renewed one last.
        """
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

    def test_equal_arguments_within_the_time(self, monkeypatch):
        """
        A reply is served again for the same arguments, until its time is over.
        """
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

    def test_faults_are_not_kept(self):
        """
        An error is found anew each time.
        """
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

    def test_a_prompt_with_a_context_is_never_cached(self):
        """
        What depends on the request is rendered for each.
        """

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
    """
    No line break inside a message reaches the wire, in a result, an error or an id.
    """
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


def test_a_refused_request_leaves_nothing_behind():
    """
    What a refusal went through is freed at once, and not when the collector comes by.
    """
    client = client_of(greet)
    client.get("greet", times="many")

    def errors():
        return sum(type(found) is ArgumentsError for found in gc.get_objects())

    gc.collect()
    gc.disable()
    try:
        before = errors()
        for _ in range(20):
            client.server.receive_data(line(request(1, "prompts/get", {"name": "greet"})))
        after = errors()
    finally:
        gc.enable()

    assert after == before
