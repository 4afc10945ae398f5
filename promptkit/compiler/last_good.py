"""What stays served of a file while its latest version has errors: its last good version."""

from collections.abc import Sequence

from msgspec import structs

from promptkit.compiler.composition import CompiledFile, Owners, find_winners, is_sound, owners_of
from promptkit.errors.diagnostics import Diagnostic

__all__ = ["merge"]


def merge(
    before: Sequence[CompiledFile], after: Sequence[CompiledFile], owners: Owners | None = None
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
            Which file has served what, if that is known already.
    """
    served = {str(file.file): file for file in before}  # paths are slow to compare
    faults: dict[int, list[Diagnostic]] = {}
    for file, fault in find_winners(after, owners_of(before) if owners is None else owners)[1]:
        faults.setdefault(id(file), []).append(fault)
    merged = []
    for file in after:
        now, was = file, served.get(str(file.file))
        if id(file) in faults:
            found = (*file.diagnostics, *faults[id(file)])
            now = structs.replace(file, diagnostics=found, is_sound=is_sound(found))
        if was is not None and not now.is_sound and (was.is_sound or was.served - now.served):
            now = structs.replace(was, diagnostics=now.diagnostics, age=was.age + 1)
        merged.append(now)
    return merged
