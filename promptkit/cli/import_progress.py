"""How far an import is, for an error message."""

import os
import sys
import threading

from promptkit.compiler.loading.targets import place_of

__all__ = ["import_progress"]


def import_progress(target: str, *names: str) -> str:
    """
    Return which recipes are being imported, and at which lines the imports are.

    Args:
        target:
            What the command line names.

        *names:
            The names of the threads that import.

    Returns:
        Words to follow others; ``""`` if no recipe is being imported.
    """
    place, frames = place_of(target), sys._current_frames()  # noqa: SLF001 (the only way)
    folder = "" if place is None else f"{place[0]}{os.sep}"
    found = []
    for thread in threading.enumerate():
        frame, said = frames.get(thread.ident or 0) if thread.name in names else None, ""
        while frame is not None and place is not None:
            if (file := frame.f_code.co_filename).startswith(folder):
                said = f"{file.removeprefix(folder)} is at line {frame.f_lineno}"
            frame = frame.f_back
        found += [said] if said else []
    return f": {', '.join(found)}" if found else ""
