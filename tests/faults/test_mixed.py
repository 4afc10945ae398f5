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

#: In how many parts the requests are sent; after each, everything is answered.
PARTS = 10


def plain(message):
    """Return a message as a line without its end."""
    return json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()


def recorded(random, numbers):
    """Yield recorded sessions, of all revisions, without end."""
    while True:
        yield from session(random.choice(REVISIONS), numbers)


def mixed(random, numbers):
    """Yield lines without end: what the schemas allow, what clients send, and mutations of both."""
    shapes = [Shapes(revision, random) for revision in REVISIONS]
    mutations, sessions = Mutations(random), recorded(random, numbers)
    while True:
        drawn, kind = random.choice(shapes), random.random()
        if kind < 0.1:
            yield plain(drawn.notification())
            continue
        message = drawn.request(next(numbers)) if kind < 0.7 else next(sessions)
        yield mutations.changed(message) if random.random() < 0.35 else plain(message)


@pytest.mark.parametrize("revision", REVISIONS)
def test_every_request_that_clients_may_send(revision):
    """The messages that are drawn are of every kind that the published schema lets a client send."""
    shapes = Shapes(revision, Chance(SEED))

    assert {shapes.request(0)["method"] for _ in range(1000)} == set(shapes.methods)


@pytest.mark.parametrize("revision", REVISIONS)
def test_mutations_of_recorded_sessions(serve, whole, figures, revision):
    """
    However the lines of a session are changed, every request with a readable id gets one reply,
    and what is sent is valid.
    """
    figures(seed=SEED)
    random, count = Chance(f"{SEED} {revision}"), (10_000 if whole else 1_000) // len(REVISIONS)
    serving = serve()
    exchange, mutations, sent = Exchange(serving, Schemas(), random), Mutations(random), 0

    while sent < count:
        for message in session(revision, exchange.numbers):
            exchange.send(plain(message))
            exchange.send(mutations.changed(message))
            sent += 1
        exchange.settle()

    assert serving.serves()
    exchange.ledger.sent(plain(modern("served?", "prompts/list")))
    exchange.ledger.sent(plain({"jsonrpc": "2.0", "id": f"served? {MODERN}", "method": "ping"}))
    assert exchange.end() == 0
    assert exchange.faults() == []
    figures(revision=revision, mutations=sent, requests=exchange.ledger.requests)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_mixed_requests(serve, amount, figures):
    """
    Whatever is sent in both eras, every request with a readable id gets one reply, what is sent is
    valid, memory does not grow, and the process ends as it should.
    """
    figures(seed=SEED)
    random, count = Chance(SEED), amount(200_000, 10_000, 2_000)
    serving = serve()
    exchange = Exchange(serving, Schemas(), random)
    lines, memory, started = mixed(random, exchange.numbers), [], time.monotonic()

    for part in range(1, PARTS + 1):
        while exchange.ledger.requests < count * part // PARTS:
            exchange.send(next(lines))
        exchange.settle()
        memory.append(serving.memory())
    took = time.monotonic() - started
    megabytes = [round(size / 2**20, 1) for size in memory]
    figures(requests=exchange.ledger.requests, seconds=round(took, 1), memory_MiB=megabytes)
    listening = modern("listening", "subscriptions/listen", {"notifications": {"promptsListChanged": True}})
    exchange.send(plain(listening))
    exchange.send(plain({"jsonrpc": "2.0", "id": "pong", "method": "ping"}))
    exchange.flush()

    assert exchange.end() == 0
    assert exchange.faults() == []
    assert exchange.ledger.replies['"pong"'] == exchange.ledger.replies['"listening"'] == 1
    assert memory[-1] < memory[0] * 1.1
