"""
Interruptions: an exception that another thread raises in an author's code, and nowhere else.

Python raises it wherever the thread happens to be, also right after it has taken a lock. So a thread is
noted while it calls an author's code, and who interrupts it has to take that note away first.
"""

import time
from collections.abc import Callable
from threading import get_ident
from typing import Final, TypeVar, TypeVarTuple

__all__ = ["call_interruptible", "interrupt", "shielded"]

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: The threads in authors' code, and those that are just being interrupted. Who removes a thread from the
#: first decides: a set changes in one step, and needs no lock that an exception could cost.
_INTERRUPTIBLE: Final[set[int]] = set()
_UNDERWAY: Final[set[int]] = set()


def call_interruptible(function: Callable[[*Args], T], *args: *Args) -> T:
    """Call an author's *function*. No exception of `interrupt` comes before that, or after."""
    ident = get_ident()
    if ident in _INTERRUPTIBLE:  # an author's code calls or imports another
        return function(*args)
    _INTERRUPTIBLE.add(ident)
    try:
        return function(*args)
    finally:
        try:
            _INTERRUPTIBLE.remove(ident)
        except KeyError:
            _await_interruption(ident)


def shielded(function: Callable[[*Args], T], *args: *Args) -> T:
    """Call a *function* of ours that authors' code calls, and that may hold a lock: it is not interrupted."""
    ident = get_ident()
    try:
        _INTERRUPTIBLE.remove(ident)
    except KeyError:
        _await_interruption(ident)
        return function(*args)  # in no author's code, shielded already, or interrupted before
    try:
        return function(*args)
    finally:
        _INTERRUPTIBLE.add(ident)


def interrupt(ident: int, error: type[BaseException]) -> bool:
    """Raise *error* in a thread once it runs Python code, if it is in an author's code; return whether."""
    import ctypes  # hardly ever needed

    _UNDERWAY.add(ident)
    try:
        _INTERRUPTIBLE.remove(ident)
    except KeyError:
        return False
    else:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error))
        return True
    finally:
        _UNDERWAY.discard(ident)


def _await_interruption(ident: int) -> None:
    """Return once no exception can come any more: it is raised here at the latest."""
    is_underway = True
    while is_underway:
        is_underway = ident in _UNDERWAY
        time.sleep(0)  # after each call of C code Python looks for exceptions
