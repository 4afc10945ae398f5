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

from promptkit.errors import standard_error
from promptkit.errors.standard_error import BackgroundWriter
from tests.wire import initialize, line, request

#: More than a pipe holds.
MUCH = 300_000

OPENING = line(initialize("2025-06-18")) + line({"jsonrpc": "2.0", "method": "notifications/initialized"})

NOISY = """
import faulthandler, io, logging, os, subprocess, sys, threading, traceback, warnings
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
    return "begun"

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
def crashing():
    faulthandler.enable()
    faulthandler.dump_traceback(all_threads=False)  # of all, Python 3.14 ends at one that is just starting
    return f"{sys.stderr.fileno()} {sys.stderr.isatty()} {sys.stderr.encoding} {sys.stderr.errors}"

@prompt
def replaced():
    sys.stderr = sys.stdout = None
    print("nowhere")
    return "replaced"
"""


ENDING = """
import os, subprocess, tempfile
from promptkit import prompt

@prompt
def killed():
    print("last words")
    os.kill(os.getpid(), 9)

@prompt
def left():
    print("last words")
    os._exit(3)

@prompt(timeout=0.06)
def endless():
    while True:
        print("endless")

@prompt
def in_order():
    for number in range(5):
        print(number, "python")
        os.write(2, f"{number} c\\n".encode())
        subprocess.run(["echo", f"{number} child"])

@prompt
def caught():
    with tempfile.TemporaryFile() as file:
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        print("printed")
        subprocess.run(["echo", "by a child"])
        os.dup2(before, 1)
        file.seek(0)
        return file.read().decode()
"""


def get(number, name):
    return request(number, "prompts/get", {"name": name})


@contextmanager
def serving(folder, stderr, *options):
    """`promptkit serve`, with a client that reads replies, and an error stream of any kind."""
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
    """The replies to messages, by their ids."""
    process.stdin.write(b"".join(map(line, messages)))
    process.stdin.flush()
    replies = [json.loads(process.stdout.readline()) for message in messages if "id" in message]
    return {reply["id"]: reply for reply in replies}


def ends_of(kind, path):
    """The two ends of a stream of any kind: the one that is read, and the one that is written."""
    if kind == "file":
        writing = os.open(path, os.O_CREAT | os.O_WRONLY)
        return os.open(path, os.O_RDONLY), writing
    if kind == "socket":
        return tuple(end.detach() for end in socket.socketpair())
    return os.openpty() if kind == "terminal" else os.pipe()


def text(reply):
    return reply["result"]["messages"][0]["content"]["text"]


def drained(descriptor):
    """Everything that is in a pipe until its last writer is gone."""
    with open(descriptor, "rb") as pipe:
        return pipe.read().decode()


@pytest.fixture
def pipe():
    """A pipe: the end that is read, and the end that is written."""
    ends = os.pipe()
    yield ends
    for end in ends:
        with suppress(OSError):  # a test has closed it
            os.close(end)


class TestNobodyReads:
    """Each process gets a pipe that is never read, or not before it has ended."""

    @pytest.fixture
    def process(self, recipes, pipe):
        """A server whose standard error is not read, and whose client has initialized."""
        # On a busy machine, all that a test asks may run at once.
        with serving(recipes(recipe=NOISY), pipe[1], "--max-renders=200") as process:
            ask(process, initialize("2025-06-18"))
            yield process

    def test_prompts_that_fail(self, process):
        """
        However many prompts fail, each is answered, and so is everything else.
        """
        replies = ask(process, *(get(number, "failing") for number in range(1, 200)), request(200, "ping"))

        assert {number for number, reply in replies.items() if "error" in reply} == {*range(1, 200)}
        assert {reply["error"]["code"] for reply in replies.values() if "error" in reply} == {-32603}
        assert all("failed (error" in replies[number]["error"]["message"] for number in range(1, 200))

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("printing", "printed"),
            ("logging_", "logged"),
            ("on_a_thread", "joined"),
            ("in_bytes", "written"),
            ("warned", "warned"),
        ],
    )
    def test_whatever_prints(self, process, name, said):
        """
        More than a pipe holds may be printed again and again, in any way.
        """
        replies = ask(process, *(get(number, name) for number in range(1, 12)))

        assert {text(reply) for reply in replies.values()} == {said}

    @pytest.mark.parametrize("signal_", [None, signal.SIGTERM])
    def test_the_end(self, process, signal_):
        """
        The process ends all the same, at the end of input and by a signal.
        """
        ask(process, get(1, "in_bytes"))

        if signal_ is None:
            process.stdin.close()
        else:
            process.send_signal(signal_)

        assert process.wait(timeout=50) == 0

    def test_complaints_at_the_start(self, recipes, pipe):
        """
        However much is wrong with the recipes, the rest is served.
        """
        broken = "\n".join(f"@prompt\ndef broken{n}(a{n}): return 1" for n in range(2000))

        with serving(
            recipes(recipe=NOISY, broken=f"from promptkit import prompt\n{broken}\n"), pipe[1]
        ) as process:
            replies = ask(process, initialize("2025-06-18"), get(1, "unfinished"))

        assert text(replies[1]) == "begun"

    def test_printing_at_import(self, recipes, pipe):
        """
        A recipe that prints much while it is imported is served.
        """
        source = f"import sys\nprint('x' * {MUCH})\nsys.stderr.write('y' * {MUCH})\n{NOISY}"

        with serving(recipes(recipe=source), pipe[1]) as process:
            replies = ask(process, initialize("2025-06-18"), get(1, "unfinished"))

        assert text(replies[1]) == "begun"

    def test_what_was_dropped_is_counted(self, recipes, pipe):
        """
        Once the pipe is read again, it gets what was printed since, and a count of what was dropped.
        """
        reading, writing = pipe
        with serving(recipes(recipe=NOISY), writing) as process:
            ask(process, initialize("2025-06-18"), *(get(number, "printing") for number in range(1, 9)))
            os.close(writing)
            shown = []
            reader = threading.Thread(target=lambda: shown.append(drained(reading)))
            reader.start()
            ask(process, *(get(number, "unfinished") for number in range(9, 12)))
            process.stdin.close()
            assert process.wait(timeout=50) == 0
            reader.join(timeout=50)

        (found,) = shown
        notes = [each for each in found.splitlines() if each.startswith("promptkit: ")]
        assert notes
        assert all(
            each.endswith(" bytes of standard error were dropped, as nobody reads it") for each in notes
        )
        dropped = sum(int(note.split()[1].replace(",", "")) for note in notes)
        shown_whole = len(found) - sum(len(note) + 1 for note in notes)
        printed = 8 * sum(len(f"{number} {'x' * 90}\n") for number in range(3000)) + 3 * len("no end")
        # A note begins a line of its own, for which a line without an end is ended.
        assert 0 <= dropped + shown_whole - printed <= len(notes)


class TestAnyKindOfStandardError:
    def test_a_reader_that_reads(self, recipes, tmp_path):
        """
        What is printed arrives whole, with nothing dropped; into a file however fast it comes.
        """
        file = tmp_path / "log"
        with file.open("wb") as log, serving(recipes(recipe=NOISY), log) as process:
            ask(process, initialize("2025-06-18"), *(get(number, "printing") for number in range(1, 9)))
            process.stdin.close()
            process.wait(timeout=50)

        # Prompts that take their time run beside each other.
        lines = sorted(file.read_text().splitlines())
        assert lines == sorted([f"{number} {'x' * 90}" for number in range(3000)] * 8)

    @pytest.mark.parametrize("kind", ["full", "socket", "terminal", "no reader", "read only"])
    def test_it_serves(self, recipes, kind):
        """
        Whatever standard error is, recipes print and fail, and everything is answered.
        """
        names = [
            "failing",
            "printing",
            "logging_",
            "in_bytes",
            "warned",
            "wrapped",
            "unfinished",
        ]
        with error_stream(kind) as stderr, serving(recipes(recipe=NOISY), stderr) as process:
            asked = [get(number, name) for number, name in enumerate(names, 1)]
            replies = ask(process, initialize("2025-06-18"), *asked, request(99, "ping"))
            process.stdin.close()

            assert process.wait(timeout=50) == 0
        assert {number for number, reply in replies.items() if "error" in reply} == {1}

    @pytest.mark.parametrize("kind", ["pipe", "file", "socket", "terminal"])
    def test_last_words(self, recipes, kind, tmp_path):
        """
        What was printed before a process is killed, or crashes, is there.
        """
        for end in ("killed", "left"):
            reading, writing = ends_of(kind, tmp_path / end)
            with serving(recipes(recipe=ENDING), writing) as process:
                os.close(writing)
                process.stdin.write(OPENING + line(get(1, end)))
                process.stdin.flush()
                process.wait(timeout=50)

            assert b"last words" in os.read(reading, 99)
            os.close(reading)

    @pytest.mark.parametrize("kind", ["pipe", "terminal"])
    def test_order(self, recipes, kind, tmp_path):
        """
        What is printed stands before what a child, or C code, writes later.
        """
        reading, writing = ends_of(kind, tmp_path / "log")
        with serving(recipes(recipe=ENDING), writing) as process:
            os.close(writing)
            ask(process, initialize("2025-06-18"), get(1, "in_order"))
            process.stdin.close()
            process.wait(timeout=50)

        expected = [f"{number} {who}" for number in range(5) for who in ("python", "c", "child")]
        assert os.read(reading, 999).decode().splitlines() == expected
        os.close(reading)

    def test_prompts_that_are_stopped_while_they_print(self, recipes, tmp_path):
        """
        Wherever in printing a prompt is stopped, others print on.
        """
        file = tmp_path / "log"
        with file.open("wb") as log, serving(recipes(recipe=ENDING), log) as process:
            ask(process, initialize("2025-06-18"))
            for number in range(1, 31):
                ask(process, get(number, "endless"))
            ask(process, get(31, "in_order"))
            process.stdin.close()
            process.wait(timeout=50)

        assert file.read_text().count("4 python\n") == 1

    def test_a_descriptor_that_authors_replace(self, recipes, pipe):
        """
        Output is caught, and so is that of child processes, when authors replace descriptors.
        """
        with serving(recipes(recipe=ENDING), pipe[1]) as process:
            replies = ask(process, initialize("2025-06-18"), get(1, "caught"))

        assert text(replies[1]) == "printed\nby a child\n"

    def test_a_pipe_that_does_not_block(self, recipes, pipe):
        """
        Everything is written to a non-blocking pipe, too.
        """
        reading, writing = pipe
        os.set_blocking(writing, False)
        with serving(recipes(recipe=NOISY), writing) as process:
            os.close(writing)
            shown = []
            reader = threading.Thread(target=lambda: shown.append(drained(reading)))
            reader.start()
            ask(process, initialize("2025-06-18"), get(1, "printing"))
            process.stdin.close()
            process.wait(timeout=50)
            reader.join(timeout=50)

        assert shown == ["".join(f"{number} {'x' * 90}\n" for number in range(3000))]

    def test_what_authors_do_with_it(self, recipes, tmp_path):
        """
        It can be closed, wrapped, asked what it is, and replaced.
        """
        file = tmp_path / "log"
        names = ["wrapped", "crashing", "unfinished", "replaced", "failing"]
        with file.open("wb") as log, serving(recipes(recipe=NOISY), log) as process:
            asked = [get(number, name) for number, name in enumerate(names, 1)]
            replies = ask(process, initialize("2025-06-18"), *asked)
            process.stdin.close()
            process.wait(timeout=50)

        found = file.read_text()
        assert text(replies[2]) == "2 False utf-8 backslashreplace"
        expected = [
            "wrapped\n",
            "closed\n",
            "the first one\n",
            "no end",
            "Stack (most recent call first)",
        ]
        assert [found.count(said) for said in expected] == [1] * len(expected)
        assert "\nValueError: xxx" in found

    def test_a_start_that_fails_says_everything(self, recipes):
        """
        All that is wrong is printed before a strict start ends, to a reader that is late.
        """
        broken = "\n".join(f"@prompt\ndef broken{n}(a{n}): return 1" for n in range(1000))
        folder = recipes(broken=f"from promptkit import prompt\n{broken}\n")
        with serving(folder, subprocess.PIPE, "--strict") as process:
            process.stdin.close()
            first = process.stderr.readline()
            time.sleep(0.3)  # what a reader that is late does
            shown = first + process.stderr.read()

            assert process.wait(timeout=50) == 1
        assert shown.count(b"error PK301") == 1000

    def test_a_target_that_is_not_there(self, tmp_path):
        """
        A start without recipes says why.
        """
        with serving(tmp_path / "nowhere", subprocess.PIPE) as process:
            _, shown = process.communicate(timeout=50)

        assert shown.startswith(b"promptkit: cannot load ")

    def test_a_start_whose_complaints_nobody_reads_ends(self, recipes, pipe):
        """
        A strict start ends, also if its errors are not read.
        """
        broken = "\n".join(f"@prompt\ndef broken{n}(a{n}): return 1" for n in range(2000))

        folder = recipes(broken=f"from promptkit import prompt\n{broken}\n")
        with serving(folder, pipe[1], "--strict") as process:
            assert process.wait(timeout=30) == 1


@contextmanager
def error_stream(kind):
    """A descriptor for standard error, of a kind."""
    others = []
    if kind == "full":
        opened = os.open("/dev/full", os.O_WRONLY)
    elif kind == "socket":
        first, second = socket.socketpair()
        others.append(first.detach())
        opened = second.detach()
    elif kind == "terminal":
        other, opened = os.openpty()
        others.append(other)
    elif kind == "read only":
        opened = os.open(os.devnull, os.O_RDONLY)
    else:
        reading, opened = os.pipe()
        os.close(reading)  # nobody will ever read
    try:
        yield opened
    finally:
        for descriptor in (opened, *others):
            os.close(descriptor)


def test_nothing_at_all(recipes):
    """
    Without a standard error everything is answered, as much as is printed.
    """
    names = ["failing", "printing", "logging_", "in_bytes", "warned", "wrapped", "unfinished"]
    asked = b"".join(line(get(number, name)) for number, name in enumerate(names, 1))

    ran = subprocess.run(
        [
            "/bin/sh",
            "-c",
            f'exec "{sys.executable}" -m promptkit serve --grace 20 "{recipes(recipe=NOISY)}" 2>&-',
        ],
        input=OPENING + asked,
        capture_output=True,
        timeout=30,
        check=False,
    )

    assert sorted(json.loads(reply)["id"] for reply in ran.stdout.splitlines()) == [*range(len(names) + 1)]


def test_other_commands_print_as_they_did(recipes):
    """
    What does not serve prints by itself, with nothing in between.
    """
    probe = "import sys\nprint(type(sys.stderr).__name__)\n"

    ran = subprocess.run(
        [sys.executable, "-m", "promptkit", "check", str(recipes(recipe=probe))],
        capture_output=True,
        text=True,
        check=False,
    )

    assert ran.stderr == "TextIOWrapper\n"


class TestBackgroundWriter:
    @pytest.fixture
    def writer(self, pipe):
        """A writer to a pipe."""
        return BackgroundWriter()

    def read(self, pipe, writer):
        """What has been written, once everything is."""
        writer.finish(20)
        os.close(pipe[1])
        return drained(pipe[0])

    def test_a_quiet_one_starts_no_thread(self, pipe, writer):
        """
        Who prints nothing pays nothing.
        """
        writer.flush(pipe[1])
        writer.finish(1)

        assert not writer._has_thread

    def test_lines_of_threads_are_kept_whole(self, pipe, writer):
        """
        What several threads write in pieces comes line by line.
        """

        def write(letter):
            for _ in range(200):
                for piece in (letter * 3, letter * 4, "\n"):
                    writer.write(pipe[1], piece.encode())

        threads = [threading.Thread(target=write, args=(letter,)) for letter in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

        lines = self.read(pipe, writer).splitlines()
        assert sorted(lines) == sorted([letter * 7 for letter in "abcd"] * 200)

    def test_a_thread_that_ends_is_replaced(self, pipe, writer):
        """
        Where memory is too short to remove secrets from an unfinished line, what comes later is written.
        """

        def refuse(text):
            if text:
                raise MemoryError
            return text

        writer.redact = refuse
        writer.write(pipe[1], b"lost")
        deadline = time.monotonic() + 20
        while writer._has_thread and time.monotonic() < deadline:
            time.sleep(0.01)
        writer.redact = None
        writer.write(pipe[1], b"later? ")
        time.sleep(0.01)

        assert self.read(pipe, writer) == "later? "

    def test_a_line_without_an_end_shows_after_a_while(self, pipe, writer):
        """
        A question that waits for its answer on the same line is seen.
        """
        writer.write(pipe[1], b"sure? ")

        assert os.read(pipe[0], 99) == b"sure? "

    def test_flush_shows_the_beginning_of_a_line(self, pipe, writer):
        """
        A flush writes an unfinished line; the rest follows it.
        """
        for piece in (b"1%", b"\r2%"):
            writer.write(pipe[1], piece)
            writer.flush(pipe[1])

        assert self.read(pipe, writer) == "1%\r2%"

    def test_progress_is_shown_though_secrets_are_looked_for(self, pipe, writer):
        """
        A line that is written over and over again is not held back until it ends.
        """
        writer.redact = str
        for piece in (b"\r1%", b"\r2%"):
            writer.write(pipe[1], piece)
            writer.flush(pipe[1])

        assert os.read(pipe[0], 99) == b"\r1%\r2%"

    def test_stamps(self, pipe, writer):
        """
        Each whole line begins with the time of its end, also where several are printed at once; an empty one
        stays empty.
        """
        writer.stamps = True
        before = datetime.now(UTC)
        for text in (b"one\n\ntwo\n", b"be", b"gun\n", b"10 %\r"):
            writer.write(pipe[1], text)
        lines = self.read(pipe, writer).splitlines()

        stamps, texts = zip(*(line.split(" ", 1) for line in lines if line), strict=True)
        assert (texts, lines[1]) == (("one", "two", "begun", "10 %"), "")
        assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", stamp) for stamp in stamps)
        assert all(abs(datetime.fromisoformat(stamp) - before) < timedelta(seconds=20) for stamp in stamps)

    def test_a_finalizer_that_prints(self, pipe, writer):
        """
        What is collected in the midst of writing may write.
        """

        class Last:
            def __del__(self):
                writer.write(pipe[1], b"last\n")

        for _ in range(2000):
            cycle = Last()
            cycle.itself = cycle
            writer.write(pipe[1], b"x\n")
            del cycle
        gc.collect()

        assert sorted(self.read(pipe, writer).split()) == sorted(["last", "x"] * 2000)

    def test_a_signal_handler_that_prints(self, recipes, tmp_path):
        """
        A handler that interrupts a write may write.
        """
        program = (
            "import signal, sys\n"
            "from promptkit.errors import standard_error\n"
            "standard_error.redirect()\n"
            "def handle(*_):\n"
            "    print('handled')\n"
            "    signal.setitimer(signal.ITIMER_REAL, 0.005)\n"  # never while it is handled
            "signal.signal(signal.SIGALRM, handle)\n"
            "signal.setitimer(signal.ITIMER_REAL, 0.005)\n"
            "for _ in range(5000): print('line')\n"
            "signal.setitimer(signal.ITIMER_REAL, 0)\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
        )

        # `print` writes a line and its end, so a handler comes between them; but all of it is there.
        assert (ran.stdout + ran.stderr).count("line") == 5000
        assert "handled" in ran.stdout + ran.stderr

    def test_text_that_cannot_be_encoded(self, recipes):
        """
        No character raises.
        """
        program = (
            "import io, sys\n"
            "from promptkit.errors import standard_error\n"
            "standard_error.redirect()\n"
            "print('\\ud800 ü', file=sys.stderr)\n"
            "sys.stderr.writelines(['a', 'b\\n'])\n"
            "assert isinstance(sys.stderr, io.TextIOWrapper) and sys.stderr.writable()\n"
            "assert not (sys.stderr.closed or sys.stderr.readable() or sys.stderr.seekable())\n"
        )

        ran = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)

        assert ran.stderr.decode() == "\\ud800 ü\nab\n"

    def test_the_end_of_the_interpreter(self):
        """
        What is printed while everything is torn down is printed.
        """
        program = (
            "import atexit, sys\n"
            "atexit.register(print, 'at exit')\n"
            "from promptkit.errors import standard_error\n"
            "standard_error.redirect()\n"
            "class Last:\n"
            "    def __del__(self): print('torn down', file=sys.stderr)\n"
            "kept = Last()\n"
            "sys.stderr.write('no end ')\n"
            "raise ValueError('reason')\n"
        )

        ran = subprocess.run(
            [sys.executable, "-c", program],
            stderr=subprocess.STDOUT,
            stdout=subprocess.PIPE,
            timeout=60,
            check=False,
        )

        for said in ("no end ", "ValueError: reason", "at exit"):
            assert said in ran.stdout.decode()

    def test_no_more_threads(self, pipe, writer, monkeypatch):
        """
        Where no thread can be started, what is written waits for the next write.
        """
        monkeypatch.setattr(standard_error, "_room_of", lambda _: 0)

        def refuse(*_):
            raise RuntimeError("can't start new thread")

        with monkeypatch.context() as patch:
            patch.setattr(standard_error._thread, "start_new_thread", refuse)
            writer.write(pipe[1], b"one\n")
        writer.write(pipe[1], b"two\n")

        assert self.read(pipe, writer) == "one\ntwo\n"

    def test_a_long_line(self, pipe, writer):
        """
        One line may be longer than everything that waits; what does not fit is counted.
        """
        small = BackgroundWriter(capacity=200_000)
        small.write(pipe[1], b"x" * 1_000_000)
        small.write(pipe[1], b"\n")
        reading = threading.Thread(target=lambda: found.append(drained(pipe[0])))
        found = []
        reading.start()
        small.finish(20)
        os.close(pipe[1])
        reading.join(20)

        (note,) = [each for each in found[0].splitlines() if each.startswith("promptkit: ")]
        assert found[0].count("x") + int(note.split()[1].replace(",", "")) in (1_000_000, 1_000_001)


def test_say_needs_no_stream(monkeypatch):
    """
    Without any stream, or with a closed one, a message is dropped without an error.
    """
    closed = TextIOWrapper(open(os.devnull, "wb"))  # noqa: SIM115
    closed.close()
    for stream in (None, closed, object()):
        monkeypatch.setattr(sys, "stderr", stream)
        standard_error.say("nothing")
