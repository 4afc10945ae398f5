"""The real command, as a shell starts it: on a terminal, on pipes, on files, on closed descriptors."""

import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest

COMMAND = [sys.executable, "-m", "promptkit"]

#: What would change what is printed, or hide what buffers do.
_OWN = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "PYTHONUNBUFFERED", "PYTHONIOENCODING")


def environment(**more):
    """A clean environment, and *more*."""
    return {**{name: value for name, value in os.environ.items() if name not in _OWN}, **more}


def command(*argv, cwd, **options):
    """Run a command to its end; return its exit code, and what it wrote as bytes."""
    env = environment(**options.pop("env", {}))
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if "input" in options:
        del streams["stdin"]
    ran = subprocess.run(
        [*COMMAND, *argv], cwd=cwd, env=env, timeout=50, check=False, **{**streams, **options}
    )
    return ran.returncode, ran.stdout, ran.stderr


def in_shell(line, *, cwd, **env):
    """Run a line of bash, in which `promptkit` is the command; return as `command` does."""
    define = f'promptkit() {{ "{sys.executable}" -m promptkit "$@"; }}; set -o pipefail; {line}'
    ran = subprocess.run(
        ["bash", "-c", define],  # noqa: S607 (wherever bash is)
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=50,
        check=False,
    )
    return ran.returncode, ran.stdout, ran.stderr


def on_terminal(*argv, **how):
    """Run a command with one stream on a terminal; return what is shown there."""
    return ended_on_terminal(*argv, **how)[1]


def ended_on_terminal(*argv, cwd, stream="stdout", columns=80, **env):
    """As `on_terminal`, but return the exit code, too, before what is shown."""
    pty = pytest.importorskip("pty", reason="Windows has no pseudoterminals")
    import fcntl
    import struct
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(
        [*COMMAND, *argv],
        cwd=cwd,
        env=environment(TERM="xterm-256color", **env),
        **{**streams, stream: theirs},
    )
    os.close(theirs)
    shown = b""
    try:
        while data := os.read(ours, 65536):
            shown += data
    except OSError:  # how Linux says that the other end is closed
        pass
    process.communicate(timeout=20)
    os.close(ours)
    return process.returncode, shown.decode().replace("\r\n", "\n")


#: What a terminal is told beside text.
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Person:
    """Somebody at a terminal, who sees what is asked and types answers. Standard output may be a pipe."""

    def __init__(self, folder, *argv, all_streams=False, **env):
        pty = pytest.importorskip("pty", reason="Windows has no pseudoterminals")
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*COMMAND, *argv],
            cwd=folder,
            env=environment(TERM="xterm-256color", PROMPT_TOOLKIT_NO_CPR="1", **env),
            stdin=theirs,
            stdout=theirs if all_streams else subprocess.PIPE,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""  # since what was seen last
        self.sent = ""  # all of it, with what steers the terminal

    def sees(self, text):
        """Read until *text* is shown, and forget what was shown before."""
        while text not in (plain := ESCAPES.sub("", self.shown)):
            self._read()
        self.shown = plain.partition(text)[2]

    def types(self, text):
        """Type something."""
        os.write(self.ours, text.encode())

    def leaves(self):
        """End the command, if it has not ended."""
        self.process.kill()
        self.process.communicate()
        with suppress(OSError):
            os.close(self.ours)

    def ends(self):
        """Wait for the end; return the exit code, and what is on standard output."""
        try:
            while self._read():
                pass
        except OSError:  # how Linux says that the other end is closed
            pass
        out, _ = self.process.communicate(timeout=20)
        os.close(self.ours)
        return self.process.returncode, (out or b"").decode()

    def _read(self):
        data = os.read(self.ours, 65536).decode()
        self.shown += data
        self.sent += data
        return data
