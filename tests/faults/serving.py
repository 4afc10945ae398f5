"""A real `promptkit serve` process, and a client with timeouts for every operation."""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from tests.wire import HANDSHAKES, MODERN, initialize, line, modern, notification, request

#: The timeout for anything that should happen immediately, in seconds.
PATIENCE = 20.0


class Serving:
    """
    The process, and the client's ends of its pipes.

    Args:
        folder:
            The recipes.

        options: Additional command-line options.

        log:
            The file for standard error.

        reads:
            Whether a thread reads the output from the start.

        program:
            The arguments of Python that select the program.
    """

    def __init__(self, folder, *options, log, reads=True, program=("-m", "promptkit")):
        self.log = Path(log)
        with self.log.open("ab") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, *program, "serve", str(folder), *options],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                bufsize=0,
            )
        self.stdin, self.stdout = self.process.stdin.fileno(), self.process.stdout.fileno()
        os.set_blocking(self.stdin, False)
        self.lines = []  # (time of arrival, line)
        self._pieces = []  # of the incomplete line
        self.ended = False
        self._is_read = False
        self._changed = threading.Condition()
        if reads:
            self.start_reading()

    @property
    def partial_line(self):
        """The received part of the incomplete line."""
        return b"".join(self._pieces)

    def start_reading(self):
        """Start a thread that reads the output."""
        self._is_read = True
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        data = b"-"
        with self.process.stdout:  # closed by the reading thread, which knows when the last read ends
            while data:
                data = os.read(self.stdout, 1 << 20)
                self.take(data)

    def take(self, data):
        """Process data that was read; ``b""`` means the end of the output."""
        now, is_end, lines = time.monotonic(), not data, []
        if b"\n" in data:  # joining the pieces of a long line each time would take minutes
            *lines, data = b"".join((*self._pieces, data)).split(b"\n")
            self._pieces = []
        self._pieces.append(data)
        with self._changed:
            self.lines += [(now, text) for text in lines]
            self.ended = self.ended or is_end
            self._changed.notify_all()

    def read(self, size, seconds=PATIENCE):
        """Read at most *size* bytes once, and return their number."""
        ready, _, _ = select.select([self.stdout], [], [], seconds)
        if not ready:
            msg = f"nothing came for {seconds} s"
            raise TimeoutError(msg)
        data = os.read(self.stdout, size)
        self.take(data)
        return len(data)

    def write(self, data, seconds=PATIENCE):
        """Write all bytes."""
        written = self.offer(data, seconds)
        if written < len(data):
            msg = f"{len(data) - written} of {len(data)} bytes were not taken in {seconds} s"
            raise TimeoutError(msg)

    def offer(self, data, seconds):
        """Write as many bytes as the server takes in time, and return their number."""
        remaining, deadline = memoryview(data), time.monotonic() + seconds
        while remaining and time.monotonic() < deadline:
            _, ready, _ = select.select([], [self.stdin], [], max(0.0, deadline - time.monotonic()))
            if ready:
                with suppress(BlockingIOError):
                    remaining = remaining[os.write(self.stdin, remaining) :]
        return len(data) - len(remaining)

    def send(self, *messages):
        """Write messages, one per line."""
        self.write(b"".join(map(line, messages)))

    def wait(self, condition, seconds=PATIENCE):
        """Wait until *condition* holds; it is checked whenever data arrives."""
        with self._changed:
            if not self._changed.wait_for(condition, seconds):
                msg = f"the condition did not hold within {seconds} s; {self.tail()}"
                raise TimeoutError(msg)

    def open(self, revision):
        """Open a session, if the revision has sessions."""
        if revision in HANDSHAKES:
            self.ask(initialize(revision, "open", {"elicitation": {}, "roots": {}}))
            self.send(notification("notifications/initialized"))

    def ask(self, message, seconds=PATIENCE):
        """Send one request, and return its reply and the duration."""
        seen, started = len(self.lines), time.monotonic()
        self.send(message)
        replies = []

        def answered():
            nonlocal seen
            for arrival, text in self.lines[seen:]:
                seen += 1
                reply = json.loads(text)
                if isinstance(reply, dict) and reply.get("id") == message["id"] and "method" not in reply:
                    replies.append((reply, arrival - started))
            return replies or self.ended

        self.wait(answered, seconds)
        if not replies:
            msg = f"the server exited before it answered; {self.tail()}"
            raise EOFError(msg)
        return replies[0]

    def is_serving(self, number="serving?"):
        """Return whether the next requests are served, in both eras."""
        lists, _ = self.ask(modern(number, "prompts/list"))
        pong, _ = self.ask(request(f"{number} {MODERN}", "ping"))
        return "prompts" in lists.get("result", {}) and pong.get("result") == {}

    def end(self, seconds=PATIENCE):
        """Close the input, and return the time to exit and the exit code."""
        started = time.monotonic()
        self.process.stdin.close()
        code = self.process.wait(seconds)
        return time.monotonic() - started, code

    def stop(self, number=signal.SIGTERM, seconds=PATIENCE):
        """Send a signal, and return the time to exit and the exit code."""
        started = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        return time.monotonic() - started, code

    def all_output(self, seconds=PATIENCE):
        """Wait for the end of the output, and return all its lines."""
        self.wait(lambda: self.ended, seconds)
        return [text for _, text in self.lines] + ([self.partial_line] if self.partial_line else [])

    def memory(self):
        """Return the resident memory in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (resident,) = (text for text in status.splitlines() if text.startswith("VmRSS:"))
        return int(resident.split()[1]) * 1024

    def usage(self):
        """Return the numbers of threads and descriptors."""
        folder = Path(f"/proc/{self.process.pid}")
        return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))

    def tail(self):
        """Return the end of standard error, and the exit code."""
        text = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        return f"exit code {self.process.poll()}, standard error ends: {text!r}"

    def kill(self):
        """Kill the process, and close its pipes."""
        self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()
        if not self._is_read:
            self.process.stdout.close()
