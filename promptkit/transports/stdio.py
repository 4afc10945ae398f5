"""
The stdio transport: one JSON message a line, and nothing else on the wire.

`redirect_stdio` must be called before any recipe is imported: it moves the wire to private
descriptors, so that no ``print``, C extension or child process can touch it.

See https://modelcontextprotocol.io/specification/2025-11-25/basic/transports#stdio.
"""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import chain, count, repeat
from types import FrameType
from typing import TYPE_CHECKING, Final, NoReturn

from promptkit.errors.standard_error import finish, redirect, say

if TYPE_CHECKING:
    from promptkit.server import Server
    from promptkit.transports.startup_cache.early import EarlyServer

__all__ = ["GRACE", "Wire", "exit_after", "exit_now", "redirect_stdio", "serve"]

#: How long running prompts are waited for at the end, in seconds.
GRACE: Final = 1.0

#: What one read takes at most; a pipe holds no more.
_CHUNK: Final = 65536

#: How often to look whether the parent is still there, in seconds.
_ROUND: Final = 1.0

#: How long it may take to write what is left, in seconds, once prompts are waited for no more.
_LEEWAY: Final = 0.3

#: How much later the kernel ends the process if it has not ended by then, in seconds: a busy machine lets
#: a thread wait for long, and a signal instead of an exit code would tell of a crash.
_LAST_RESORT: Final = 2.0

_ENDING_SIGNALS: Final = [name for name in ("SIGTERM", "SIGINT", "SIGHUP") if hasattr(signal, name)]


class Wire:
    """
    The two private descriptors between the client and the server.

    Args:
        reading:
            Where the client's bytes arrive.

        writing:
            Where the replies go.

    Attributes:
        gone:
            Whether the client no longer reads.

        over:
            Set when there is nothing more to do: the client has hung up, or the process was
            told to end.
    """

    def __init__(self, reading: int, writing: int) -> None:
        self.reading = reading
        self.writing = writing
        self.gone = False
        self.over = threading.Event()
        self._lock = threading.Lock()
        self._parent = os.getppid()

    @property
    def is_orphaned(self) -> bool:
        """
        Whether the process that started this one is gone.
        """
        return os.getppid() != self._parent

    def read(self) -> bytes:
        """
        Return what has arrived, waiting for the first byte; ``b""`` at the end.
        """
        try:
            return os.read(self.reading, _CHUNK)
        except OSError:  # the client's end broke, or a terminal hung up
            return b""

    def write(self, data: bytes) -> None:
        """
        Write *data* whole; drop it if the client is gone.
        """
        with self._lock:
            rest = memoryview(data)
            while rest and not self.gone:
                try:
                    rest = rest[os.write(self.writing, rest) :]
                except OSError:
                    self.gone = True
                    self.over.set()

    def end(self) -> None:
        """
        Read nothing more, as if the client had hung up.
        """
        _silence(self.reading, os.O_RDONLY, inheritable=False)
        self.over.set()

    def forget(self) -> None:
        """
        Give the wire up in a child process, which shares it and must neither read nor write.
        """
        self.gone = True
        _silence(self.reading, os.O_RDONLY, inheritable=False)
        _silence(self.writing, os.O_WRONLY, inheritable=False)
        for name in _ENDING_SIGNALS:
            signal.signal(getattr(signal, name), signal.SIG_DFL)


def _silence(descriptor: int, flags: int, *, inheritable: bool) -> None:
    """
    Point *descriptor* at the null device.
    """
    null = os.open(os.devnull, flags)
    if null == descriptor:  # it was free
        os.set_inheritable(null, inheritable)
    else:
        os.dup2(null, descriptor, inheritable=inheritable)
        os.close(null)


def redirect_stdio(grace: float = GRACE) -> Wire:
    """
    Move the wire to private descriptors that no child process inherits.

    Standard input becomes the null device, and standard output becomes standard error. The
    signals that end a process end the wire from now on.

    Args:
        grace:
            How long the process may go on after such a signal, in seconds.

    Raises:
        OSError: If standard input or output is closed.
    """
    if sys.stderr is None:  # started without: descriptor 2 is free, and must not become the wire
        _silence(2, os.O_WRONLY, inheritable=True)
        sys.stderr = os.fdopen(2, "w", closefd=False)
    for descriptor in (0, 1):
        os.fstat(descriptor)  # a closed one must not be mistaken for the duplicate of another
    wire = Wire(os.dup(0), os.dup(1))
    for descriptor in (wire.reading, wire.writing):
        os.set_blocking(descriptor, True)
    sys.stdout.flush()  # what was printed until now was meant for whoever reads it
    _silence(0, os.O_RDONLY, inheritable=True)
    os.dup2(2, 1)
    redirect()
    _end_on_signals(wire, grace)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=wire.forget)
    return wire


def serve(
    server: "Server",
    wire: Wire,
    *,
    grace: float = GRACE,
    answered: Callable[[], None] = lambda: None,
    early: "EarlyServer | None" = None,
) -> bool:
    """
    Answer one client until it hangs up, or until the process is told to end.

    Args:
        server:
            What answers; it sends with the wire's `write`.

        wire:
            What `redirect_stdio` returned.

        grace:
            How long running prompts are waited for at the end, in seconds.

        answered:
            Called once, when what arrived first is answered.

        early:
            What has read and answered until now, if anything has.

    Returns:
        Whether everything was read that there was to read.
    """
    reads = count(0 if early is None else 1)
    sources = chain(() if early is None else (early.read_rest,), repeat(wire.read))

    def read() -> bytes:
        if next(reads) == 1:  # what was read first is answered
            answered()
        return next(sources)()

    started = threading.Event()

    def start() -> None:
        try:
            server.read_from(read, wire.over.set, early.hand_over() if early else (), owns_process=True)
        except RuntimeError as error:  # there can be no more threads
            say(f"nothing can be read: {error}")
        finally:
            started.set()

    # On this thread an author's signal handler may raise between any two steps, so another takes them.
    _on_a_thread(start)
    _wait_until(started.wait, wire)
    _wait_until(lambda: wire.over.wait(_ROUND) or not server.reads or wire.is_orphaned, wire)
    served = wire.over.is_set() or server.reads
    exit_after(grace, 0 if served else 1)
    server.close(0 if wire.gone else grace)
    return served


def _on_a_thread(work: Callable[[], None]) -> None:
    """
    Do some work on a thread, or on this one if there can be no more.
    """
    try:
        _thread.start_new_thread(work, ())
    except RuntimeError:
        work()


def _wait_until(holds: Callable[[], bool], wire: Wire) -> None:
    """
    Ask, again and again, whether something *holds*.

    Authors' signal handlers run here: one that fails ends nothing, and one that exits ends the wire.
    """
    while True:
        try:
            while not holds():
                pass
        except (SystemExit, KeyboardInterrupt):
            wire.end()
        except Exception:  # noqa: BLE001 (authors raise anything)
            import traceback  # hardly ever needed

            say(f"a signal handler failed:\n{traceback.format_exc().rstrip()}")
        else:
            return


def exit_after(grace: float, code: int = 0) -> None:
    """
    End the process in any case: neither a prompt nor a client that does not read can hold it.

    Args:
        grace:
            How long it may go on, in seconds, besides what it takes to write what is left.

        code:
            The exit code.
    """
    seconds = grace + _LEEWAY
    timer = threading.Timer(seconds, _exit, (code,))
    timer.daemon = True
    with suppress(RuntimeError):  # there can be no more threads
        timer.start()
    _end_by_kernel(seconds + _LAST_RESORT)


def _end_by_kernel(seconds: float) -> None:
    """
    Have the kernel end the process if no Python code can: unless an author uses that timer.
    """
    if not hasattr(signal, "ITIMER_REAL") or signal.getsignal(signal.SIGALRM) is not signal.SIG_DFL:
        return
    with suppress(OverflowError, OSError):  # a grace without end
        if signal.getitimer(signal.ITIMER_REAL) == (0.0, 0.0):
            signal.setitimer(signal.ITIMER_REAL, seconds)


def exit_now() -> NoReturn:
    """
    End the process, threads that prompts have left behind too.

    What was printed is written before, unless nobody reads it.
    """
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # an author may have closed or replaced it
            stream.flush()
    _exit()


def _exit(code: int = 0) -> NoReturn:
    """
    End the process without calling anything that an author has written.
    """
    finish(_LEEWAY)
    os._exit(code)


def _end_on_signals(wire: Wire, grace: float) -> None:
    """
    Let the signals that end a process end the wire instead.
    """

    def end(_number: int, _frame: FrameType | None) -> None:
        # First of all: a recipe may be being imported and not come back, and the thread that was
        # interrupted may be just about to look at what `end` sets.
        exit_after(grace)
        wire.end()

    for name in _ENDING_SIGNALS:
        signal.signal(getattr(signal, name), end)
