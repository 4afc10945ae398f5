"""Hostile input of every kind takes linear time: function calls are counted for small and large input."""

import gc
import json
import sys
from collections import Counter

import pytest

from benchmarks import hostile
from benchmarks.hostile import MAX_RATIO, SIZE_RATIO, Growth, measure_growth, open_server
from benchmarks.hostile_input import KINDS, TYPES

pytestmark = pytest.mark.timeout(120)

#: Items, or characters, of the small input; sixteen times as many are still few.
SIZE = 64


def count_calls(data: bytes) -> int:
    """Return the number of calls, including calls of C functions, that a new server makes for an input."""
    server = open_server()
    counts = Counter[str]()
    before = sys.getprofile()
    gc.disable()  # at Python's nesting limit, callbacks of the garbage collector would exceed the stack
    sys.setprofile(lambda _frame, event, _arg: counts.update((event,)))
    try:
        server.receive_data(data)
    finally:
        sys.setprofile(before)
        gc.enable()
    return counts["call"] + counts["c_call"]


def test_there_are_many_kinds():
    """
    The kinds include lines, arguments of every type, names, URIs, sets, batches, ids, brackets and escapes.
    """
    assert len(KINDS) >= 50


@pytest.mark.parametrize("kind", KINDS)
def test_number_of_calls_is_linear(kind):
    """The number of calls grows linearly with the input, not quadratically."""
    few, many = (KINDS[kind](size) for size in (SIZE, SIZE * SIZE_RATIO))
    for data in (few, many):  # the first run also imports modules and fills caches
        count_calls(data)

    assert count_calls(many) <= MAX_RATIO * count_calls(few)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_answered(kind):
    """The measured input gets a reply, and the reply is not an internal error."""
    sent: list[bytes] = []
    server = hostile.Server(hostile.CATALOG, sent.append, limits=hostile.LIMITS)
    server.receive_data(hostile.OPENING)
    sent.clear()

    server.receive_data(KINDS[kind](SIZE))

    replies = [json.loads(line) for line in b"".join(sent).splitlines()]
    messages = [message for reply in replies for message in (reply if isinstance(reply, list) else [reply])]
    assert messages
    assert -32603 not in [message.get("error", {}).get("code") for message in messages]


class TestReport:
    def test_report_lists_every_kind(self, capsys):
        """The report lists every kind of input."""
        hostile.main(["--quick", "--rounds", "1"])

        report = capsys.readouterr().out
        assert [kind for kind in KINDS if f" {kind} " not in report] == []

    def test_kinds_can_be_selected(self, capsys):
        """`--only` selects kinds by a part of their name."""
        code = hostile.main(["--quick", "--rounds", "3", "--only", "float"])

        report = capsys.readouterr().out
        assert (code, "float" in report, "batch" in report) == (0, True, False)

    @pytest.mark.parametrize(
        ("small", "large", "linear"),
        [(1.0, 16.0, True), (1.0, 24.0, True), (1.0, 25.0, False), (1e-6, 9e-4, True)],
        ids=["linear", "with room", "more", "too short to tell"],
    )
    def test_linear_ratio(self, small, large, linear):
        """For sixteen times as much input, up to twenty-four times the time counts as linear."""
        assert Growth("input", small, large).is_linear is linear

    def test_quadratic_time_is_detected(self, monkeypatch):
        """Quadratic work does not count as linear."""

        class Slow:
            def receive_data(self, data: bytes) -> None:
                for _ in range(len(data)):
                    data.find(b"!")

        monkeypatch.setattr(hostile, "open_server", Slow)

        assert not measure_growth("quadratic", lambda size: b"x" * size, 2_000, 1).is_linear


def test_every_type_is_called():
    """Every prompt of the measured catalog is called by some kind of input."""
    sent = b"".join(make(1) for make in KINDS.values())

    assert [name for name in TYPES if f'"name": "{name}"'.encode() not in sent] == []
