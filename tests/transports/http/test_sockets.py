"""Handing connections over between workers."""

import socket
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.transports.http.sockets import Balance

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows cannot hand over sockets")


class WorkerGroup:
    """Workers in one process, with their connections."""

    def __init__(self, workers):
        self.balance = Balance(workers)
        self.connections = [[] for _ in range(workers)]

    def accept(self, number):
        """Accept a connection in a worker, which can hand it over."""
        ours, theirs = socket.socketpair()
        theirs.close()
        if not self.balance.hand_over(number, ours):
            self.connections[number].append(ours)
            self.balance.note(number, len(self.connections[number]))

    def take(self, number):
        """Take the connections that were handed over to a worker."""
        self.connections[number] += self.balance.take(number)
        self.balance.note(number, len(self.connections[number]))

    def counts(self):
        """Return the final number of connections of each worker."""
        for number in range(len(self.connections)):
            self.take(number)
        return [len(connections) for connections in self.connections]

    def close(self):
        """Close all sockets."""
        for connection in [connection for connections in self.connections for connection in connections]:
            connection.close()
        for end in [end for ends in self.balance._channels for end in ends]:
            end.close()


@pytest.fixture
def make_workers():
    """A function that creates workers."""
    groups = []

    def start(workers):
        groups.append(WorkerGroup(workers))
        return groups[-1]

    yield start
    for group in groups:
        group.close()


@given(workers=st.integers(1, 4), arrivals=st.lists(st.integers(0, 3), max_size=40))
def test_connections_are_balanced(workers, arrivals):
    """Wherever the kernel delivers connections, the numbers of two workers differ by at most one."""
    group = WorkerGroup(workers)
    for number in arrivals:
        group.accept(number % workers)
    counts = group.counts()
    group.close()

    assert sum(counts) == len(arrivals)
    assert max(counts) - min(counts) <= 1


def test_stopped_worker_gets_no_connections(make_workers):
    """A stopped worker takes only connections that are already on their way."""
    workers = make_workers(2)
    for _ in range(3):
        workers.accept(0)
    workers.balance.end(1)
    for _ in range(4):
        workers.accept(0)

    assert [len(connections) for connections in workers.connections] == [6, 0]
    workers.connections[1] += workers.balance.take(1)
    assert len(workers.connections[1]) == 1


def test_successor_takes_pending_connections(make_workers):
    """Connections that were handed over to a killed worker are not lost."""
    workers = make_workers(2)
    for _ in range(6):
        workers.accept(0)
    workers.balance.note(1, 0)

    assert workers.counts() == [3, 3]


def test_hanging_worker(make_workers):
    """Connections that cannot be handed over stay with their worker, and none is lost."""
    workers = make_workers(2)
    for _ in range(600):
        workers.accept(0)

    assert sum(workers.counts()) == 600
