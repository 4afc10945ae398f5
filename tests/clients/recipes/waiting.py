"""
A prompt that never finishes, and two prompts that report its state.

Different servers may render them, so their shared state is in files next to the recipes.
"""

import asyncio
from pathlib import Path

from promptkit import prompt

BESIDE = Path(__file__).parents[1]
HAS_BEGUN = BESIDE / "wait.begun"
HAS_ENDED = BESIDE / "wait.ended"


@prompt(timeout=600)
async def wait():
    """Wait for ever."""
    HAS_BEGUN.touch()
    ending = "left"
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ending = "cancelled"
        raise
    finally:
        write(HAS_ENDED, ending)
    return "It is over."


@prompt(timeout=20)
async def begun():
    """Say that `wait` waits, as soon as it does."""
    await appearing(HAS_BEGUN)
    return "It waits."


@prompt(timeout=20)
async def ended():
    """Say how `wait` has ended, as soon as it has."""
    await appearing(HAS_ENDED)
    return f"It was {HAS_ENDED.read_text(encoding='utf-8')}."


async def appearing(file):
    """Wait until *file* exists."""
    while not file.exists():  # noqa: ASYNC110 (another process may write it)
        await asyncio.sleep(0.01)


def write(file, text):
    """Write a file atomically."""
    scratch = file.with_suffix(".part")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(file)
