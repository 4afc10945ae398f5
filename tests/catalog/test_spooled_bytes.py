import gc
import os
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit.files import scratch
from promptkit.files.scratch import SpooledBytes, keep


@pytest.fixture
def room(monkeypatch):
    """A function that sets how much memory is available for spooled bytes."""
    gc.collect()
    return lambda size: monkeypatch.setattr(scratch, "MOST_IN_MEMORY", SpooledBytes.in_memory + size)


@given(st.lists(st.binary(max_size=50)))
def test_what_is_kept_is_what_was_given(given):
    """Spooled bytes can be read back, and have the right digest and size."""
    kept = [keep(data) for data in given]

    assert [one.data for one in kept] == given
    assert [one.digest for one in kept] == [sha256(data).hexdigest() for data in given]
    assert [one.size for one in kept] == [len(data) for data in given]


def test_what_does_not_fit_into_memory_is_on_disk(room):
    """Bytes that exceed the memory limit are on disk; later ones that fit are in memory."""
    room(10)
    given = [b"first 8 b", b"does not fit", b"x", b"nor does this one"]
    kept = [keep(data) for data in given]

    assert [one.data for one in kept] == given
    assert [one._data is None for one in kept] == [False, True, False, True]
    assert [one.data for one in reversed(kept)] == given[::-1]


def test_equal_bytes_are_kept_once(room):
    """Equal bytes are stored once, so that replacing a catalog needs no extra memory."""
    room(1000)
    before = SpooledBytes.in_memory
    kept = [keep(b"the same bytes") for _ in range(10)]

    assert len(set(map(id, kept))) == 1
    assert SpooledBytes.in_memory == before + len(b"the same bytes")


def test_nothing_is_kept_of_what_nobody_holds(room):
    """The memory is released when the last reference is gone."""
    room(1000)
    before = SpooledBytes.in_memory
    kept = [keep(bytes([i]) * 20) for i in range(10)]
    assert SpooledBytes.in_memory == before + 200

    del kept

    assert SpooledBytes.in_memory == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
def test_a_fork_reads_and_keeps_its_own(room):
    """A forked worker and its parent share a file without overwriting each other's bytes."""
    room(0)
    before = [keep(bytes([i]) * 5000) for i in range(50)]
    if not (child := os.fork()):
        own = [keep(bytes([100 + i]) * 5000) for i in range(50)]
        wrong = sum(one.data != bytes([i]) * 5000 for _ in range(20) for i, one in enumerate(before))
        wrong += sum(one.data != bytes([100 + i]) * 5000 for i, one in enumerate(own))
        os._exit(min(wrong, 100))
    own = [keep(bytes([200 + i]) * 5000) for i in range(50)]
    wrong = sum(one.data != bytes([i]) * 5000 for _ in range(20) for i, one in enumerate(before))
    wrong += sum(one.data != bytes([200 + i]) * 5000 for i, one in enumerate(own))

    assert (wrong, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])) == (0, 0)
