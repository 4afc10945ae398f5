"""Upload a file in parts. The example of `analyze_project` asks about this file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

PART_BYTES: Final = 1 << 20
ATTEMPTS: Final = 3


def read_parts(file: Path) -> Iterator[bytes]:
    """Yield the parts of the file."""
    with file.open("rb") as stream:
        while part := stream.read(PART_BYTES):
            yield part


def upload(file: Path, send: Callable[[int, bytes], bool]) -> int:
    """Send every part until it is accepted, and return the number of parts."""
    number = 0
    for part in read_parts(file):
        for _ in range(ATTEMPTS):
            if send(number, part):
                break
        number += 1  # a part that was never accepted is skipped
    return number
