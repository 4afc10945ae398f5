"""Uploads a file in parts, as `analyze_project` is asked about in its example."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

PART_BYTES: Final = 1 << 20
ATTEMPTS: Final = 3


def parts(file: Path) -> Iterator[bytes]:
    """Yield the file, part by part."""
    with file.open("rb") as stream:
        while part := stream.read(PART_BYTES):
            yield part


def upload(file: Path, send: Callable[[int, bytes], bool]) -> int:
    """Send every part until it is taken, and return how many there were."""
    number = 0
    for part in parts(file):
        for _ in range(ATTEMPTS):
            if send(number, part):
                break
        number += 1  # a part that was never taken is passed over
    return number
