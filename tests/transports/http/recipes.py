"""What the tests of HTTP serve: prompts of every temper, and resources that change."""

import asyncio
import sys
import threading
import time
from itertools import count

from promptkit import Context, PromptError, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes

#: Set when the prompt of this name has begun, and how often each has begun and ended.
BEGUN, ENDED = [], []
RELEASED = threading.Event()


@prompt
def greet(name: str = "you"):
    """Say hello."""
    return f"Hello, {name}!"


@prompt
def blocks(seconds: float = 30.0):
    """Block a thread."""
    BEGUN.append("blocks")
    RELEASED.wait(seconds)
    return "Unblocked."


@prompt
def spins(seconds: float = 30.0):
    """Keep Python's lock busy."""
    BEGUN.append("spins")
    end = time.monotonic() + seconds
    while time.monotonic() < end and not RELEASED.is_set():
        pass
    return "Spun."


@prompt
async def waits(seconds: float = 30.0):
    """Wait on a loop."""
    BEGUN.append("waits")
    try:
        await asyncio.sleep(seconds)
    finally:
        ENDED.append("waits")
    return "Waited."


@prompt
async def blocks_its_loop(seconds: float = 30.0):
    """Block a loop."""
    BEGUN.append("blocks_its_loop")
    RELEASED.wait(seconds)
    return "Unblocked."


@prompt
def works(context: Context):
    """Report progress until told to stop."""
    BEGUN.append("works")
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
    """Raise what nobody expects."""
    raise ZeroDivisionError


@prompt
def refuses():
    """Raise what the client is told."""
    raise PromptError("not today")


@prompt
def leaves():
    """End the process, or try to."""
    sys.exit(3)


@prompt
def interrupts():
    """Raise what a person at a terminal raises."""
    raise KeyboardInterrupt


@prompt(elicit=True)
def asks(who: str):
    """Ask for what is missing."""
    return f"For {who}."


@prompt
def steps(context: Context, count: int = 3):
    """Report on the way."""
    for step in range(count):
        context.report_progress(step + 1, count, "going")
    return "Arrived."


@prompt(timeout=0.2)
def hurries():
    """Take longer than its limit."""
    RELEASED.wait(30)
    return "Late."


@resource("note://one", name="one")
def one() -> str:
    """Hold a note."""
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
    """Compile what is served, and more."""
    prompts = [each for each in PROMPTS if each not in without]
    return compile(Recipes(prompts=tuple(prompts + list(more)), resources=(one,)))
