"""
A prompt that never finishes, and two prompts that report its state.

Different servers may render them, so their shared state is in files next to the recipes.
"""

import asyncio
from pathlib import Path

from promptkit import prompt

SHARED_FOLDER = Path(__file__).parents[1]
HAS_STARTED = SHARED_FOLDER / "wait.started"
HAS_ENDED = SHARED_FOLDER / "wait.ended"


@prompt(timeout=600)
async def wait():
    """Wait indefinitely."""
    HAS_STARTED.touch()
    ending = "completed"
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        ending = "cancelled"
        raise
    finally:
        write(HAS_ENDED, ending)
    return "It is over."


@prompt(timeout=20)
async def started():
    """Report when `wait` has started."""
    await wait_for_file(HAS_STARTED)
    return "It has started."


@prompt(timeout=20)
async def ended():
    """Report how `wait` has ended."""
    await wait_for_file(HAS_ENDED)
    return f"It was {HAS_ENDED.read_text(encoding='utf-8')}."


async def wait_for_file(file):
    """Wait until *file* exists."""
    while not file.exists():  # noqa: ASYNC110 (another process may write it)
        await asyncio.sleep(0.01)


def write(file, text):
    """Write a file atomically."""
    scratch = file.with_suffix(".part")
    scratch.write_text(text, encoding="utf-8")
    scratch.replace(file)
