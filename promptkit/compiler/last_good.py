"""What stays served of a file while its latest version has errors: its last good version."""

from collections.abc import Sequence

from msgspec import structs

from promptkit.compiler.composition import CompiledFile, Owners, owners_of, with_duplicates

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
    merged = []
    for now in with_duplicates(after, owners_of(before) if owners is None else owners):
        was = served.get(str(now.file))
        if was is not None and not now.is_sound and (was.is_sound or was.served - now.served):
            merged.append(structs.replace(was, diagnostics=now.diagnostics, age=was.age + 1))
        else:
            merged.append(now)
    return merged
