"""
Standard error: promptkit's own messages, and what recipes print.

A client may read it slowly, or not at all. So `redirect` replaces the streams in ``sys`` with
streams that never wait long for a reader, and never raise.
"""

import atexit
import os
import sys
from contextlib import suppress
from io import BufferedIOBase, TextIOWrapper
from typing import Any, Final, TextIO

from promptkit.errors.background_writer import BackgroundWriter
from promptkit.errors.interruptions import shielded
from promptkit.errors.pending_output import Redact

__all__ = ["finish", "is_redirected", "redact_with", "redirect", "resume", "say", "stderr_stream"]

#: How long the process waits at its end for a reader that reads nothing, in seconds.
_FLUSH_AT_EXIT_S: Final = 1.0


class _ByteStream(BufferedIOBase):
    """The ``buffer`` of a `_TextStream`."""

    mode = "wb"

    def __init__(self, writer: BackgroundWriter, name: str, descriptor: int) -> None:
        self.name = name
        self._writer = writer
        self._descriptor = descriptor

    @property
    def raw(self) -> Any:
        # There is no buffer between the two.
        return self

    def write(self, data: Any, /) -> int:
        whole = bytes(memoryview(data))
        shielded(self._writer.write, self._descriptor, whole)
        return len(whole)

    def flush(self) -> None:
        """Wait a moment until everything is read."""
        shielded(self._writer.flush, self._descriptor)

    def close(self) -> None:
        """Flush only: the server needs standard error, whichever recipe closes it."""
        self.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        """Return the descriptor, for child processes and C code, which write to it at once."""
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)


class _TextStream(TextIOWrapper):
    """A standard stream that is always UTF-8, always writable, and never closed."""

    mode = "w"

    def __init__(self, stream: _ByteStream) -> None:
        super().__init__(stream, encoding="utf-8", errors="backslashreplace", write_through=True)
        self._stream = stream

    def write(self, text: str, /) -> int:
        """Show *text* once its line ends, or does not go on for a while."""
        self._stream.write(str.encode(text, "utf-8", "backslashreplace"))
        return len(text)

    def flush(self) -> None:
        """Wait a moment until everything is read."""
        self._stream.flush()

    def close(self) -> None:
        """Flush only, as `_ByteStream.close`."""
        self._stream.flush()

    def detach(self) -> Any:
        """Return the byte stream; this one goes on using it."""
        return self._stream

    def reconfigure(self, **_options: Any) -> None:
        """Do nothing: any other encoding could not write every character."""


_writer: BackgroundWriter | None = None
_stream: TextIO | None = None


def redirect() -> None:
    """
    Send what is printed on standard output and standard error through a `BackgroundWriter`.

    Both end on standard error. C code and child processes write to the descriptors as before.
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


def resume() -> None:
    """
    In a forked child that goes on to serve: write in the background again, as after `redirect`.
    """
    if _writer is not None:
        _writer.resume()


def _end() -> None:
    finish(_FLUSH_AT_EXIT_S)
    if _writer is not None:
        _writer.stop()  # what finalizers print after this is written at once


def is_redirected() -> bool:
    """
    Return whether `redirect` was called.
    """
    return _writer is not None


def stderr_stream() -> TextIO:
    """
    Return promptkit's own stream while serving, even if a recipe has replaced ``sys.stderr``.

    Otherwise return ``sys.stderr``, opened again if a recipe has closed or removed it.
    """
    if _stream is not None:
        return _stream
    stream: Any = getattr(sys, "stderr", None)
    if not callable(getattr(stream, "write", None)) or getattr(stream, "closed", False):
        sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115 (a descriptor, which stays open)
    return sys.stderr


def redact_with(redact: Redact) -> None:
    """
    From now on, remove secrets by *redact* from what is printed.
    """
    if _writer is not None:
        _writer.pending.redact = redact


def finish(seconds: float) -> None:
    """
    Wait until everything is written; at most *seconds* for a reader that reads nothing.
    """
    if _writer is not None:
        _writer.finish(seconds)


def say(text: str) -> None:
    """
    Print *text* on standard error, after ``promptkit:``. It never raises.
    """
    with suppress(Exception):  # an author may have closed or replaced it, and nobody may be reading
        stream = stderr_stream()
        stream.write(f"promptkit: {text}\n")
        stream.flush()
