"""
Interruptions: an exception that another thread raises in an author's code, and nowhere else.

Python raises it wherever the thread happens to be, also right after it has taken a lock. So a thread is
noted while it calls an author's code, and what interrupts it has to take that note away first.
"""

import time
from collections.abc import Callable
from threading import get_ident
from typing import Final, TypeVar, TypeVarTuple

__all__ = ["Abandoned", "call_interruptible", "interrupt", "is_interrupted", "shielded"]

Args = TypeVarTuple("Args")
T = TypeVar("T")

#: Which of three states a thread is in; outside of authors' code, it is in none. Who removes it from one of
#: the first two decides what comes: a set changes in one step, and needs no lock that an exception could
#: cost.
_INTERRUPTIBLE: Final[set[int]] = set()  # it runs an author's code
_SHIELDED: Final[set[int]] = set()  # it runs code of ours that an author's code has called
_UNDERWAY: Final[set[int]] = set()  # the exception is being raised there

#: What is raised in a thread as soon as it leaves the code of ours that it calls.
_PENDING: Final[dict[int, type[BaseException]]] = {}


class Abandoned(BaseException):
    """Raised in an author's code whose request is answered already."""


def call_interruptible(function: Callable[[*Args], T], *args: *Args) -> T:
    """Call an author's *function*. No exception of `interrupt` comes before that, or after."""
    ident = get_ident()
    if ident in _INTERRUPTIBLE:  # an author's code calls or imports another
        return function(*args)
    is_shielded = ident in _SHIELDED  # it was called by code of ours that an author's code has called
    if is_shielded:
        _unshield(ident)
    else:
        _INTERRUPTIBLE.add(ident)
    try:
        return function(*args)
    finally:
        try:
            _INTERRUPTIBLE.remove(ident)
        except KeyError:
            _await_interruption(ident)
        if is_shielded:
            _SHIELDED.add(ident)


def shielded(function: Callable[[*Args], T], *args: *Args) -> T:
    """Call a *function* of ours that authors' code calls, and that may hold a lock: it is not interrupted."""
    ident = get_ident()
    try:
        _INTERRUPTIBLE.remove(ident)
    except KeyError:
        _await_interruption(ident)
        return function(*args)  # in no author's code, shielded already, or interrupted before
    _SHIELDED.add(ident)
    try:
        return function(*args)
    finally:
        _unshield(ident)


def is_interrupted() -> bool:
    """Whether an exception is to be raised in this thread, as soon as it leaves what is shielded."""
    return get_ident() in _PENDING


def _unshield(ident: int) -> None:
    """Go back to an author's code. Raises what was to be raised meanwhile."""
    try:
        _SHIELDED.remove(ident)
    except KeyError:
        if (error := _PENDING.pop(ident, None)) is not None:
            raise error from None
    else:
        _INTERRUPTIBLE.add(ident)


def interrupt(ident: int, error: type[BaseException]) -> bool:
    """
    Raise *error* in a thread if it is in an author's code, and return whether it is.

    It is raised once the thread runs Python code of the author's, or as soon as that gets back from ours.
    """
    import ctypes  # hardly ever needed

    _UNDERWAY.add(ident)
    _PENDING[ident] = error
    try:
        if ident in _SHIELDED:
            _SHIELDED.remove(ident)
            return True
        _INTERRUPTIBLE.remove(ident)
    except KeyError:
        del _PENDING[ident]
        return False
    else:
        del _PENDING[ident]
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(ident), ctypes.py_object(error))
        return True
    finally:
        _UNDERWAY.discard(ident)


def _await_interruption(ident: int) -> None:
    """Return once no exception can come any more: it is raised here at the latest."""
    while ident in _UNDERWAY:
        time.sleep(0)
    get_ident()  # after a call of C code Python looks for exceptions
