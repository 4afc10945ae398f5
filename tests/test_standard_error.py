import gc
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from io import TextIOWrapper

import pytest

from promptkit import standard_error
from promptkit.standard_error import BackgroundWriter
from tests.wire import initialize, line, notification, request

#: More bytes than the capacity of a pipe.
LARGE_SIZE = 300_000

OPENING = line(initialize("2025-06-18")) + line(notification("notifications/initialized"))

NOTE = re.compile(r"promptkit: ([\d,]+) bytes of standard error were dropped because the queue was full\n")

NOISY = """
import faulthandler, io, logging, os, sys, threading, traceback, warnings
from promptkit import prompt

@prompt
def failing():
    raise ValueError("x" * 4000)

@prompt
def printing():
    for number in range(3000):
        print(number, "x" * 90, flush=True)
    return "printed"

@prompt
def logging_():
    logging.basicConfig()
    for number in range(3000):
        logging.error("x" * 90)
    return "logged"

@prompt
def on_a_thread():
    thread = threading.Thread(target=lambda: sys.stderr.write("x" * 300_000 + "\\n"))
    thread.start()
    thread.join()
    return "joined"

@prompt
def in_bytes():
    sys.stdout.buffer.write(b"x" * 300_000 + b"\\n")
    sys.stderr.buffer.flush()
    return "written"

@prompt
def unfinished():
    sys.stderr.write("no end")
    return "unfinished"

@prompt
def warned():
    warnings.warn("x" * 300_000)
    traceback.print_stack()
    return "warned"

@prompt
def wrapped():
    stream = io.TextIOWrapper(sys.stderr.buffer, write_through=True)
    stream.write("wrapped\\n")
    del stream
    sys.stderr.close()
    print("closed", file=sys.stderr)
    sys.__stderr__.write("the first one\\n")
    return "wrapped"

@prompt
def dumping():
    faulthandler.enable()
    faulthandler.dump_traceback(all_threads=False)  # of all, Python 3.14 ends at one that is just starting
    return f"{sys.stderr.fileno()} {sys.stderr.isatty()} {sys.stderr.encoding} {sys.stderr.errors}"

@prompt
def replaced():
    sys.stderr = sys.stdout = None
    print("nowhere")
    return "replaced"
"""


FLUSHING = """
import os, subprocess
from promptkit import prompt

@prompt
def exiting():
    print("last words", flush=True)
    os._exit(3)

@prompt
def in_order():
    for number in range(5):
        print(number, "python", flush=True)
        os.write(2, f"{number} c\\n".encode())
        subprocess.run(["echo", f"{number} child"])
"""

BROKEN = "from promptkit import prompt\n" + "\n".join(
    f"@prompt\ndef broken{n}(a{n}): return 1" for n in range(1000)
)


def get(number, name):
    return request(number, "prompts/get", {"name": name})


@contextmanager
def serving(folder, stderr, *options):
    """Run `promptkit serve` with the given standard error, and yield the process with its other pipes."""
    process = subprocess.Popen(
        [sys.executable, "-m", "promptkit", "serve", str(folder), *options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=stderr,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        for end in filter(None, (process.stdin, process.stdout, process.stderr)):
            with suppress(BrokenPipeError):
                end.close()


def ask(process, *messages):
    """Send messages, and return the replies by id."""
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()
    replies = [json.loads(process.stdout.readline()) for message in messages if "id" in message]
    return {reply["id"]: reply for reply in replies}


def text(reply):
    return reply["result"]["messages"][0]["content"]["text"]


def read_all(descriptor):
    """Read a pipe until its last writer has closed it."""
    with open(descriptor, "rb") as pipe:
        return pipe.read().decode()


def run_redirected(program):
    """Run a program with its output redirected by `redirect`, and return its output."""
    head = "import sys\nfrom promptkit import standard_error\nstandard_error.redirect()\n"
    result = subprocess.run(
        [sys.executable, "-c", head + program], capture_output=True, timeout=60, check=False
    )
    return (result.stdout + result.stderr).decode()  # without a server, standard output is not redirected


@pytest.fixture
def pipe():
    """A pipe: the read end and the write end."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):  # a test has closed it
            os.close(end)


class TestNoReader:
    """Standard error is a pipe that is not read while the server runs."""

    @pytest.mark.parametrize("signal_", [None, signal.SIGTERM])
    def test_requests_are_answered(self, recipes, pipe, signal_):
        """
        Requests are answered even if their prompts fail, or print (by any means) more than a pipe holds.

        The process exits at the end of its input, and on a signal.
        """
        replies = {
            "printing": "printed",
            "logging_": "logged",
            "on_a_thread": "joined",
            "in_bytes": "written",
            "warned": "warned",
        }
        names = [*replies] * 2
        # On a busy machine, all requests may run at the same time.
        with serving(recipes(recipe=NOISY), pipe[1], "--max-renders=200") as process:
            ask(process, initialize("2025-06-18"))
            failing = ask(process, *(get(number, "failing") for number in range(1, 100)))
            requests = [get(number, name) for number, name in enumerate(names)]
            printing = ask(process, *requests, request(99, "ping"))
            if signal_ is None:
                process.stdin.close()
            else:
                process.send_signal(signal_)

            assert process.wait(timeout=50) == 0
        assert all("failed (error" in reply["error"]["message"] for reply in failing.values())
        assert [text(printing[number]) for number in range(len(names))] == [replies[name] for name in names]

    def test_output_at_the_start_does_not_block(self, recipes, pipe):
        """
        The server starts even if nothing reads its thousands of diagnostics and the output of its recipes.
        """
        noise = f"import sys\nprint('x' * {LARGE_SIZE})\nsys.stderr.write('y' * {LARGE_SIZE})\n"
        with serving(recipes(recipe=f"{noise}{NOISY}", broken=BROKEN), pipe[1]) as process:
            replies = ask(process, initialize("2025-06-18"), get(1, "unfinished"))

        assert text(replies[1]) == "unfinished"

    def test_strict_start_exits(self, recipes, pipe):
        """A strict start exits with 1 even if its diagnostics are not read."""
        with serving(recipes(broken=BROKEN), pipe[1], "--strict") as process:
            assert process.wait(timeout=30) == 1


class TestKindsOfStandardError:
    def test_reader_gets_all_output(self, recipes, tmp_path):
        """Nothing is dropped if standard error is a file, which always keeps up."""
        file = tmp_path / "log"
        with file.open("wb") as log, serving(recipes(recipe=NOISY), log) as process:
            ask(process, initialize("2025-06-18"), *(get(number, "printing") for number in range(1, 4)))
            process.stdin.close()
            process.wait(timeout=50)

        lines = sorted(file.read_text().splitlines())  # slow prompts run in parallel
        assert lines == sorted([f"{number} {'x' * 90}" for number in range(3000)] * 3)

    @pytest.mark.parametrize("kind", ["full", "socket", "terminal", "no reader", "read only"])
    def test_writing_never_fails(self, kind):
        """Whatever standard error is, writing to it neither fails nor blocks."""
        with error_stream(kind) as stderr:
            writer = BackgroundWriter(stderr)
            for _ in range(100):
                writer.write(b"x" * 99 + b"\n")
            writer.flush()
            writer.write(b"no end")
            writer.finish(0.1)

        assert writer.redact is None

    def test_closed_standard_error(self, recipes):
        """Prompts that print and fail are answered if descriptor 2 is closed."""
        names = ["failing", "printing", "logging_", "in_bytes", "warned", "wrapped", "unfinished"]
        requests = b"".join(line(get(number, name)) for number, name in enumerate(names, 1))
        folder = recipes(recipe=NOISY)

        result = subprocess.run(
            ["/bin/sh", "-c", f'exec "{sys.executable}" -m promptkit serve --grace 20 "{folder}" 2>&-'],
            input=OPENING + requests,
            capture_output=True,
            timeout=30,
            check=False,
        )

        assert sorted(json.loads(reply)["id"] for reply in result.stdout.splitlines()) == [
            *range(len(names) + 1)
        ]

    def test_recipes_can_close_and_replace_streams(self, recipes, tmp_path):
        """Recipes can close, wrap and replace the streams, query their properties, and dump tracebacks."""
        file = tmp_path / "log"
        names = ["wrapped", "dumping", "unfinished", "replaced", "failing"]
        with file.open("wb") as log, serving(recipes(recipe=NOISY), log) as process:
            ask(process, initialize("2025-06-18"))
            replies = {}
            for number, name in enumerate(names, 1):  # one after the other
                replies |= ask(process, get(number, name))
            process.stdin.close()
            process.wait(timeout=50)

        logged = file.read_text()
        assert text(replies[2]) == "2 False utf-8 backslashreplace"
        expected = ["wrapped\n", "closed\n", "the first one\n", "no end", "Stack (most recent call first)"]
        assert [logged.count(part) for part in expected] == [1] * len(expected)
        assert "\nValueError: xxx" in logged

    def test_failing_start_prints_all_diagnostics(self, recipes):
        """A strict start prints all diagnostics to a slow reader before it exits."""
        with serving(recipes(broken=BROKEN), subprocess.PIPE, "--strict") as process:
            first = process.stderr.readline()
            time.sleep(0.3)  # a slow reader
            printed = first + process.stderr.read()

            assert process.wait(timeout=50) == 1
        assert printed.count(b"error PK301") == 1000


class TestFlush:
    """A flush waits until the text is written, but not long for a reader that does not read."""

    @pytest.mark.parametrize("kind", ["pipe", "terminal"])
    def test_flush_before_a_hard_exit(self, recipes, kind):
        """Text flushed before a hard exit is written."""
        reading, writing = ends_of(kind)
        with serving(recipes(recipe=FLUSHING), writing) as process:
            os.close(writing)
            process.stdin.write(OPENING + line(get(1, "exiting")))
            process.stdin.flush()
            process.wait(timeout=50)

        assert b"last words" in os.read(reading, 99)
        os.close(reading)

    def test_flushed_text_keeps_its_order(self, recipes, pipe):
        """Flushed text precedes the later output of child processes and C code."""
        reading, writing = pipe
        with serving(recipes(recipe=FLUSHING), writing) as process:
            os.close(writing)
            ask(process, initialize("2025-06-18"), get(1, "in_order"))
            process.stdin.close()
            process.wait(timeout=50)

        expected = [f"{number} {writer}" for number in range(5) for writer in ("python", "c", "child")]
        assert os.read(reading, 999).decode().splitlines() == expected

    def test_thread_waits_once(self, pipe):
        """
        A thread that flushes a thousand times, or fills the queue, waits for the reader only once.

        A reader that starts late gets the number of dropped bytes.
        """
        writer, start, results = BackgroundWriter(pipe[1]), time.monotonic(), []
        writer.write(b"x" * LARGE_SIZE + b"\n")
        for _ in range(1000):
            writer.write(b"x\n")
            writer.flush()
        for _ in range(3):
            writer.write(b"x" * 499_999 + b"\n")  # more than the queue holds
        took = time.monotonic() - start
        reader = threading.Thread(target=lambda: results.append(read_all(pipe[0])))
        reader.start()
        writer.finish(20)
        os.close(pipe[1])
        reader.join(20)

        assert took < 10
        dropped = [int(count.replace(",", "")) for count in NOTE.findall(results[0])]
        assert dropped
        # A note begins with a line end.
        total = LARGE_SIZE + 1 + 2000 + 3 * 500_000
        assert sum(dropped) + len(NOTE.sub("", results[0])) - len(dropped) == total


def ends_of(kind):
    """Return the read end and the write end of a new stream of the given kind."""
    if kind == "socket":
        return tuple(end.detach() for end in socket.socketpair())
    return os.openpty() if kind == "terminal" else os.pipe()


@contextmanager
def error_stream(kind):
    """Yield a descriptor for standard error of the given kind."""
    descriptors = []
    if kind == "full":
        stream = os.open("/dev/full", os.O_WRONLY)
    elif kind == "read only":
        stream = os.open(os.devnull, os.O_RDONLY)
    elif kind == "no reader":
        read_end, stream = os.pipe()
        os.close(read_end)
    else:
        read_end, stream = ends_of(kind)
        descriptors.append(read_end)
    try:
        yield stream
    finally:
        for descriptor in (stream, *descriptors):
            os.close(descriptor)


class TestBackgroundWriter:
    @pytest.fixture
    def writer(self, pipe):
        """A writer with an empty queue, which writes to a pipe."""
        return BackgroundWriter(pipe[1])

    def read(self, pipe, writer):
        """Return all output, once it has been written."""
        writer.finish(20)
        os.close(pipe[1])
        return read_all(pipe[0])

    def test_lines_of_threads_stay_whole(self, pipe, writer):
        """Lines that threads write in pieces stay whole and in order, and secrets in them are redacted."""
        writer.redact = lambda text: text.replace("swordfish", "<secret>")

        def write(name):
            for number in range(200):
                for piece in (f"{name} {number} sw", "ord", "fish", "\n"):
                    writer.write(piece.encode())

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        lines = self.read(pipe, writer).splitlines()
        for name in "abcd":
            expected = [f"{name} {number} <secret>" for number in range(200)]
            assert [text for text in lines if text.startswith(name)] == expected
        assert len(lines) == 800

    def test_unfinished_line(self, pipe, writer):
        """An unfinished line is written after a short delay."""
        writer.write(b"sure? ")

        assert os.read(pipe[0], 99) == b"sure? "

    def test_flush_writes_an_unfinished_line(self, pipe, writer):
        """A flush writes an unfinished line."""
        writer.write(b"1%")
        writer.flush()
        writer.write(b"\r2%")

        assert self.read(pipe, writer) == "1%\r2%"

    def test_progress_with_redaction(self, pipe, writer):
        """
        With redaction, an unfinished line such as a progress bar is written after a delay, but not by a
        flush.
        """
        writer.redact = str
        for piece in (b"\r1%", b"\r2%"):
            writer.write(piece)
            writer.flush()

        assert os.read(pipe[0], 99) == b"\r1%\r2%"

    def test_stamps(self, pipe, writer):
        """Each line starts with the time of its end; an empty line stays empty."""
        writer.has_timestamps = True
        before = datetime.now(UTC)
        for piece in (b"one\n\ntwo\n", b"thr", b"ee\n", b"10 %\r"):
            writer.write(piece)
        lines = self.read(pipe, writer).splitlines()

        stamps, texts = zip(*(line.split(" ", 1) for line in lines if line), strict=True)
        assert (texts, lines[1]) == (("one", "two", "three", "10 %"), "")
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp) for stamp in stamps)
        assert all(abs(datetime.fromisoformat(stamp) - before) < timedelta(seconds=20) for stamp in stamps)

    def test_finalizer_that_prints(self, pipe, writer):
        """A finalizer that interrupts a write can itself write."""

        class Last:
            def __del__(self):
                writer.write(b"last\n")

        for _ in range(2000):
            cycle = Last()
            cycle.itself = cycle
            writer.write(b"x\n")
            del cycle
        gc.collect()

        assert sorted(self.read(pipe, writer).split()) == sorted(["last", "x"] * 2000)

    def test_memory_error_on_the_writing_thread(self, pipe, writer, monkeypatch):
        """After a MemoryError on the writing thread, later text is still written."""

        def redact(text):
            if text == "lost":
                raise MemoryError
            return text

        reported = threading.Event()
        monkeypatch.setattr(sys, "unraisablehook", lambda _: reported.set())
        writer.redact = redact
        writer.write(b"lost")
        assert reported.wait(20)  # once it stops waiting for the end of the line
        writer.write(b"later\n")

        assert self.read(pipe, writer) == "later\n"

    def test_thread_cannot_be_started(self, pipe, writer, monkeypatch):
        """If no thread can be started, the next write tries again."""

        def refuse(*_):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(standard_error._thread, "start_new_thread", refuse)
            writer.write(b"one\n")
        writer.write(b"two\n")

        assert self.read(pipe, writer) == "one\ntwo\n"

    @pytest.mark.parametrize("blocks", [True, False])
    def test_line_longer_than_the_queue(self, pipe, writer, blocks):
        """A line longer than the queue reaches a reader that keeps up, even through a non-blocking pipe."""
        os.set_blocking(pipe[1], blocks)
        results = []
        reader = threading.Thread(target=lambda: results.append(read_all(pipe[0])))
        reader.start()
        writer.write(b"x" * 2_000_000 + b"\n")
        writer.finish(20)
        os.close(pipe[1])
        reader.join(20)

        assert results == ["x" * 2_000_000 + "\n"]


class TestRedirectedStreams:
    def test_signal_handler_that_prints(self):
        """A signal handler that interrupts a write can print."""
        printed = run_redirected(
            "import signal\n"
            "def handle(*_):\n"
            "    print('handled')\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.001)\n"  # never during a handler
            "signal.signal(signal.SIGALRM, handle)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.001)\n"
            "for _ in range(5000): print('line')\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        )

        # `print` writes a line and its end separately, so a handler can come between them.
        assert printed.count("line") == 5000
        assert "handled" in printed

    def test_forked_processes_that_print(self):
        """A process forked while another thread prints can print."""
        printed = run_redirected(
            "import os, threading\n"
            "is_over = threading.Event()\n"
            "def write():\n"
            "    while not is_over.wait(0.0001): print('parent')\n"
            "thread = threading.Thread(target=write)\n"
            "thread.start()\n"
            "for _ in range(50):\n"
            "    pid = os.fork()\n"
            "    if pid == 0:\n"
            "        print('child')\n"
            "        standard_error.finish(20)\n"
            "        os._exit(0)\n"
            "    os.waitpid(pid, 0)\n"
            "is_over.set()\n"
            "thread.join()\n"
        )

        assert printed.count("child\n") == 50  # Python 3.14 warns of "the child"

    def test_text_that_cannot_be_encoded(self):
        """Characters that cannot be encoded are written without an error."""
        printed = run_redirected(
            "import io\n"
            "print('\\ud800 ü', file=sys.stderr)\n"
            "sys.stderr.writelines(['a', 'b\\n'])\n"
            "assert isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr.writable()\n"
            "assert not (sys.stderr.closed or sys.stderr.readable() or sys.stderr.seekable())\n"
        )

        assert printed == "\\ud800 ü\nab\n"

    def test_output_at_exit(self):
        """Unfinished lines, the traceback of an exception, and the output of exit handlers are written."""
        printed = run_redirected(
            "import atexit\n"
            "atexit.register(print, 'at exit', file=sys.stderr)\n"
            "sys.stderr.write('no end ')\n"
            "raise ValueError('reason')\n"
        )

        assert printed.startswith("no end Traceback")
        assert printed.endswith("\nValueError: reason\nat exit\n")


def test_say_without_a_stream(monkeypatch):
    """`say` drops its message if the stream is missing, closed, or invalid."""
    closed = TextIOWrapper(open(os.devnull, "wb"))  # noqa: SIM115
    closed.close()
    for stream in (None, closed, object()):
        monkeypatch.setattr(sys, "stderr", stream)
        standard_error.say("nothing")
