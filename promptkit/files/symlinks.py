"""Links in a folder that someone else's data was unpacked into."""

import os
from collections.abc import Iterator
from pathlib import Path


def remove_outward_links(folder: Path) -> None:
    """
    Remove each link below *folder* that leads out of it, so that nothing outside is read by its name.

    Args:
        folder:
            A folder that no one else writes to. Nothing happens if it does not exist.

    Raises:
        OSError: If a link cannot be removed.
    """
    root = os.path.realpath(folder)
    outward = [path for path in _links(root) if not _is_below(os.path.realpath(path), root)]
    for path in outward:
        os.unlink(path)


def _links(root: str) -> Iterator[str]:
    waiting = [root] if os.path.isdir(root) else []
    while waiting:
        with os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield entry.path
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)


def _is_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root + os.sep)
