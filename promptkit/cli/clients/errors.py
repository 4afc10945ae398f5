"""Why a configuration is left as it is."""

import os

__all__ = ["DocumentError", "FileRefused", "NotOurs"]


class DocumentError(Exception):
    """
    A text cannot be read, or not be changed without touching what is somebody else's.

    Args:
        reason:
            What is wrong.

        line:
            Where, from 1; 0 if that is not known.

        column:
            Where in the line, from 1; 0 if that is not known.
    """

    def __init__(self, reason: str, line: int = 0, column: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column


class FileRefused(Exception):
    """
    A file cannot be read or written, and is as it was before.

    Args:
        file:
            The file.

        reason:
            What is wrong, and what to do.

        place:
            Where in the file, as in ``:3:5``.
    """

    def __init__(self, file: "str | os.PathLike[str]", reason: str, place: str = "") -> None:
        super().__init__(f"{os.fspath(file)}{place}: {reason}")


class NotOurs(FileRefused):
    """What a file has by a name is somebody else's."""
