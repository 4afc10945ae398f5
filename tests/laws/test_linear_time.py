"""Hostile input of every kind takes linear time: its calls are counted, for some and for more of it."""

import gc
import json
import sys
from collections import Counter

import pytest

from benchmarks import hostile
from benchmarks.hostile import MOST, TIMES, Growth, grown, opened
from benchmarks.hostile_input import KINDS, TYPES

pytestmark = [pytest.mark.sampled, pytest.mark.timeout(120)]

#: Items, or characters, of which sixteen times as many are few still.
SIZE = 128


def calls(data: bytes) -> int:
    """How many functions are called for what a new server receives, those written in C included."""
    server = opened()
    counts = Counter[str]()
    before = sys.getprofile()
    gc.disable()  # where brackets nest as deep as Python goes, what a collection calls would have no room
    sys.setprofile(lambda _frame, event, _arg: counts.update((event,)))
    try:
        server.receive_data(data)
    finally:
        sys.setprofile(before)
        gc.enable()
    return counts["call"] + counts["c_call"]


def test_there_are_many_kinds():
    """
    Lines, arguments of every type, names, URIs, sets, batches, ids, brackets and escapes are among them.
    """
    assert len(KINDS) >= 50


@pytest.mark.parametrize("kind", KINDS)
def test_sixteen_times_as_much_makes_no_more_than_so_many_calls(kind):
    """
    The calls made grow with the input, and not with its square.
    """
    few, many = (KINDS[kind](size) for size in (SIZE, SIZE * TIMES))
    for data in (few, many):  # what is imported, and made, at the first time
        calls(data)

    assert calls(many) <= MOST * calls(few)


@pytest.mark.parametrize("kind", KINDS)
def test_each_is_answered(kind):
    """
    What is measured is an answer, and no failure of promptkit's.
    """
    sent: list[bytes] = []
    server = hostile.Server(hostile.CATALOG, sent.append, limits=hostile.LIMITS)
    server.receive_data(hostile.OPENING)
    sent.clear()

    server.receive_data(KINDS[kind](SIZE))

    replies = [json.loads(line) for line in b"".join(sent).splitlines()]
    found = [each for reply in replies for each in (reply if isinstance(reply, list) else [reply])]
    assert found
    assert -32603 not in [each.get("error", {}).get("code") for each in found]


class TestReport:
    def test_it_shows_every_kind(self, capsys):
        """
        Small input is enough to see that the report works.
        """
        hostile.main(["--quick", "--rounds", "1"])

        shown = capsys.readouterr().out
        assert [kind for kind in KINDS if f" {kind} " not in shown] == []

    def test_it_shows_what_is_asked_for(self, capsys):
        """
        A part of a name chooses.
        """
        code = hostile.main(["--quick", "--rounds", "3", "--only", "float"])

        shown = capsys.readouterr().out
        assert (code, "float" in shown, "batch" in shown) == (0, True, False)

    @pytest.mark.parametrize(
        ("small", "large", "linear"),
        [(1.0, 16.0, True), (1.0, 24.0, True), (1.0, 25.0, False), (1e-6, 9e-4, True)],
        ids=["linear", "with room", "more", "too short to tell"],
    )
    def test_its_verdict(self, small, large, linear):
        """
        Sixteen times as much input may take twenty-four times as long.
        """
        assert Growth("input", small, large).linear is linear

    def test_quadratic_work_is_seen(self, monkeypatch):
        """
        Work that is quadratic in the input does not count as linear.
        """

        class Slow:
            def receive_data(self, data: bytes) -> None:
                for _ in range(len(data)):
                    data.find(b"!")

        monkeypatch.setattr(hostile, "opened", Slow)

        assert not grown("quadratic", lambda size: b"x" * size, 2_000, 1).linear


def test_every_type_is_attacked():
    """
    No prompt of the targets is forgotten.
    """
    sent = b"".join(make(1) for make in KINDS.values())

    assert [name for name in TYPES if f'"name": "{name}"'.encode() not in sent] == []
