"""Standard error: where promptkit says what nobody asked for."""

import sys
from contextlib import suppress

__all__ = ["say"]


def say(text: str) -> None:
    """
    Print *text* on standard error, after the name of the program. It never raises.
    """
    with suppress(Exception):  # an author may have closed or replaced it, and nobody may be reading
        sys.stderr.write(f"promptkit: {text}\n")
        sys.stderr.flush()
