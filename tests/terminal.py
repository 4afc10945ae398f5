"""The real command, as a shell starts it: on a terminal, on pipes, on files, on closed descriptors."""

import os
import subprocess
import sys

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
