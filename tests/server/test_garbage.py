"""Reference cycles: the memory of a request is freed once it is answered, without the garbage collector."""

import json

import pytest

from tests.server.busy_server import Process
from tests.wire import MODERN, initialize, modern, request

SOURCE = """
import asyncio, gc, json, time
from collections import Counter
from typing import Annotated
from promptkit import Arg, prompt, resource

@prompt
def collected():
    '''The types of the objects that only the collector could free since the last call.'''
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    types = Counter(type(thing).__qualname__ for thing in gc.garbage)
    gc.garbage.clear()
    gc.collect()
    return json.dumps(types)

@prompt
def plain(number: int = 1):
    return "done"

@prompt
def fails():
    raise KeyError("x")

@prompt(timeout=9)
def limited():
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

#: Methods and params of the requests by name.
REQUESTS = {
    **{
        name: ("prompts/get", {"name": name})
        for name in (
            *("plain", "fails", "limited", "overdue", "awaits", "blocks", "delegates"),
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

#: Number of requests per write, and of writes: the last requests can still be running.
BATCH_SIZE = 3
BATCHES = 5


class FormClient(Process):
    """A client that fills in every form."""

    def write(self, *messages):
        """Send messages; a handshake declares the elicitation capability."""
        is_handshake = [message.get("method") == "initialize" for message in messages]
        super().write(
            *(
                initialize(self.revision, message["id"], {"elicitation": {}}) if is_opening else message
                for message, is_opening in zip(messages, is_handshake, strict=True)
            )
        )

    def replies(self, numbers, method, params):
        """Send one request per number in one write, and return the replies."""
        if self.revision == MODERN:
            requests = [
                modern(number, method, params, capabilities={"elicitation": {}}) for number in numbers
            ]
        else:
            requests = [request(number, method, params) for number in numbers]
        self.write(*requests)
        answered = {}
        while answered.keys() != set(numbers):
            _, message = self.received.get(timeout=50)
            if message.get("method") == "elicitation/create":
                result = {"action": "accept", "content": {"name": "done"}}
                super().write({"jsonrpc": "2.0", "id": message["id"], "result": result})
            elif "method" not in message:
                answered[message["id"]] = message
        return list(answered.values())

    def garbage_types(self, number):
        """Return the types of the objects that only the garbage collector could free."""
        (reply,) = self.replies([number], "prompts/get", {"name": "collected"})
        return json.loads(reply["result"]["messages"][0]["content"]["text"])


@pytest.fixture(scope="module", params=["2025-11-25", MODERN])
def client(tmp_path_factory, request):
    """Return a client of a server with prompts that end in every possible way."""
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "recipe.py").write_text(SOURCE)
    form_client = FormClient(folder, "--no-watch", revision=request.param)
    yield form_client
    form_client.process.kill()
    form_client.process.communicate()


@pytest.mark.parametrize("name", REQUESTS)
def test_request_leaves_no_garbage(client, name):
    """Whatever the outcome of a request, none of its objects waits for the garbage collector."""
    method, params = REQUESTS[name]
    client.replies(range(1, BATCH_SIZE + 1), method, params)
    client.garbage_types(10)
    for number in range(100, 100 + BATCHES * BATCH_SIZE, BATCH_SIZE):
        client.replies(range(number, number + BATCH_SIZE), method, params)

    assert client.garbage_types(11) == {}
