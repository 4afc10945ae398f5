"""Messages between workers."""

import sys
from contextlib import ExitStack
from queue import SimpleQueue

import pytest

from promptkit.transports.http.supervisor import Siblings

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot fork workers")

TIMEOUT_S = 20


@pytest.fixture
def make_siblings():
    """Return a function that creates workers, whose sockets are closed after the test."""
    with ExitStack() as cleanup:

        def make(count):
            siblings = Siblings(count)
            cleanup.callback(siblings.close)
            return siblings

        yield make


def test_messages_arrive_in_order(make_siblings):
    """A worker receives the messages that other workers send to it, and nothing else."""
    siblings, received = make_siblings(3), SimpleQueue()
    siblings.receive(1, received.put)

    for number, message in [(1, b"one"), (0, b"zero"), (1, b"two"), (2, b"x"), (1, b"three")]:
        siblings.send(number, message)

    assert [received.get(timeout=TIMEOUT_S) for _ in range(3)] == [b"one", b"two", b"three"]
    assert received.empty()


def test_an_error_does_not_stop_the_thread(make_siblings, capsys):
    """A message that cannot be handled is reported, and the next one is handled."""
    siblings, received = make_siblings(1), SimpleQueue()

    def handle(message):
        if message == b"bad":
            raise ValueError(message)
        received.put(message)

    siblings.receive(0, handle)
    siblings.send(0, b"bad")
    siblings.send(0, b"good")

    assert received.get(timeout=TIMEOUT_S) == b"good"
    assert "a message of 3 bytes from another worker was dropped: ValueError" in capsys.readouterr().err


def test_a_message_that_is_too_long_is_reported(make_siblings, capsys):
    """A message that is too long is reported and not sent, and the sender continues."""
    siblings, received = make_siblings(2), SimpleQueue()
    siblings.receive(1, received.put)

    siblings.send(1, b"x" * (1 << 24))
    siblings.send(1, b"next")

    assert received.get(timeout=TIMEOUT_S) == b"next"
    assert "a message of 16,777,216 bytes could not be sent to worker 2" in capsys.readouterr().err


def test_a_stuck_worker_does_not_block_the_sender(make_siblings, capsys):
    """Messages to a worker that does not read are dropped, once its buffer is full."""
    siblings = make_siblings(2)

    for _ in range(10_000):
        siblings.send(1, b"x" * 1000)

    assert "could not be sent to worker 2" in capsys.readouterr().err
