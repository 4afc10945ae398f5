"""Garbage: what a request takes is free once it is answered, and waits for no collection."""

import json

import pytest

from tests.server.busy_server import Process
from tests.wire import MODERN, initialize, modern, request

pytestmark = pytest.mark.sampled

SOURCE = """
import asyncio, gc, json, time
from collections import Counter
from typing import Annotated
from promptkit import Arg, prompt, resource

@prompt
def collected():
    '''The types of what only the collector has found, since this was asked for last.'''
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = Counter(type(thing).__qualname__ for thing in gc.garbage)
    gc.garbage.clear()
    gc.collect()
    return json.dumps(found)

@prompt
def plain(number: int = 1):
    return "done"

@prompt
def fails():
    raise KeyError("x")

@prompt(timeout=9)
def beside():
    return "done"

@prompt(timeout=0.01)
def overdue():
    time.sleep(0.05)

@prompt
async def awaits():
    await asyncio.sleep(0.001)
    return "done"

@prompt
async def blocks():
    time.sleep(0.02)
    return "done"

@prompt
async def delegates():
    return await asyncio.to_thread(str, "done")

@prompt
async def awaits_and_fails():
    await asyncio.sleep(0.001)
    raise KeyError("x")

@prompt
async def exits():
    raise SystemExit

@prompt
async def cancels_itself():
    asyncio.current_task().cancel()
    await asyncio.sleep(60)

@prompt(timeout=0.01)
async def late():
    await asyncio.sleep(60)

@prompt(elicit=True)
def asks(name: str):
    return name

async def offers():
    return ["done"]

@prompt
def completes(word: Annotated[str, Arg(complete=offers)]):
    return word

@resource("note://one")
def one() -> str:
    return "done"

@resource("note://fails")
def broken() -> str:
    raise KeyError("x")
"""

#: By name: a request, as a method and its params.
REQUESTS = {
    **{
        name: ("prompts/get", {"name": name})
        for name in (
            *("plain", "fails", "beside", "overdue", "awaits", "blocks", "delegates"),
            *("awaits_and_fails", "exits", "cancels_itself", "late", "unknown"),
        )
    },
    "refused": ("prompts/get", {"name": "plain", "arguments": {"number": "x"}}),
    "asks": ("prompts/get", {"name": "asks"}),
    "completes": (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "completes"}, "argument": {"name": "word", "value": ""}},
    ),
    "lists": ("prompts/list", {}),
    "reads": ("resources/read", {"uri": "note://one"}),
    "reads and fails": ("resources/read", {"uri": "note://fails"}),
}

#: How many requests are sent at once, and how often: those that come last may be worked on still.
AT_ONCE = 3
TIMES = 5


class Asking(Process):
    """A client that shows forms, and fills in every one."""

    def write(self, *messages):
        """Write messages; a handshake says that there are forms."""
        opening = [message.get("method") == "initialize" for message in messages]
        super().write(
            *(
                initialize(self.revision, message["id"], {"elicitation": {}}) if opens else message
                for message, opens in zip(messages, opening, strict=True)
            )
        )

    def replies(self, numbers, method, params):
        """Send as many requests as there are numbers in one piece; return what they are answered with."""
        if self.revision == MODERN:
            made = [modern(number, method, params, capabilities={"elicitation": {}}) for number in numbers]
        else:
            made = [request(number, method, params) for number in numbers]
        self.write(*made)
        answered = {}
        while answered.keys() != set(numbers):
            _, message = self.came.get(timeout=50)
            if message.get("method") == "elicitation/create":
                result = {"action": "accept", "content": {"name": "done"}}
                super().write({"jsonrpc": "2.0", "id": message["id"], "result": result})
            elif "method" not in message:
                answered[message["id"]] = message
        return list(answered.values())

    def collected(self, number):
        """The types of what only the collector has found."""
        (reply,) = self.replies([number], "prompts/get", {"name": "collected"})
        return json.loads(reply["result"]["messages"][0]["content"]["text"])


@pytest.fixture
def client(recipes, request):
    """A client of a server with prompts that come to every end there is."""
    made = Asking(recipes(recipe=SOURCE), "--no-watch", revision=request.param)
    yield made
    made.process.kill()
    made.process.communicate()


@pytest.mark.parametrize("client", ["2025-11-25", MODERN], indirect=True)
@pytest.mark.parametrize("name", REQUESTS)
def test_a_request_leaves_no_garbage(client, name):
    """
    Whatever comes of a request, nothing of it waits for the collector, which may come late, or never.
    """
    method, params = REQUESTS[name]
    client.replies(range(1, AT_ONCE + 1), method, params)
    client.collected(10)
    for number in range(100, 100 + TIMES * AT_ONCE, AT_ONCE):
        client.replies(range(number, number + AT_ONCE), method, params)

    assert client.collected(11) == {}
