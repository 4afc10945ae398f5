import asyncio
import math
import threading

import pytest

from promptkit import Context, prompt
from promptkit.compiler import compile
from promptkit.context import Progress
from promptkit.loader import Recipes
from tests.wire import MODERN, REVISIONS, Client, line, notification


@prompt
def steps(context: Context):
    """Report twice."""
    context.report_progress(1, 2, "reading")
    context.report_progress(2.5)
    return "done"


def client_of(*prompts, revision="2025-11-25"):
    return Client(compile(Recipes(prompts=prompts)), revision)


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("token", [0, 7, "7", "", "ü"])
def test_progress_is_told_to_who_asked(revision, token):
    """
    Reports bear the client's token and come before the reply.
    """
    first, second, reply = client_of(steps, revision=revision).post(
        "prompts/get", {"name": "steps"}, progressToken=token
    )

    says = {} if revision == "2024-11-05" else {"message": "reading"}
    assert first == notification(
        "notifications/progress", {"progressToken": token, "progress": 1, "total": 2, **says}
    )
    assert second == notification("notifications/progress", {"progressToken": token, "progress": 2.5})
    assert reply["result"]["messages"][0]["content"]["text"] == "done"


@pytest.mark.parametrize("revision", REVISIONS)
def test_nobody_is_told_who_did_not_ask(revision):
    """
    Without a token there is the reply and nothing else.
    """
    assert len(client_of(steps, revision=revision).post("prompts/get", {"name": "steps"})) == 1


def test_outside_of_a_request_it_does_nothing():
    """
    A prompt that reports progress is called and tested as a plain function.
    """
    assert steps() == "done"
    assert str(steps.render()) == str(steps.render_wire())


@pytest.mark.parametrize(
    ("reports", "said"),
    [
        ([1, 1], "progress is 1 after 1: it has to rise with every report"),
        ([2, 1], "progress is 1 after 2: it has to rise with every report"),
        ([math.nan], "progress is nan of None: report finite numbers, or no total"),
        ([math.inf], "progress is inf of None: report finite numbers, or no total"),
    ],
)
def test_progress_that_is_none(reports, said):
    """
    What no client could be told is an error in the prompt, also in its tests.
    """
    context = Context()

    *before, last = reports
    for progress in before:
        context.report_progress(progress)

    with pytest.raises(ValueError, match=f"^{said}$"):
        context.report_progress(last)


def test_a_total_that_is_none():
    """
    A total is a finite number, too.
    """
    with pytest.raises(ValueError, match="progress is 1 of inf: report finite numbers, or no total"):
        Context().report_progress(1, math.inf)


def test_nothing_is_told_after_the_reply():
    """
    A thread that a prompt has left behind reports to nobody.
    """
    kept = []

    @prompt
    def hasty(context: Context) -> str:
        kept.append(context)
        return "done"

    client = client_of(hasty)
    client.post("prompts/get", {"name": "hasty"}, progressToken=1)
    client.sent.clear()

    kept[0].report_progress(1)

    assert client.replies() == []


def test_nothing_is_told_after_a_cancellation():
    """
    Once the client has cancelled the request it hears nothing more of it.
    """
    started, contexts = threading.Event(), []

    @prompt
    async def slow(context: Context) -> str:
        contexts.append(context)
        started.set()
        await asyncio.sleep(30)
        return "done"

    client = client_of(slow, revision=MODERN)
    client.post("prompts/get", {"name": "slow"}, 3, progressToken=1)
    assert started.wait(10)
    client.send(line(notification("notifications/cancelled", {"requestId": 3})))
    contexts[0].report_progress(1)
    client.server.close(10)

    assert client.replies() == []


def test_reports_of_several_threads_rise():
    """
    Whatever the threads do, what is sent rises.
    """
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
