"""Protects the interpreter's state from authors' code: what imports use, signal handlers, the process."""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import signal
else:
    import _signal as signal  # `signal` itself makes enums of all constants first: a client waits for that

__all__ = ["exit_if_forked", "preserve_interpreter", "raise_if_interrupted"]

#: Signals that a server handles or ignores.
_SIGNALS: Final = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGPIPE") if hasattr(signal, name)
)

#: The lists of `sys` that imports use, with a test of whether an item is usable.
_LISTS: Final[dict[str, Callable[[Any], object]]] = {
    "path": lambda place: type(place) is str,
    "path_hooks": callable,
    "meta_path": lambda finder: callable(finder.find_spec),
}


@contextmanager
def preserve_interpreter() -> Iterator[None]:
    """
    Restore afterwards what other imports, and the end of the process, depend on.

    What is added to the lists of `sys` stays, and what was removed comes back. Signal handlers are put back,
    and so is the recursion limit if it was lowered.
    """
    lists = {name: (getattr(sys, name), list(getattr(sys, name))) for name in _LISTS}
    limit = sys.getrecursionlimit()
    handlers = _handlers()
    try:
        yield
    finally:
        if getattr(sys, "path_hooks", None) != lists["path_hooks"][1]:
            sys.path_importer_cache.clear()  # entries may have been made without them
        for name, (ours, before) in lists.items():
            setattr(sys, name, _restored(ours, before, getattr(sys, name, None), _LISTS[name]))
        if sys.getrecursionlimit() < limit:
            sys.setrecursionlimit(limit)
        for number, handler in handlers.items():
            if handler is not None and signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def exit_if_forked(parent: int) -> None:
    """
    Exit if this is not the process *parent*.

    Authors' code that forks would otherwise leave a second server behind.
    """
    if os.getpid() != parent:
        os._exit(0)


def raise_if_interrupted(error: BaseException) -> None:
    """
    Raise *error* if it is a KeyboardInterrupt by the user, and not one that a recipe has raised.

    A server handles SIGINT by itself: there it can only come from a recipe.

    Raises:
        KeyboardInterrupt: If the user has pressed Ctrl-C.
    """
    pressed = issubclass(type(error), KeyboardInterrupt)  # an author's `__class__` may raise anything
    if pressed and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        raise error


def _restored(ours: list[Any], before: list[Any], now: object, use: Callable[[Any], object]) -> list[Any]:
    """The list *ours* with its usable items of *now*, and all that were there *before*."""
    kept = [item for item in now if _is_usable(item, use)] if isinstance(now, list) else []
    if kept != before or now is not ours:
        ours[:] = [*kept, *(item for item in before if item not in kept)]
    return ours


def _is_usable(item: Any, use: Callable[[Any], object]) -> bool:
    """Whether imports may use *item*. Otherwise each of them would fail."""
    try:
        return bool(use(item))
    except Exception:  # noqa: BLE001 (an author's object may raise anything)
        return False


def _handlers() -> "dict[signal.Signals, Any]":
    """The signal handlers; none on a thread that could not put them back."""
    if current_thread() is not main_thread():
        return {}
    return {number: signal.getsignal(number) for number in _SIGNALS}
