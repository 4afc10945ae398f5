"""
A command's own output, and the three standard streams while authors' code runs.

Standard output moves to a private descriptor before any recipe is imported. Whatever authors'
code prints from then on, from Python, from C, from a child process or from a thread that goes on,
ends up on standard error.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO, StringIO, UnsupportedOperation
from typing import Any, Final, TextIO

from promptkit.errors.standard_error import stderr_stream
from promptkit.fragments.invisible import escape_invisible

__all__ = ["Output", "OutputError", "own_output", "width_of"]

#: A terminal that is narrower wraps by itself.
_NARROWEST: Final = 20


class OutputError(Exception):
    """
    Standard output cannot be written to.

    Args:
        reason:
            Why, in the system's words.

        unread:
            Whether its reader has gone away, as ``head`` does.
    """

    def __init__(self, reason: str, *, unread: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.unread = unread


class Output(StringIO):
    """
    What a command says, kept until it is sent.

    Args:
        stream:
            A stream that takes text, or a private descriptor as a file.

        encoding:
            How text becomes bytes; what cannot be encoded is escaped.
    """

    def __init__(self, stream: TextIO | FileIO, encoding: str) -> None:
        super().__init__(newline=os.linesep if isinstance(stream, FileIO) else "\n")
        self._stream = stream
        self._encoding = encoding

    def isatty(self) -> bool:
        """
        Whether people read along.
        """
        return self._stream.isatty()

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a buffer in memory has none
        """
        How text becomes bytes.
        """
        return self._encoding

    @property
    def width(self) -> int | None:
        """
        How many columns a line may have; None where nobody has to see all of it at once.
        """
        return width_of(self._stream) if self.isatty() else None

    def print_content(self, text: str) -> None:
        """
        Print what a prompt says: on a terminal without what it would obey, else to the letter.
        """
        print(escape_invisible(text) if self.isatty() else text, file=self)

    def print_json(self, data: Any) -> None:
        """
        Print *data* as JSON, for machines. Invisible characters are escaped: it means the same.
        """
        import json
        import re

        whole = self._encoding.lower().replace("-", "").startswith("utf")
        text = json.dumps(data, indent=2, ensure_ascii=not whole)
        hidden = "[^\n -~]+"  # escape_invisible() decides which of these are
        print(re.sub(hidden, lambda found: _json_escaped(found[0]), text), file=self)

    def send(self) -> None:
        """
        Write what was printed until now.

        Raises:
            OutputError: If that is impossible.
        """
        data = self.getvalue().encode(self._encoding, "backslashreplace")
        self.seek(0)
        self.truncate()
        try:
            if isinstance(self._stream, FileIO):
                rest = memoryview(data)
                while rest:
                    rest = rest[self._stream.write(rest) or 0 :]
            else:
                self._stream.write(data.decode(self._encoding))
                self._stream.flush()
        except OSError as error:
            unread = isinstance(error, BrokenPipeError)
            raise OutputError(error.strerror or str(error), unread=unread) from None


def _json_escaped(text: str) -> str:
    """
    Return *text*, part of a JSON string, with JSON's own escapes for what cannot be seen.
    """
    if escape_invisible(text) == text:
        return text
    import json

    return "".join(c if escape_invisible(c) == c else json.dumps(c)[1:-1] for c in text)


def width_of(stream: TextIO | FileIO) -> int:
    """
    Return how many columns a terminal has; ``COLUMNS`` overrides it.
    """
    try:
        columns = int(os.environ.get("COLUMNS") or 0) or os.get_terminal_size(stream.fileno()).columns
    except (ValueError, OSError):  # it is no terminal after all, or COLUMNS is no number
        columns = 0
    return max(columns or 80, _NARROWEST)


@contextmanager
def own_output(*, restore: bool) -> Iterator[Output]:
    """
    Take standard output for a command, and send what it has said at the end.

    Args:
        restore:
            Whether standard output is to be as it was afterwards. A process that ends does not
            want that: what authors' code has left in buffers, in C's too, is written last of all.

    Raises:
        OutputError: If standard output cannot be written to.
    """
    _open_standard_descriptors()
    printed, private = sys.stdout, os.dup(1)
    if hasattr(os, "set_blocking"):  # else there is nothing that could have changed it
        os.set_blocking(private, True)
    with FileIO(private, "wb") as file:
        _flush(printed)
        os.dup2(2, 1)
        if _is_descriptor_1(printed):
            output = Output(file, getattr(printed, "encoding", "utf-8"))
            sys.stdout = _text_of(1)  # not standard error itself: a recipe may close it, and we write there
        else:  # something in this process captures it
            output = Output(printed, "utf-8")
            sys.stdout = sys.stderr
        try:
            yield output
            output.send()
        finally:
            _flush(getattr(sys, "stdout", None))
            if restore:
                _flush(printed)
                os.dup2(private, 1)
                sys.stdout = printed


def _open_standard_descriptors() -> None:
    """
    Open those of the three that are closed, so that no file that is opened later becomes one.
    """
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            # Standard output stays unwritable, which is told.
            null = os.open(os.devnull, os.O_WRONLY if descriptor == 2 else os.O_RDONLY)
            os.set_inheritable(null, True)  # noqa: FBT003 (it takes no keyword)
    stderr_stream()


def _text_of(descriptor: int) -> TextIO:
    return open(descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)


def _is_descriptor_1(stream: TextIO | None) -> bool:
    try:
        return stream is None or stream.fileno() == 1
    except (UnsupportedOperation, AttributeError, ValueError):
        return False


def _flush(stream: TextIO | None) -> None:
    with suppress(Exception):  # authors may have closed or replaced it
        if stream is not None:
            stream.flush()
