"""Answered and cancelled requests leave no objects in the process."""

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

#: Each thread still references its last message.
REFERENCED = 3


def scope_of(message):
    """Return the ASGI scope of a request."""
    fields = {"host": "127.0.0.1", "content-type": "application/json"}
    if isinstance(message, dict):
        fields |= {"mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
        fields |= {"mcp-name": message["params"].get("name", "")}
    headers = [(name.encode(), value.encode()) for name, value in fields.items()]
    return {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}


async def post(application, message, leave=None):
    """Post a message, and return the status and the body. The client disconnects once *leave* is set."""
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


def count_channels():
    """Return the number of posted messages that still exist."""
    return sum(type(each) is HttpChannel for each in gc.get_objects())


def remaining_channels(before):
    """
    Return the number of additional messages once cancelled requests have ended and garbage is collected.
    """
    deadline = time.monotonic() + 10
    while (more := count_channels() - before) > REFERENCED and time.monotonic() < deadline:
        time.sleep(0.01)
        gc.collect()
    return more


@pytest.fixture
def application(tmp_path):
    """A running application; the garbage collector is disabled."""
    (tmp_path / "recipes.py").write_text(RECIPES)
    application_ = app(tmp_path, watch=False)
    application_.start()
    gc.collect()
    gc.disable()
    yield application_
    gc.enable()
    application_.close(0)


@pytest.mark.parametrize("message", [GET, BATCH], ids=["get", "batch"])
def test_answered_request_leaves_no_objects(application, message):
    """An answered request is freed without a garbage collection, which would delay other requests."""

    async def ask():
        return [await post(application, message) for _ in range(20)]

    before = count_channels()
    replies = asyncio.run(ask())

    assert {status for status, _ in replies} == {200}
    assert count_channels() - before <= REFERENCED


@pytest.mark.parametrize("message", [FOREVER, LISTEN], ids=["get", "listen"])
def test_cancelled_request_leaves_no_objects(application, message):
    """All objects of a cancelled request are freed immediately or by the next garbage collection."""

    async def ask():
        leave = asyncio.Event()
        tasks = [asyncio.create_task(post(application, message, leave)) for _ in range(20)]
        await asyncio.sleep(0.3)
        running = count_channels()
        leave.set()
        await asyncio.gather(*tasks)
        return running

    before = count_channels()

    assert asyncio.run(ask()) >= before + 20
    assert remaining_channels(before) <= REFERENCED
