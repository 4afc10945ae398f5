"""How workers hand connections over to each other."""

import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.transports.http.sockets import Balance

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot hand over sockets")


class Crowd:
    """Workers in one process, each with the connections that it has."""

    def __init__(self, workers):
        self.balance = Balance(workers)
        self.held = [[] for _ in range(workers)]

    def accept(self, number):
        """Have a worker accept a connection, which it may hand over."""
        ours, theirs = socket.socketpair()
        theirs.close()
        if not self.balance.hand_over(number, ours):
            self.held[number].append(ours)
            self.balance.note(number, len(self.held[number]))

    def take(self, number):
        """Have a worker take what was handed over to it."""
        self.held[number] += self.balance.take(number)
        self.balance.note(number, len(self.held[number]))

    def counts(self):
        """How many connections each worker has in the end."""
        for number in range(len(self.held)):
            self.take(number)
        return [len(held) for held in self.held]

    def close(self):
        """Close everything."""
        for one in [one for held in self.held for one in held]:
            one.close()
        for end in [end for ends in self.balance._channels for end in ends]:
            end.close()


@pytest.fixture
def crowd():
    """A function that makes workers."""
    made = []

    def start(workers):
        made.append(Crowd(workers))
        return made[-1]

    yield start
    for one in made:
        one.close()


@given(workers=st.integers(1, 4), arrivals=st.lists(st.integers(0, 3), max_size=40))
def test_nobody_has_many_more_than_another(workers, arrivals):
    """Wherever the kernel puts connections, each worker ends with as many as the others, or one more."""
    crowd = Crowd(workers)
    for number in arrivals:
        crowd.accept(number % workers)
    counts = crowd.counts()
    crowd.close()

    assert sum(counts) == len(arrivals)
    assert max(counts) - min(counts) <= 1


def test_a_worker_that_is_closed_gets_nothing(crowd):
    """Before it ends, it takes only what is on its way."""
    two = crowd(2)
    for _ in range(3):
        two.accept(0)
    two.balance.end(1)
    for _ in range(4):
        two.accept(0)

    assert [len(held) for held in two.held] == [6, 0]
    two.held[1] += two.balance.take(1)
    assert len(two.held[1]) == 1


def test_a_successor_takes_what_was_on_its_way(crowd):
    """What was handed over to a worker that died is not lost."""
    two = crowd(2)
    for _ in range(6):
        two.accept(0)
    two.balance.note(1, 0)

    assert two.counts() == [3, 3]


def test_one_that_takes_nothing_is_not_overwhelmed(crowd):
    """If a worker hangs, the others keep what they cannot hand over, and lose nothing."""
    two = crowd(2)
    for _ in range(600):
        two.accept(0)

    assert sum(two.counts()) == 600
