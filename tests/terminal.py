"""The real command in a subprocess: with a terminal, pipes, files, or closed descriptors."""

import os
import re
import subprocess
import sys
from contextlib import suppress

import pytest

COMMAND = [sys.executable, "-m", "promptkit"]

#: Variables that change the output, or hide the effects of buffering.
_OWN = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "PYTHONUNBUFFERED", "PYTHONIOENCODING")


def environment(**more):
    """Return a clean environment with *more*."""
    return {**{name: value for name, value in os.environ.items() if name not in _OWN}, **more}


def command(*argv, cwd, **options):
    """Run a command to its end; return its exit code and its output as bytes."""
    env = environment(**options.pop("env", {}))
    streams = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    if "input" in options:
        del streams["stdin"]
    result = subprocess.run(
        [*COMMAND, *argv], cwd=cwd, env=env, timeout=50, check=False, **{**streams, **options}
    )
    return result.returncode, result.stdout, result.stderr


def in_shell(line, *, cwd, **env):
    """Run a bash command line in which `promptkit` is the command, and return the same as `command`."""
    define = f'promptkit() {{ "{sys.executable}" -m promptkit "$@"; }}; set -o pipefail; {line}'
    result = subprocess.run(
        ["bash", "-c", define],  # noqa: S607 (bash can be anywhere on the path)
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=50,
        check=False,
    )
    return result.returncode, result.stdout, result.stderr


def on_terminal(*argv, **how):
    """Run a command with one stream on a terminal, and return what the terminal shows."""
    return ended_on_terminal(*argv, **how)[1]


def ended_on_terminal(*argv, cwd, stream="stdout", columns=80, **env):
    """Run a command as `on_terminal` does, and return the exit code and what the terminal shows."""
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
    output = b""
    try:
        while data := os.read(ours, 65536):
            output += data
    except OSError:  # on Linux: the other end is closed
        pass
    process.communicate(timeout=20)
    os.close(ours)
    return process.returncode, output.decode().replace("\r\n", "\n")


#: Control sequences of a terminal.
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Person:
    """A user at a terminal, who sees questions and types answers. Standard output can be a pipe."""

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
        self.shown = ""  # the output since the last match
        self.sent = ""  # the whole output, with control sequences

    def sees(self, text):
        """Read until *text* is shown, and drop the output up to it."""
        while text not in (plain := ESCAPES.sub("", self.shown)):
            self._read()
        self.shown = plain.partition(text)[2]

    def types(self, text):
        """Type *text*."""
        os.write(self.ours, text.encode())

    def leaves(self):
        """Kill the command, if it is still running."""
        self.process.kill()
        self.process.communicate()
        with suppress(OSError):
            os.close(self.ours)

    def ends(self):
        """Wait for the command's end; return its exit code and its standard output."""
        try:
            while self._read():
                pass
        except OSError:  # on Linux: the other end is closed
            pass
        out, _ = self.process.communicate(timeout=20)
        os.close(self.ours)
        return self.process.returncode, (out or b"").decode()

    def _read(self):
        data = os.read(self.ours, 65536).decode()
        self.shown += data
        self.sent += data
        return data
