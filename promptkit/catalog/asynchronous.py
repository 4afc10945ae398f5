"""Running an author's asynchronous function from code that is not asynchronous."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

__all__ = ["run_to_end"]

T = TypeVar("T")


def run_to_end(start: Callable[[], Coroutine[Any, Any, T]], name: str, instead: str) -> T:
    """
    Run a coroutine on an event loop of its own.

    Args:
        start:
            Makes the coroutine.

        name:
            The author's function, for the error.

        instead:
            The method to await where an event loop runs.

    Raises:
        RuntimeError: If an event loop runs in this thread already.

        Exception: Whatever the coroutine raises.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass  # not run here: this error would become the context of what the coroutine raises
    else:
        msg = f"{name} is asynchronous, and an event loop runs here: await .{instead}(...)"
        raise RuntimeError(msg)
    return asyncio.run(start())
