"""A real `promptkit serve`, and a client that never waits for longer than it says."""

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

#: How long anything is waited for that should happen at once, in seconds. It is a bound, no figure.
PATIENCE = 20.0


class Serving:
    """
    The process, and the client's ends of its pipes.

    Args:
        folder:
            The recipes.

        options:
            More of the command line.

        log:
            The file that standard error goes to.

        reads:
            Whether a thread reads what comes, from the beginning.

        program:
            What Python runs, as its command line says it.
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
        self.lines = []  # when each came, and what it was
        self._pieces = []  # of the line that has not ended
        self.ended = False
        self._is_read = False
        self._changed = threading.Condition()
        if reads:
            self.read_on()

    @property
    def rest(self):
        """What has come of the line that has not ended."""
        return b"".join(self._pieces)

    def read_on(self):
        """Read everything from now on, on a thread."""
        self._is_read = True
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        data = b"-"
        with self.process.stdout:  # closed by who reads it: nobody else knows when the last read has ended
            while data:
                data = os.read(self.stdout, 1 << 20)
                self.take(data)

    def take(self, data):
        """Take what has been read, ``b""`` at the end."""
        now, is_end, lines = time.monotonic(), not data, []
        if b"\n" in data:  # else joining the pieces of a long line again and again would take minutes
            *lines, data = b"".join((*self._pieces, data)).split(b"\n")
            self._pieces = []
        self._pieces.append(data)
        with self._changed:
            self.lines += [(now, found) for found in lines]
            self.ended = self.ended or is_end
            self._changed.notify_all()

    def read(self, size, seconds=PATIENCE):
        """Read once, at most *size* bytes; return how many there were."""
        ready, _, _ = select.select([self.stdout], [], [], seconds)
        if not ready:
            msg = f"nothing came for {seconds} s"
            raise TimeoutError(msg)
        data = os.read(self.stdout, size)
        self.take(data)
        return len(data)

    def write(self, data, seconds=PATIENCE):
        """Write bytes, all of them."""
        written = self.offer(data, seconds)
        if written < len(data):
            msg = f"{len(data) - written} of {len(data)} bytes were not taken in {seconds} s"
            raise TimeoutError(msg)

    def offer(self, data, seconds):
        """Write bytes for as long as they are taken; return how many were."""
        rest, until = memoryview(data), time.monotonic() + seconds
        while rest and time.monotonic() < until:
            _, ready, _ = select.select([], [self.stdin], [], max(0.0, until - time.monotonic()))
            if ready:
                with suppress(BlockingIOError):
                    rest = rest[os.write(self.stdin, rest) :]
        return len(data) - len(rest)

    def send(self, *messages):
        """Write messages, a line each."""
        self.write(b"".join(map(line, messages)))

    def wait(self, condition, seconds=PATIENCE):
        """Wait until *condition* holds, which is looked at whenever something has come."""
        with self._changed:
            if not self._changed.wait_for(condition, seconds):
                msg = f"what was waited for did not happen in {seconds} s; {self.tail()}"
                raise TimeoutError(msg)

    def open(self, revision):
        """Open a session, if the revision has one."""
        if revision in HANDSHAKES:
            self.ask(initialize(revision, "open", {"elicitation": {}, "roots": {}}))
            self.send(notification("notifications/initialized"))

    def ask(self, message, seconds=PATIENCE):
        """Send one request; return its reply, and how long that took."""
        seen, started = len(self.lines), time.monotonic()
        self.send(message)
        found = []

        def answered():
            nonlocal seen
            for came, text in self.lines[seen:]:
                seen += 1
                reply = json.loads(text)
                if isinstance(reply, dict) and reply.get("id") == message["id"] and "method" not in reply:
                    found.append((reply, came - started))
            return found or self.ended

        self.wait(answered, seconds)
        if not found:
            msg = f"it ended before it answered; {self.tail()}"
            raise EOFError(msg)
        return found[0]

    def serves(self, number="served?"):
        """Whether the next requests are served, in both eras."""
        lists, _ = self.ask(modern(number, "prompts/list"))
        pong, _ = self.ask(request(f"{number} {MODERN}", "ping"))
        return "prompts" in lists.get("result", {}) and pong.get("result") == {}

    def end(self, seconds=PATIENCE):
        """End the input; return how long it took to exit, and the exit code."""
        started = time.monotonic()
        self.process.stdin.close()
        code = self.process.wait(seconds)
        return time.monotonic() - started, code

    def told(self, number=signal.SIGTERM, seconds=PATIENCE):
        """Send a signal; return how long it took to exit, and the exit code."""
        started = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(seconds)
        return time.monotonic() - started, code

    def drained(self, seconds=PATIENCE):
        """Wait for the end of the output; return every line of it."""
        self.wait(lambda: self.ended, seconds)
        return [text for _, text in self.lines] + ([self.rest] if self.rest else [])

    def memory(self):
        """Return how much memory it has, in bytes."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        (resident,) = (text for text in status.splitlines() if text.startswith("VmRSS:"))
        return int(resident.split()[1]) * 1024

    def use(self):
        """Return how many threads and how many descriptors it has."""
        folder = Path(f"/proc/{self.process.pid}")
        return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))

    def tail(self):
        """Return the last lines of its standard error, and whether it runs."""
        said = self.log.read_text(encoding="utf-8", errors="replace")[-2000:]
        return f"exit code {self.process.poll()}, standard error ends: {said!r}"

    def kill(self):
        """End it, whatever it does."""
        self.process.kill()
        self.process.wait()
        with suppress(OSError):
            self.process.stdin.close()
        if not self._is_read:
            self.process.stdout.close()
