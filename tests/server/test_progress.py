import asyncio
import contextlib
import math
import threading
import time
from queue import Queue

import pytest

from promptkit import Context, PromptError, prompt
from promptkit.compiler.compilation import compile
from promptkit.language.context import Progress, RequestCancelledError
from promptkit.loader.recipes import Recipes
from tests.wire import REVISIONS, Client, line, notification


@prompt
def steps(context: Context):
    """Report twice."""
    context.report_progress(1, 2, "reading")
    context.report_progress(2.5)
    return "done"


def client_of(*prompts, revision="2025-11-25", **options):
    return Client(compile(Recipes(prompts=prompts)), revision, **options)


@pytest.mark.requirement("progress/tokens", "progress/message", "progress/optional")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", [0, 7, "7", "", "ü"])
def test_progress_is_reported(revision, token):
    """Progress notifications carry the client's token and precede the reply."""
    first, second, reply = client_of(steps, revision=revision).post(
        "prompts/get", {"name": "steps"}, progressToken=token
    )

    message = {} if revision == "2024-11-05" else {"message": "reading"}
    assert first == notification(
        "notifications/progress", {"progressToken": token, "progress": 1, "total": 2, **message}
    )
    assert second == notification("notifications/progress", {"progressToken": token, "progress": 2.5})
    assert reply["result"]["messages"][0]["content"]["text"] == "done"


@pytest.mark.requirement("progress/tokens")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", [True, 0.5, [], {}], ids=str)
def test_invalid_token(revision, token):
    """A request with a token that is neither a string nor an integer is rejected."""
    (reply,) = client_of(steps, revision=revision).post("prompts/get", {"name": "steps"}, progressToken=token)

    assert (reply["error"]["code"], "progressToken" in reply["error"]["message"]) == (-32602, True)


@pytest.mark.requirement("progress/active-tokens")
@pytest.mark.parametrize("revision", REVISIONS)
def test_no_progress_without_a_token(revision):
    """Without a token, the client gets only the reply."""
    assert len(client_of(steps, revision=revision).post("prompts/get", {"name": "steps"})) == 1


@pytest.mark.requirement("progress/optional")
@pytest.mark.parametrize("revision", REVISIONS)
def test_prompt_without_progress(revision):
    """Without reports, the client gets only the reply."""

    @prompt
    def silent() -> str:
        return "done"

    (reply,) = client_of(silent, revision=revision).post("prompts/get", {"name": "silent"}, progressToken=1)

    assert "result" in reply


@pytest.mark.requirement("progress/fractions")
@pytest.mark.parametrize("revision", REVISIONS)
def test_fractions(revision):
    """Fractional progress and totals are sent unchanged."""

    @prompt
    def half(context: Context) -> str:
        context.report_progress(0.5, 1.25)
        return "done"

    message, _ = client_of(half, revision=revision).post("prompts/get", {"name": "half"}, progressToken=1)

    assert message["params"] == {"progressToken": 1, "progress": 0.5, "total": 1.25}


@pytest.mark.requirement("progress/increases")
@pytest.mark.parametrize("revision", REVISIONS)
def test_progress_must_increase(revision):
    """A report that does not increase is an error in the prompt, and is not sent."""

    @prompt
    def wavering(context: Context) -> str:
        for progress in [1, 1, 0.5, -3, 2, 2]:
            with contextlib.suppress(ValueError):
                context.report_progress(progress)
        return "done"

    client = client_of(wavering, revision=revision)
    *reports, _ = client.post("prompts/get", {"name": "wavering"}, progressToken=1)

    assert [report["params"]["progress"] for report in reports] == [1, 2]


@pytest.mark.requirement("progress/rate-limited")
@pytest.mark.parametrize("revision", REVISIONS)
def test_rate_limit(revision, monkeypatch):
    """At most 20 reports are sent immediately, and then 20 per second."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    @prompt
    def hasty(context: Context) -> str:
        for i in range(20_000):
            context.report_progress(i)
        for i in range(20_000, 21_280):
            now[0] += 1 / 128
            context.report_progress(i)
        return "done"

    client = client_of(hasty, revision=revision)
    *reports, reply = client.post("prompts/get", {"name": "hasty"}, progressToken=1)

    progress = [report["params"]["progress"] for report in reports]
    assert progress[:20] == list(range(20))
    assert (len(progress), sorted(set(progress))) == (20 + 200, progress)
    assert progress[-1] > 21_270
    assert "result" in reply


@pytest.mark.requirement("progress/rate-limited")
def test_slow_reports_are_all_sent(monkeypatch):
    """Reports below the rate limit are all sent, however many they are."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])

    @prompt
    def leisurely(context: Context) -> str:
        for i in range(300):
            now[0] += 0.0625
            context.report_progress(i)
        return "done"

    *reports, _ = client_of(leisurely).post("prompts/get", {"name": "leisurely"}, progressToken=1)

    assert len(reports) == 300


def test_progress_outside_of_a_request_is_ignored():
    """A prompt that reports progress can be called and tested as a plain function."""
    assert steps() == "done"
    assert str(steps.render()) == str(steps.render_wire())


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        ([1, 1], "progress is 1 after 1: it must increase with every report"),
        ([2, 1], "progress is 1 after 2: it must increase with every report"),
        ([math.nan], "progress nan of None is not finite: report finite numbers"),
        ([math.inf], "progress inf of None is not finite: report finite numbers"),
        ([10**400], f"progress {10**400} of None is not finite: report finite numbers"),
    ],
)
def test_invalid_progress(reports, message):
    """An invalid report is an error in the prompt, including in its tests."""
    context = Context()

    *before, last = reports
    for progress in before:
        context.report_progress(progress)

    with pytest.raises(ValueError, match=f"^{message}$"):
        context.report_progress(last)


def test_infinite_total():
    """A total must be a finite number."""
    with pytest.raises(ValueError, match="progress 1 of inf is not finite: report finite numbers"):
        Context().report_progress(1, math.inf)


@pytest.mark.requirement("progress/active-tokens", "progress/stops")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("ending", [None, PromptError("no"), ValueError("no")], ids=repr)
def test_no_progress_after_the_reply(revision, ending, capsys):
    """Reports from a thread that outlives its prompt are dropped, however the prompt ended."""
    contexts = []

    @prompt
    def hasty(context: Context) -> str:
        contexts.append(context)
        context.report_progress(1)
        if ending:
            raise ending
        return "done"

    client = client_of(hasty, revision=revision)
    report, reply = client.post("prompts/get", {"name": "hasty"}, progressToken=1)
    client.sent.clear()

    contexts[0].report_progress(2)

    assert (report["method"], "error" in reply) == ("notifications/progress", ending is not None)
    assert client.replies() == []


@pytest.mark.requirement("progress/stops")
@pytest.mark.parametrize("revision", REVISIONS)
def test_no_progress_after_the_timeout(revision):
    """A report after the timeout is not sent, and ends the prompt."""
    release, ended = threading.Event(), Queue()

    @prompt(timeout=0.05)
    def slow(context: Context) -> str:
        release.wait(50)
        try:
            context.report_progress(1)
        except BaseException as error:
            ended.put(type(error))
            raise
        return "done"

    client = client_of(slow, revision=revision, threads=True)
    client.post("prompts/get", {"name": "slow"}, progressToken=1)
    while not client.sent:
        time.sleep(0.001)
    release.set()

    assert ended.get(timeout=50) is RequestCancelledError
    client.server.close(10)
    (reply,) = client.replies()
    assert "took longer" in reply["error"]["message"]


@pytest.mark.requirement("cancellation/nothing-more", "progress/active-tokens")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("kind", ["plain", "async"])
def test_no_progress_after_a_cancellation(revision, kind):
    """A report after the cancellation is not sent, and ends the prompt."""
    started, release, ended = Queue(), threading.Event(), Queue()

    def report(context):
        try:
            context.report_progress(1)
        except BaseException as error:
            ended.put(type(error))
            raise

    @prompt(name="slow", timeout=30)
    def plain(context: Context) -> str:
        started.put(context)
        release.wait(50)
        report(context)
        return "done"

    @prompt(name="slow")
    async def coroutine(context: Context) -> str:
        started.put(context)
        try:
            await asyncio.sleep(30)
        finally:
            report(context)
        return "done"

    prompts = plain if kind == "plain" else coroutine
    client = client_of(prompts, revision=revision, threads=True)
    client.post("prompts/get", {"name": "slow"}, 3, progressToken=1)
    context = started.get(timeout=50)
    client.send(line(notification("notifications/cancelled", {"requestId": 3})))
    release.set()
    assert ended.get(timeout=50) is RequestCancelledError
    context.report_progress(2)
    client.server.close(10)

    assert client.replies() == []


@pytest.mark.requirement("progress/tracked")
@pytest.mark.parametrize("revision", REVISIONS)
def test_concurrent_requests(revision):
    """Each of several concurrent requests reports progress with its own token until the request ends."""
    contexts, ends = Queue(), {}

    @prompt
    async def waits(name: str, context: Context) -> str:
        ends[name] = asyncio.Event(), asyncio.get_running_loop()
        contexts.put(context)
        await ends[name][0].wait()
        return name

    client = client_of(waits, revision=revision)

    def report(*reports):
        client.sent.clear()
        for context, progress in reports:
            context.report_progress(progress)
        return [
            (message["params"]["progressToken"], message["params"]["progress"])
            for message in client.replies()
        ]

    def start(number, name, token):
        params = {"name": "waits", "arguments": {"name": name}}
        client.post("prompts/get", params, number, progressToken=token)
        return contexts.get(timeout=50)

    first, second = start(1, "one", "t"), start(2, "two", 2)
    both = report((first, 1), (second, 1), (first, 2))
    client.send(line(notification("notifications/cancelled", {"requestId": 1})))
    remaining = report((first, 3), (second, 2))
    event, loop = ends["two"]
    loop.call_soon_threadsafe(event.set)
    client.server.close(10)

    assert (both, remaining) == ([("t", 1), (2, 1), ("t", 2)], [(2, 2)])
    assert report((first, 4), (second, 3)) == []


def test_progress_of_several_threads_increases():
    """The sent values increase, whatever the order in which threads report."""
    sent = []
    progress = Progress(lambda value, _total, _message: sent.append(value))

    def report(values):
        for value in values:
            try:
                progress.report(value, None, None)
            except ValueError:
                continue

    threads = [threading.Thread(target=report, args=(range(i, 2000, 3),)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sent == sorted(set(sent))
    assert sent[-1] == 1999
