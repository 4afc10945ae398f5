"""Recipes for the HTTP tests: prompts with all kinds of behaviour, and resources that change."""

import asyncio
import sys
import threading
import time
from itertools import count

from promptkit import Context, PromptError, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes

#: The names of prompts that have started and ended, in order, and the event that releases blocked prompts.
STARTED, ENDED = [], []
RELEASED = threading.Event()


@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}!"


@prompt
def blocks(seconds: float = 30.0):
    """Block a thread."""
    STARTED.append("blocks")
    RELEASED.wait(seconds)
    return "Unblocked."


@prompt
def spins(seconds: float = 30.0):
    """Keep the GIL busy."""
    STARTED.append("spins")
    end = time.monotonic() + seconds
    while time.monotonic() < end and not RELEASED.is_set():
        pass
    return "Spun."


@prompt
async def waits(seconds: float = 30.0):
    """Wait on the event loop."""
    STARTED.append("waits")
    try:
        await asyncio.sleep(seconds)
    finally:
        ENDED.append("waits")
    return "Waited."


@prompt
async def blocks_its_loop(seconds: float = 30.0):
    """Block the event loop."""
    STARTED.append("blocks_its_loop")
    RELEASED.wait(seconds)
    return "Unblocked."


@prompt
def works(context: Context):
    """Report progress until released."""
    STARTED.append("works")
    try:
        for step in count():
            context.report_progress(step)
            if RELEASED.wait(0.001):
                break
    finally:
        ENDED.append("works")
    return "Done."


@prompt
def fails():
    """Raise an unexpected exception."""
    raise ZeroDivisionError


@prompt
def refuses():
    """Raise an error for the client."""
    raise PromptError("not today")


@prompt
def leaves():
    """Exit the process."""
    sys.exit(3)


@prompt
def interrupts():
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt


@prompt(elicit=True)
def asks(who: str):
    """Ask for the missing argument."""
    return f"For {who}."


@prompt
def steps(context: Context, count: int = 3):
    """Report progress."""
    for step in range(count):
        context.report_progress(step + 1, count, "going")
    return "Arrived."


@prompt(timeout=0.2)
def hurries():
    """Exceed the time limit."""
    RELEASED.wait(30)
    return "Late."


@resource("note://one", name="one")
def note() -> str:
    """Return a note."""
    return "One."


PROMPTS = [
    greet,
    blocks,
    spins,
    waits,
    blocks_its_loop,
    works,
    fails,
    refuses,
    leaves,
    interrupts,
    asks,
    steps,
    hurries,
]


def catalog(*more, without=()):
    """Return a catalog of the prompts above except *without*, plus *more*."""
    prompts = [each for each in PROMPTS if each not in without]
    return compile(Recipes(prompts=tuple(prompts + list(more)), resources=(note,)))
