"""A soak test: long work of every kind leaks no threads, descriptors or memory."""

import json
import sys
import time
from itertools import cycle

import pytest

from tests.faults.chance import SEED, Chance
from tests.faults.exchange import Exchange
from tests.wire import MODERN, REVISIONS, envelope, initialize, notification, request

RECIPE = '''
import asyncio, time
from promptkit import prompt, resource

VERSION = "{version}"

@prompt
def plain(word: str = "x"):
    """Reply immediately."""
    return f"{{VERSION}} {{word}}"

@prompt
async def harmless():
    """Wait without holding a thread."""
    await asyncio.sleep(0.001)
    return VERSION

@prompt
async def blocks():
    """Block the event loop."""
    time.sleep(0.08)
    return VERSION

@prompt
async def delegates():
    """Use the threads of the event loop, and leave a task running."""
    left = asyncio.create_task(asyncio.sleep(0.001))
    await asyncio.to_thread(time.sleep, 0.001)
    return f"{{VERSION}} {{left.done()}}"

@prompt
async def fills():
    """Start the maximum number of threads of the event loop."""
    await asyncio.gather(*(asyncio.to_thread(time.sleep, 0.05) for _ in range(40)))
    return VERSION

@prompt
def sleeps():
    """Hold a thread."""
    time.sleep(0.03)
    return VERSION

@prompt
def works():
    """Hold the processor."""
    end = time.monotonic() + 0.03
    while time.monotonic() < end:
        pass
    return VERSION

@prompt(timeout=0.05)
async def late():
    """Exceed its time limit."""
    await asyncio.sleep(60)

@prompt
def fails():
    """Raise an exception."""
    raise LookupError(VERSION)

@prompt(elicit=True)
def asks(name: str):
    """Ask for a name."""
    return name

@resource("note://one")
def one() -> str:
    """Return the version."""
    return VERSION
'''

#: The number of requests that include one of each slow prompt.
ROUND = 100
SLOW = ["blocks", "sleeps", "works", "delegates", "late", "fails", "asks", "harmless"]

#: The number of parts in which the requests are sent; after each, the recipe changes.
PARTS = 10

#: The timeout for the server to become idle, and the time for which it must stay so, in seconds.
IDLE_TIMEOUT_S = 30.0
STABLE_S = 3.0


class AllowAll:
    """Schemas that allow every line, because other tests check the lines, and this one is slow already."""

    def allow(self, _text):
        """Return True."""
        return True


def rounds(numbers):
    """Yield messages endlessly, about a hundred for each revision in turn."""
    for revision in cycle(REVISIONS):
        params = {"_meta": envelope({"elicitation": {}})} if revision == MODERN else {}
        if revision != MODERN:
            yield initialize(revision, next(numbers), {"elicitation": {}})
            yield notification("notifications/initialized")
            yield request(next(numbers), "resources/subscribe", {"uri": "note://one"})
        else:
            subscription = {"promptsListChanged": True, "resourceSubscriptions": ["note://one"]}
            yield request(next(numbers), "subscriptions/listen", {**params, "notifications": subscription})
        yield request(next(numbers), "resources/read", {**params, "uri": "note://one"})
        for name in [*SLOW, *["plain"] * (ROUND - len(SLOW))]:
            yield request(next(numbers), "prompts/get", {**params, "name": name})


def wait_until_idle(serving, limit):
    """Wait until the numbers of threads and descriptors are stable and at most *limit*, and return them."""
    usage, since = serving.usage(), time.monotonic()
    deadline = since + IDLE_TIMEOUT_S
    while time.monotonic() < deadline:
        time.sleep(0.05)
        if (current := serving.usage()) != usage:
            usage, since = current, time.monotonic()
        elif time.monotonic() - since > STABLE_S and usage[0] <= limit[0] and usage[1] <= limit[1]:
            break
    return usage


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads and memory are read from /proc")
def test_soak(serve, tmp_path, full_length, figures):
    """
    At the end, there are no more threads, descriptors or memory than after the first tenth, and every request
    gets one reply.
    """
    figures(seed=SEED)
    folder = tmp_path / "soaked"
    folder.mkdir()
    recipe, count = folder / "recipe.py", 500_000 if full_length else 6_000
    recipe.write_text(RECIPE.format(version="v0"))
    serving = serve(folder=folder)
    exchange = Exchange(serving, AllowAll(), Chance(SEED))
    lines, usage, memory, started = rounds(exchange.numbers), [], [], time.monotonic()

    for method, params in [
        ("initialize", initialize(REVISIONS[0])["params"]),
        ("prompts/get", {"name": "fills"}),
    ]:
        exchange.send(json.dumps(request(next(exchange.numbers), method, params)).encode())
    exchange.settle()
    for part in range(1, PARTS + 1):
        while exchange.ledger.requests < count * part // PARTS:
            for _ in range(ROUND):
                exchange.send(json.dumps(next(lines)).encode())
            exchange.settle()
        recipe.write_text(RECIPE.format(version=f"v{part}"))
        limit = usage[0] if usage else (1000, 1000)
        usage.append(wait_until_idle(serving, limit) if part in (1, PARTS) else serving.usage())
        memory.append(serving.memory())
    seconds = time.monotonic() - started
    figures(
        requests=exchange.ledger.requests,
        seconds=round(seconds, 1),
        threads_and_descriptors=usage,
        memory_MiB=[round(size / 2**20, 1) for size in memory],
    )

    assert exchange.end() == 0
    assert exchange.errors() == []
    assert usage[-1][0] <= usage[0][0]
    assert usage[-1][1] <= usage[0][1]
    assert memory[-1] < memory[0] * 1.1
