"""Random valid, recorded and mutated messages."""

import json
import sys
import time

import pytest

from tests.faults.chance import SEED, Chance
from tests.faults.exchange import Exchange
from tests.faults.ledger import Schemas
from tests.faults.mutations import Mutations
from tests.faults.recorded import session
from tests.faults.shapes import Shapes
from tests.wire import MODERN, REVISIONS, modern

#: The number of parts in which the requests are sent; all are answered after each.
PARTS = 10


def encode_line(message):
    """Return a message as a line without a line break."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def recorded_messages(random, numbers):
    """Yield the messages of recorded sessions of all revisions, endlessly."""
    while True:
        yield from session(random.choice(REVISIONS), numbers)


def mixed_lines(random, numbers):
    """Yield lines endlessly: random valid messages, recorded ones, and mutations of both."""
    shapes = [Shapes(revision, random) for revision in REVISIONS]
    mutations, sessions = Mutations(random), recorded_messages(random, numbers)
    while True:
        shape, kind = random.choice(shapes), random.random()
        if kind < 0.1:
            yield encode_line(shape.notification())
            continue
        message = shape.request(next(numbers)) if kind < 0.7 else next(sessions)
        yield mutations.mutate(message) if random.random() < 0.35 else encode_line(message)


@pytest.mark.parametrize("revision", REVISIONS)
def test_random_requests_cover_all_methods(revision):
    """The random messages include every request of the published schema."""
    shapes = Shapes(revision, Chance(SEED))

    assert {shapes.request(0)["method"] for _ in range(1000)} == set(shapes.methods)


@pytest.mark.parametrize("revision", REVISIONS)
def test_mutations_of_recorded_sessions(serve, full_length, figures, revision):
    """
    Every request with a readable id gets one reply, and all output is valid, however the lines are mutated.
    """
    figures(seed=SEED)
    random, count = Chance(f"{SEED} {revision}"), (10_000 if full_length else 1_000) // len(REVISIONS)
    serving = serve()
    exchange, mutations, sent = Exchange(serving, Schemas(), random), Mutations(random), 0

    while sent < count:
        for message in session(revision, exchange.numbers):
            exchange.send(encode_line(message))
            exchange.send(mutations.mutate(message))
            sent += 1
        exchange.settle()

    assert serving.is_serving()
    exchange.ledger.record_sent(encode_line(modern("serving?", "prompts/list")))
    exchange.ledger.record_sent(encode_line({"jsonrpc": "2.0", "id": f"serving? {MODERN}", "method": "ping"}))
    assert exchange.end() == 0
    assert exchange.errors() == []
    figures(revision=revision, mutations=sent, requests=exchange.ledger.requests)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_mixed_requests(serve, amount, figures):
    """
    Every request with a readable id gets one reply, all output is valid, memory does not grow, and the
    process exits normally.
    """
    figures(seed=SEED)
    random, count = Chance(SEED), amount(200_000, 10_000, 2_000)
    serving = serve()
    exchange = Exchange(serving, Schemas(), random)
    lines, memory, started = mixed_lines(random, exchange.numbers), [], time.monotonic()

    for part in range(1, PARTS + 1):
        while exchange.ledger.requests < count * part // PARTS:
            exchange.send(next(lines))
        exchange.settle()
        memory.append(serving.memory())
    seconds = time.monotonic() - started
    megabytes = [round(size / 2**20, 1) for size in memory]
    figures(requests=exchange.ledger.requests, seconds=round(seconds, 1), memory_MiB=megabytes)
    listening = modern("listening", "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    exchange.send(encode_line(listening))
    exchange.send(encode_line({"jsonrpc": "2.0", "id": "pong", "method": "ping"}))
    exchange.flush()

    assert exchange.end() == 0
    assert exchange.errors() == []
    assert exchange.ledger.replies['"pong"'] == exchange.ledger.replies['"listening"'] == 1
    assert memory[-1] < memory[0] * 1.1
