"""What requests leave behind in the process that has answered them: nothing."""

import asyncio
import gc
import json
import time

import pytest

from promptkit.asgi import app
from promptkit.transports.http.channel import HttpChannel
from tests.wire import modern, request

RECIPES = '''
from asyncio import sleep

from promptkit import prompt

@prompt
def greet(name: str):
    """Greet."""
    return f"Hello, {name}."

@prompt
async def forever():
    """Wait."""
    await sleep(1000)
'''
GET = modern(1, "prompts/get", {"name": "greet", "arguments": {"name": "you"}})
FOREVER = modern(1, "prompts/get", {"name": "forever"})
LISTEN = modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
BATCH = [request(1, "prompts/list"), request(2, "prompts/list")]

#: The threads still know what they looked at last.
LAST = 3


def scope_of(message):
    """A request, as a server passes it to an application."""
    fields = {"host": "127.0.0.1", "content-type": "application/json"}
    if isinstance(message, dict):
        fields |= {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
        fields |= {"mcp-name": message["params"].get("name", "")}
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}


async def post(application, message, leave=None):
    """Post a message; return the status and the body. The client leaves once *leave* is set."""
    events = [{"type": "http.request", "body": json.dumps(message).encode()}]
    sent = []

    async def receive():
        if events:
            return events.pop()
        await leave.wait()
        return {"type": "http.disconnect"}

    async def send(event):
        sent.append(event)

    await application(scope_of(message), receive, send)
    return sent[0]["status"] if sent else None, b"".join(event.get("body", b"") for event in sent)


def left():
    """How many posted messages are still somewhere."""
    return sum(type(each) is HttpChannel for each in gc.get_objects())


def soon_left(before):
    """How many more than *before* there are once what was cancelled has ended, and garbage is collected."""
    until = time.monotonic() + 10
    while (more := left() - before) > LAST and time.monotonic() < until:
        time.sleep(0.01)
        gc.collect()
    return more


@pytest.fixture
def application(tmp_path):
    """What serves the recipes; the garbage collector does nothing meanwhile."""
    (tmp_path / "recipes.py").write_text(RECIPES)
    found = app(tmp_path, watch=False)
    found.start()
    gc.collect()
    gc.disable()
    yield found
    gc.enable()
    found.close(0)


@pytest.mark.parametrize("message", [GET, BATCH], ids=["get", "batch"])
def test_an_answered_request_leaves_nothing(application, message):
    """Not even for the garbage collector, which would hold up everybody."""

    async def ask():
        return [await post(application, message) for _ in range(20)]

    before = left()
    replies = asyncio.run(ask())

    assert {status for status, _ in replies} == {200}
    assert left() - before <= LAST


@pytest.mark.parametrize("message", [FOREVER, LISTEN], ids=["get", "listen"])
def test_a_client_that_leaves_takes_everything_along(application, message):
    """Whatever was done for it, at once or with the next collection of garbage."""

    async def ask():
        leave = asyncio.Event()
        posted = [asyncio.create_task(post(application, message, leave)) for _ in range(20)]
        await asyncio.sleep(0.3)
        begun = left()
        leave.set()
        await asyncio.gather(*posted)
        return begun

    before = left()

    assert asyncio.run(ask()) >= before + 20
    assert soon_left(before) <= LAST
