"""What stays served of a file while its latest version has errors: its last good version."""

import os
from collections.abc import Sequence
from pathlib import Path

from msgspec import structs

from promptkit.compiler.composition import CompiledFile, Owners, with_duplicates
from promptkit.errors.diagnostics import printable

__all__ = ["merge", "summary"]


def merge(
    before: Sequence[CompiledFile], after: Sequence[CompiledFile], owners: Owners
) -> list[CompiledFile]:
    """
    Return what to serve of each file: what it declares now, or what it declared before if now is worse.

    A file is taken as a whole, as its prompts belong together. It is worse now if it has an error, and
    either had none before, or would lose a prompt or resource. It is an error, too, to newly declare what
    another file has been serving.

    Args:
        before:
            What is served of each file.

        after:
            What each file declares now.

        owners:
            Which file has served what so far.
    """
    found = with_duplicates(after, owners)
    if all(file.is_sound for file in found):
        return found
    served = {str(file.file): file for file in before}  # paths are slow to compare
    merged = []
    for now in found:
        was = served.get(str(now.file))
        if was is not None and not now.is_sound and (was.is_sound or was.served - now.served):
            merged.append(structs.replace(was, diagnostics=now.diagnostics, age=was.age + 1))
        else:
            merged.append(now)
    return merged


def summary(files: Sequence[CompiledFile]) -> str:
    """
    Return which files are not served as they are now, and which have errors; ``""`` if there are none.

    Args:
        files:
            What is served of each file.
    """
    old = [file.file for file in files if file.file and file.age]
    faulty = [file.file for file in files if file.file and not file.age and not file.is_sound]
    if not old and not faulty:
        return ""
    above = os.path.commonpath([file.file.parent for file in files if file.file])

    def named(found: Sequence[Path]) -> str:
        return ", ".join(printable(str(file.relative_to(above))) for file in found)

    parts = [f"still as before, until fixed: {named(old)}"] if old else []
    parts += [f"with errors: {named(faulty)}"] if faulty else []
    return f"reloaded; {'; '.join(parts)}"
