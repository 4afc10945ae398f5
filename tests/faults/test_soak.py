"""A soak: work of every kind, for long, leaves neither threads nor descriptors nor memory behind."""

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
    """Answer at once."""
    return f"{{VERSION}} {{word}}"

@prompt
async def harmless():
    """Wait without holding a thread."""
    await asyncio.sleep(0.001)
    return VERSION

@prompt
async def blocks():
    """Hold up the event loop."""
    time.sleep(0.08)
    return VERSION

@prompt
async def delegates():
    """Use the threads of the event loop, and leave a task behind."""
    left = asyncio.create_task(asyncio.sleep(0.001))
    await asyncio.to_thread(time.sleep, 0.001)
    return f"{{VERSION}} {{left.done()}}"

@prompt
async def fills():
    """Start all threads that the event loop may have."""
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
    """Take longer than it may."""
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
    """Hold something else in each version."""
    return VERSION
'''

#: Of so many requests one each takes its time.
ROUND = 100
SLOW = ["blocks", "sleeps", "works", "delegates", "late", "fails", "asks", "harmless"]

#: In how many parts the requests are sent; after each the recipes change.
PARTS = 10

#: How long the server is given to come to rest, in seconds, and how long it has to look the same.
REST = 30.0
STILL = 3.0


class Everything:
    """Schemas that allow every line: others look at the lines, and this takes long enough."""

    def allow(self, _text):
        """Whether a line is allowed."""
        return True


def rounds(numbers):
    """Yield lines without end, a hundred requests of one revision after the other."""
    for revision in cycle(REVISIONS):
        params = {"_meta": envelope({"elicitation": {}})} if revision == MODERN else {}
        if revision != MODERN:
            yield initialize(revision, next(numbers), {"elicitation": {}})
            yield notification("notifications/initialized")
            yield request(next(numbers), "resources/subscribe", {"uri": "note://one"})
        else:
            wanted = {"promptsListChanged": True, "resourceSubscriptions": ["note://one"]}
            yield request(next(numbers), "subscriptions/listen", {**params, "notifications": wanted})
        yield request(next(numbers), "resources/read", {**params, "uri": "note://one"})
        for name in [*SLOW, *["plain"] * (ROUND - len(SLOW))]:
            yield request(next(numbers), "prompts/get", {**params, "name": name})


def rested(serving, most):
    """Wait until threads and descriptors are no more than these, and stay so; return how many there are."""
    found, since = serving.use(), time.monotonic()
    deadline = since + REST
    while time.monotonic() < deadline:
        time.sleep(0.05)
        if (now := serving.use()) != found:
            found, since = now, time.monotonic()
        elif time.monotonic() - since > STILL and found[0] <= most[0] and found[1] <= most[1]:
            break
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads and memory are read from /proc")
def test_soak(serve, tmp_path, whole, figures):
    """
    After hundreds of blocking and harmless prompts of every kind, reloads, subscriptions and questions,
    threads, descriptors and memory are those of the first tenth; and every request gets one reply.
    """
    figures(seed=SEED)
    folder = tmp_path / "soaked"
    folder.mkdir()
    recipe, count = folder / "recipe.py", 500_000 if whole else 6_000
    recipe.write_text(RECIPE.format(version="v0"))
    serving = serve(folder=folder)
    exchange = Exchange(serving, Everything(), Chance(SEED))
    lines, use, memory, started = rounds(exchange.numbers), [], [], time.monotonic()

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
        most = use[0] if use else (1000, 1000)
        use.append(rested(serving, most) if part in (1, PARTS) else serving.use())
        memory.append(serving.memory())
    took = time.monotonic() - started
    figures(
        requests=exchange.ledger.requests,
        seconds=round(took, 1),
        threads_and_descriptors=use,
        memory_MiB=[round(size / 2**20, 1) for size in memory],
    )

    assert exchange.end() == 0
    assert exchange.faults() == []
    assert use[-1][0] <= use[0][0]
    assert use[-1][1] <= use[0][1]
    assert memory[-1] < memory[0] * 1.1
