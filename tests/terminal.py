"""The real command in a subprocess: with a terminal, pipes, files, or closed descriptors."""

import os
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "promptkit"]

#: Variables that change the output, or hide the effects of buffering.
_OWN = ("NO_COLOR", "FORCE_COLOR", "COLORTERM", "COLUMNS", "PYTHONUNBUFFERED", "PYTHONIOENCODING")


def environment(**more):
    """Return the environment without variables that change the output, and with *more*."""
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
    """Run a bash command line in which `promptkit` is the command; return its exit code and output."""
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
    """Run a command with one stream on a terminal, and return the text on the terminal."""
    return outcome_on_terminal(*argv, **how)[1]


def outcome_on_terminal(*argv, cwd, stream="stdout", columns=80, **env):
    """Run a command like `on_terminal`, and return the exit code and the text on the terminal."""
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
    except OSError:  # on Linux, this means that the other end is closed
        pass
    process.communicate(timeout=20)
    os.close(ours)
    return process.returncode, output.decode().replace("\r\n", "\n")
