"""The interpreter's own state, which authors' code may change but not for the rest of the server."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, Final

__all__ = ["end_child", "intact"]

#: What ends a server, or keeps it from being ended.
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGPIPE") if hasattr(signal, name)
)


@contextmanager
def intact() -> Iterator[None]:
    """
    Put right afterwards what other imports, and the end of the process, depend on.

    What is added to `sys.path` and `sys.meta_path` stays; what was there before comes back. So do
    the handlers of signals, and a limit to recursion that was lowered.
    """
    path, places = sys.path, list(sys.path)
    meta_path, finders = sys.meta_path, list(sys.meta_path)
    limit = sys.getrecursionlimit()
    handlers = _handlers()
    try:
        yield
    finally:
        sys.path = _put_right(path, places, sys.path)
        sys.meta_path = _put_right(meta_path, finders, sys.meta_path)
        if sys.getrecursionlimit() < limit:
            sys.setrecursionlimit(limit)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def end_child(parent: int) -> None:
    """
    End the process here if it is not *parent*: it was forked by authors' code, and serves nobody.
    """
    if os.getpid() != parent:
        os._exit(0)


def _put_right(ours: list[Any], before: list[Any], now: object) -> list[Any]:
    """
    Return the list *ours* with what is in it *now*, and what was there *before*.
    """
    kept = [item for item in now if type(item) is str or _finds(item)] if isinstance(now, list) else []
    if kept != before or now is not ours:
        lost = [item for item in before if item not in kept]
        ours[:] = [*kept, *lost]
    return ours


def _finds(finder: Any) -> bool:
    """
    Return whether imports may ask *finder*, else each of them would fail.
    """
    try:
        return callable(finder.find_spec)
    except Exception:  # noqa: BLE001 (an author's object may raise anything)
        return False


def _handlers() -> dict[signal.Signals, Any]:
    """
    Return what handles signals now; nothing on a thread that could not put it back.
    """
    if current_thread() is not main_thread():
        return {}
    return {number: signal.getsignal(number) for number in _SIGNALS}
