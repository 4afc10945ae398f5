"""An exception from another thread is raised in an author's code, and nowhere else."""

import sys
import threading
import time
import traceback
from contextlib import suppress

import pytest

from promptkit.errors import interruptions
from promptkit.errors.interruptions import call_interruptible, interrupt, shielded


class Stopped(BaseException):
    """What is raised from outside."""


class OfOurs:
    """Code of ours, with a lock that nobody may lose, that calls an author's function, which calls it."""

    def __init__(self):
        self.lock = threading.Lock()
        self.turns = 0

    def note(self):
        """Count, as any thread may."""
        with self.lock:
            self.turns += 1

    def author(self):
        """Stand for what an author wrote."""
        shielded(self.note)
        return sum(range(3))

    def turn(self):
        """Return where an exception landed; None if none did."""
        self.note()
        try:
            call_interruptible(self.author)
        except Stopped as error:
            self.note()
            places = traceback.extract_tb(error.__traceback__)
            return [place for place in places if place.name not in {"trace", "interrupt"}][-1]
        self.note()
        return None


def interrupted_at(number, run):
    """Interrupt what runs at one of its steps; return whether it has as many, and what it returned."""
    steps = 0
    own = threading.get_ident()

    def trace(frame, event, _argument):
        nonlocal steps
        if frame.f_code.co_filename not in (__file__, interruptions.__file__):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            steps += 1
            if steps == number:
                sys.settrace(None)
                interrupt(own, Stopped)
        return trace

    sys.settrace(trace)
    try:
        result = run()
    finally:
        sys.settrace(None)
    return steps >= number, result


def test_each_place_where_it_can_be_raised_is_the_authors():
    """
    Interrupted before any instruction, the exception comes in the author's code or in what calls it, no lock
    of ours is lost, and nothing comes later.
    """
    landed, number, goes_on = set(), 0, True
    while goes_on:
        number += 1
        ours = OfOurs()
        goes_on, place = interrupted_at(number, ours.turn)
        assert not ours.lock.locked(), f"at step {number}"
        if place is not None:
            landed.add((place.filename == interruptions.__file__, place.name))
        before = ours.turns
        assert ours.turn() is None, f"something came after step {number}"
        assert ours.turns == before + 3

    assert number > 100
    assert (False, "author") in landed
    assert {name for of_ours, name in landed if not of_ours} == {"author"}
    assert {name for of_ours, name in landed if of_ours} <= {"call_interruptible", "shielded", "_unshield"}


@pytest.fixture
def quick_switches():
    """Have threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def test_threads_lose_no_lock_when_they_are_interrupted(quick_switches):
    """
    Threads that take a lock again and again, and are interrupted at any moment, give it back.

    Python 3.14 may raise an exception of another thread between a lock is taken and the block of `with`.
    """
    lock = threading.Lock()
    for number in range(2000):

        def work():
            with suppress(Stopped):
                while True:
                    with lock:
                        pass
                    call_interruptible(sum, range(3))

        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        while not interrupt(thread.ident, Stopped):
            time.sleep(0)
        thread.join(10)
        assert not thread.is_alive(), f"thread {number} waits for ever"
        assert not lock.locked(), f"thread {number} has lost the lock"


def test_what_is_no_authors_is_not_interrupted():
    """
    A thread that is in no author's code hears nothing.
    """
    assert not interrupt(threading.get_ident(), Stopped)
    time.sleep(0)


def test_a_thread_that_was_interrupted_cleans_up():
    """
    What an author's code prints after that is not interrupted again, and its own errors stand.
    """
    own, ours = threading.get_ident(), OfOurs()

    def author():
        try:
            interrupt(own, Stopped)
            time.sleep(0)
        finally:
            shielded(ours.note)

    with pytest.raises(Stopped):
        call_interruptible(author)
    assert ours.turns == 1


def test_an_author_who_swallows_it_goes_on():
    """
    It is raised once: who catches it returns as if nothing had happened.
    """
    own = threading.get_ident()

    def author():
        try:
            interrupt(own, Stopped)
            time.sleep(0)
        except Stopped:
            return "swallowed"

    assert call_interruptible(author) == "swallowed"


def test_what_is_to_end_while_it_prints_ends_after_that():
    """
    A thread that is nearly always in code of ours, as one that prints in a loop, is interrupted all the same.
    """
    ours, printing = threading.Event(), threading.Event()

    def of_ours():
        printing.set()
        ours.wait(20)

    def author():
        while True:
            shielded(of_ours)

    def work():
        with suppress(Stopped):
            call_interruptible(author)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    assert printing.wait(20)

    assert interrupt(thread.ident, Stopped)
    ours.set()
    thread.join(20)
    assert not thread.is_alive()
