"""
Standard error: where promptkit says what nobody asked for, and where recipes print.

While serving, nobody may read there, or too slowly. So a thread of its own writes what is
printed: `redirect` puts streams into ``sys`` that never wait for a reader, and never raise.
"""

import atexit
import os
import sys
from contextlib import suppress
from io import BufferedIOBase, TextIOWrapper
from typing import Any, Final, TextIO

from promptkit.errors.background_writer import BackgroundWriter
from promptkit.errors.pending_output import Redact

__all__ = ["finish", "is_redirected", "redact_with", "redirect", "say", "stderr_stream"]

#: How long the end of a process that did not serve waits for a reader that takes nothing, in seconds.
_END_S: Final = 1.0


class _ByteStream(BufferedIOBase):
    """
    The ``buffer`` of a `_TextStream`.
    """

    mode = "wb"

    def __init__(self, writer: BackgroundWriter, name: str, descriptor: int) -> None:
        self.name = name
        self._writer = writer
        self._descriptor = descriptor

    @property
    def raw(self) -> Any:
        """
        Itself: it has no buffer that would have to be flushed.
        """
        return self

    def write(self, data: Any, /) -> int:
        """
        Have bytes written soon.
        """
        whole = bytes(memoryview(data))
        self._writer.write(self._descriptor, whole)
        return len(whole)

    def flush(self) -> None:
        """
        Wait a moment for what was written to be read.
        """
        self._writer.flush(self._descriptor)

    def close(self) -> None:
        """
        Close nothing: a process has one standard error, which is not its recipes' alone.
        """
        self.flush()

    def writable(self) -> bool:
        """
        Return whether it can be written to.
        """
        return True

    def fileno(self) -> int:
        """
        Return the descriptor, for children and C code. What they write is written at once.
        """
        return self._descriptor

    def isatty(self) -> bool:
        """
        Return whether it is a terminal.
        """
        return os.isatty(self._descriptor)


class _TextStream(TextIOWrapper):
    """
    A standard stream that always is UTF-8, can always be written to, and is never closed.
    """

    mode = "w"

    def __init__(self, stream: _ByteStream) -> None:
        super().__init__(stream, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._stream = stream

    def write(self, text: str, /) -> int:
        """
        Have text written soon. It shows once its line ends, or does not go on for a while.
        """
        self._stream.write(str.encode(text, "utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        """
        Wait a moment for what was written to be read.
        """
        self._stream.flush()

    def close(self) -> None:
        """
        Close nothing.
        """
        self._stream.flush()

    def detach(self) -> Any:
        """
        Return the stream of bytes below, and go on using it.
        """
        return self._stream

    def reconfigure(self, **_options: Any) -> None:
        """
        Change nothing: any other encoding would have characters that it cannot write.
        """


_writer: BackgroundWriter | None = None
_stream: TextIO | None = None


def redirect() -> None:
    """
    Have what is printed on standard output and standard error written by a thread of its own.

    Both end on standard error. What is written to the descriptors themselves, by C code or
    child processes, goes there at once, as before.
    """
    global _writer, _stream  # noqa: PLW0603 (a process has one standard error)
    _writer = BackgroundWriter()
    output = _TextStream(_ByteStream(_writer, "<stdout>", 1))
    _stream = _TextStream(_ByteStream(_writer, "<stderr>", 2))
    sys.stdout = sys.__stdout__ = output  # type: ignore[misc]
    sys.stderr = sys.__stderr__ = _stream  # type: ignore[misc]
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_writer.forget)
    atexit.register(_end)


def _end() -> None:
    """
    Write the rest at the end of a process that did not serve, and what comes later at once.
    """
    finish(_END_S)
    if _writer is not None:
        _writer.stop()


def is_redirected() -> bool:
    """
    Return whether `redirect` was called.
    """
    return _writer is not None


def stderr_stream() -> TextIO:
    """
    Return where promptkit prints: its own stream while serving, whatever recipes put in its place.

    Otherwise it is ``sys.stderr``, opened again if a recipe has closed or removed it.
    """
    if _stream is not None:
        return _stream
    stream: Any = getattr(sys, "stderr", None)
    if not callable(getattr(stream, "write", None)) or getattr(stream, "closed", False):
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 (a descriptor, which stays open)
    return sys.stderr


def redact_with(redact: Redact) -> None:
    """
    Have *redact* take secrets out of what is printed from now on.
    """
    if _writer is not None:
        _writer.pending.redact = redact


def finish(seconds: float) -> None:
    """
    Wait until what was printed is written.

    Args:
        seconds:
            How long to wait for a reader that takes nothing.
    """
    if _writer is not None:
        _writer.finish(seconds)


def say(text: str) -> None:
    """
    Print *text* on standard error, after the name of the program. It never raises.
    """
    with suppress(Exception):  # an author may have closed or replaced it, and nobody may be reading
        stream = stderr_stream()
        stream.write(f"promptkit: {text}\n")
        stream.flush()
