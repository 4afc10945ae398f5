"""Reports of the files that a command writes into a folder, or removes from it."""

from collections.abc import Iterator

from promptkit.cli.diagnostics import counted
from promptkit.clients.folders import FolderChange


def describe_change(change: FolderChange, subject: object, noun: str, *, is_done: bool) -> Iterator[str]:
    """Yield the lines that report a change; *subject* contains the files, each of which is a *noun*."""
    if not change.is_needed:
        yield f"{subject}: nothing to change"
    elif is_done:
        names = f": {', '.join(change.names)}" if change.names else ""
        yield f"{subject} has {counted(len(change.names), noun)} of these recipes{names}"
        yield from (f"    removed: {name}" for name in change.gone)
    else:
        yield from (f"would write {change.folder.shown / path}" for path in sorted(change.writes))
        yield from (f"would remove {change.folder.shown / path}" for path in sorted(change.removes))
