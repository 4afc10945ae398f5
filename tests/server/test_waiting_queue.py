"""The order and the limits of queued requests."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.pending import PendingRequest
from promptkit.server.waiting_queue import WaitingQueue


def pending(subject="", text=""):
    request = SimpleNamespace(subject=subject, params={"text": text})
    return PendingRequest(request, None, 30.0, 0.0)


def test_principals_take_turns():
    """The oldest request of each principal comes first, however many requests others have sent."""
    line, requests = WaitingQueue(10), [pending(subject) for subject in "aaabab"]
    for item in requests:
        assert line.add(item) is None

    assert [line.pop() for _ in requests] == [requests[number] for number in (0, 3, 1, 5, 2, 4)]
    assert (line.pop(), len(line)) == (None, 0)


def test_full_queue_rejects_the_principal_that_fills_it():
    """A request of another principal replaces the newest request of the principal with the most requests."""
    line, filling = WaitingQueue(3), [pending("many") for _ in range(3)]
    for item in filling:
        line.add(item)

    with pytest.raises(TooManyRequests, match="3 requests are already waiting"):
        line.add(pending("many"))
    other = pending("few")
    assert line.add(other) is filling[2]
    with pytest.raises(TooManyRequests):
        line.add(pending("few"))  # both would have two
    assert [line.pop() for _ in range(3)] == [filling[0], other, filling[1]]


def test_total_size_of_params_is_limited():
    """A request that is too large is rejected, and evicts no request if that would not free enough space."""
    line, small, large = WaitingQueue(10, byte_limit=100), pending("a", "x" * 10), pending("a", "x" * 60)
    line.add(small)
    line.add(large)

    with pytest.raises(TooManyRequests):
        line.add(pending("b", "x" * 90))
    assert len(line) == 2
    line.remove(large)
    line.remove(large)  # already removed
    line.add(pending("b", "x" * 60))
    assert len(line) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_no_request_is_lost_or_served_twice(steps):
    """Each request leaves the queue exactly once."""
    line, added, removed = WaitingQueue(4), [], []
    for subject, takes in steps:
        item = pending(subject)
        try:
            evicted = line.add(item)
        except TooManyRequests:
            continue
        added.append(item)
        removed += [evicted] if evicted is not None else []
        removed += [line.pop()] if takes else []
        assert len(line) <= 4
    removed += iter(line.pop, None)

    assert len(removed) == len(set(map(id, removed)))
    assert set(map(id, removed)) == set(map(id, added))
