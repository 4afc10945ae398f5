"""The order and the bounds of requests that wait until fewer prompts run."""

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.server.pending import PendingRequest
from promptkit.server.request_limits import WaitingLine


def pending(subject="", text=""):
    request = SimpleNamespace(subject=subject, params={"text": text})
    return PendingRequest(request, None, 30.0, 0.0)


def test_principals_take_turns():
    """
    Each principal's oldest request comes first, however many requests another principal has sent before.
    """
    line, requests = WaitingLine(10), [pending(subject) for subject in "aaabab"]
    for one in requests:
        assert line.add(one) is None

    assert [line.pop() for _ in requests] == [requests[number] for number in (0, 3, 1, 5, 2, 4)]
    assert (line.pop(), len(line)) == (None, 0)


def test_a_full_line_refuses_the_principal_that_fills_it():
    """
    A request of another principal takes the place of the newest request of the principal with the most.
    """
    line, filling = WaitingLine(3), [pending("many") for _ in range(3)]
    for one in filling:
        line.add(one)

    with pytest.raises(TooManyRequests, match="3 requests wait already"):
        line.add(pending("many"))
    other = pending("few")
    assert line.add(other) is filling[2]
    with pytest.raises(TooManyRequests):
        line.add(pending("few"))  # both would have two
    assert [line.pop() for _ in range(3)] == [filling[0], other, filling[1]]


def test_the_params_of_all_requests_are_bounded():
    """
    A request that does not fit is refused, and evicts none if that would not make room.
    """
    line, small, large = WaitingLine(10, byte_limit=100), pending("a", "x" * 10), pending("a", "x" * 60)
    line.add(small)
    line.add(large)

    with pytest.raises(TooManyRequests):
        line.add(pending("b", "x" * 90))
    assert len(line) == 2
    line.remove(large)
    line.remove(large)  # it has left already
    line.add(pending("b", "x" * 60))
    assert len(line) == 2


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans())))
def test_no_request_is_lost_or_served_twice(steps):
    """
    Whatever is added, taken and evicted, each request leaves the line exactly once.
    """
    line, added, left = WaitingLine(4), [], []
    for subject, takes in steps:
        one = pending(subject)
        try:
            evicted = line.add(one)
        except TooManyRequests:
            continue
        added.append(one)
        left += [evicted] if evicted is not None else []
        left += [line.pop()] if takes else []
        assert len(line) <= 4
    left += iter(line.pop, None)

    assert len(left) == len(set(map(id, left)))
    assert set(map(id, left)) == set(map(id, added))
