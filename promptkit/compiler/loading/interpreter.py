"""The interpreter's own state, which authors' code may change but not for the rest of the server."""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any, Final

__all__ = ["end_child", "intact"]

#: What ends a server, or keeps it from being ended.
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGPIPE") if hasattr(signal, name)
)

#: The lists that imports go by, and what tells whether something in them is of use.
_LISTS: Final[dict[str, Callable[[Any], object]]] = {
    "path": lambda place: type(place) is str,
    "path_hooks": callable,
    "meta_path": lambda finder: callable(finder.find_spec),
}


@contextmanager
def intact() -> Iterator[None]:
    """
    Put right afterwards what other imports, and the end of the process, depend on.

    What is added to the lists of `sys` stays; what was there before comes back. So do the handlers
    of signals, and a limit to recursion that was lowered.
    """
    lists = {name: (getattr(sys, name), list(getattr(sys, name))) for name in _LISTS}
    limit = sys.getrecursionlimit()
    handlers = _handlers()
    try:
        yield
    finally:
        if getattr(sys, "path_hooks", None) != lists["path_hooks"][1]:
            sys.path_importer_cache.clear()  # places may have been looked at without them
        for name, (ours, before) in lists.items():
            setattr(sys, name, _put_right(ours, before, getattr(sys, name, None), _LISTS[name]))
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


def _put_right(ours: list[Any], before: list[Any], now: object, use: Callable[[Any], object]) -> list[Any]:
    """
    Return the list *ours* with what is in it *now*, if it is of *use*, and what was there *before*.
    """
    kept = [item for item in now if _is_of_use(item, use)] if isinstance(now, list) else []
    if kept != before or now is not ours:
        ours[:] = [*kept, *(item for item in before if item not in kept)]
    return ours


def _is_of_use(item: Any, use: Callable[[Any], object]) -> bool:
    """
    Return whether imports may use *item*, else each of them would fail.
    """
    try:
        return bool(use(item))
    except Exception:  # noqa: BLE001 (an author's object may raise anything)
        return False


def _handlers() -> dict[signal.Signals, Any]:
    """
    Return what handles signals now; nothing on a thread that could not put it back.
    """
    if current_thread() is not main_thread():
        return {}
    return {number: signal.getsignal(number) for number in _SIGNALS}
