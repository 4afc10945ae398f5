"""A prompt that is never ready, and prompts that tell how it fares."""

import asyncio

from promptkit import prompt

has_begun = asyncio.Event()
has_ended = asyncio.Event()
endings = []


@prompt(timeout=600)
async def wait():
    """Wait for ever."""
    has_begun.set()
    try:
        await asyncio.Event().wait()
    except asyncio.CancelledError:
        endings.append("cancelled")
        raise
    finally:
        has_ended.set()
    return "It is over."


@prompt(timeout=20)
async def begun():
    """Say that `wait` waits, as soon as it does."""
    await has_begun.wait()
    return "It waits."


@prompt(timeout=20)
async def ended():
    """Say how `wait` has ended, as soon as it has."""
    await has_ended.wait()
    return f"It was {' and '.join(endings)}."
