"""`promptkit dev`: a real process, its address, and how it ends."""

import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from promptkit.errors.distribution import install_command
from tests.terminal import COMMAND, command, environment

pytest.importorskip("starlette")

GREET = "from promptkit import prompt\n@prompt\ndef greet(name: str = 'you'):\n    return f'Hello, {name}.'\n"


#: The command line, with a server that does not wait long for a head.
IMPATIENT = [
    sys.executable,
    "-c",
    """
import sys
from promptkit.cli import main
from promptkit.cli import preview_server
from promptkit.transports.http.connection_limits import ConnectionLimits
preview_server._LIMITS = ConnectionLimits(head_s=0.2)
sys.exit(main())
""",
]


class Page:
    """A browser at the address that a preview has printed."""

    def __init__(self, address):
        self.host, path = re.fullmatch(r"http://(127\.0\.0\.1:\d+)(/\?access-token=\S+)\n", address).groups()
        answer = self.ask(path)
        assert answer.status == 303
        self.cookie = answer.headers["set-cookie"].partition(";")[0]

    cookie = ""

    def ask(self, path):
        """The response to a request, of which the body is not read yet."""
        connection = HTTPConnection(self.host, timeout=20)
        connection.request("GET", path, headers={"Cookie": self.cookie, "Connection": "close"})
        return connection.getresponse()


@contextmanager
def running(folder, *words, program=COMMAND, **more):
    """A preview that is served, and its page."""
    process = subprocess.Popen(
        [*program, "dev", *words, "--no-open"],
        cwd=folder.parent,
        env=environment(**more),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, Page(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def ended(process):
    """The exit code after Ctrl-C, and what was said on standard error."""
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=20)
    return process.returncode, said


def test_the_address_shows_the_page_until_ctrl_c(recipes):
    """
    A save is told to a page that is open, and does not hold up the end.
    """
    folder = recipes(greet=GREET)
    with running(folder, "--port", "0") as (process, page):
        assert b"Hello, you." in page.ask("/prompts/greet").read()
        events = page.ask("/events?version=0")
        (folder / "more.py").write_text(GREET.replace("greet", "more"))
        lines = iter(events.readline, b"event: reload\n")
        assert all(lines)
        assert b"added more" in events.readline()
        assert b"Hello, you." in page.ask("/prompts/more").read()
        assert ended(process) == (130, "")


def test_a_signal_right_after_the_address(recipes):
    """
    The address is printed once a signal ends the preview properly.
    """
    folder = recipes(greet=GREET)
    for _ in range(5):
        with running(folder, "--port", "0") as (process, _):
            process.send_signal(signal.SIGTERM)
            assert (process.communicate(timeout=20)[1], process.returncode) == ("", 0)


def test_half_a_head(recipes):
    """
    A connection on which a head does not go on ends with 408: the pages have the server that prompts have.
    """
    folder = recipes(greet=GREET)
    with running(folder, "--port", "0", program=IMPATIENT) as (process, page):
        host, _, port = page.host.partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as half:
            half.sendall(b"GET / HTTP/1.1\r\nhost:")
            assert half.makefile("rb").read().startswith(b"HTTP/1.1 408 ")
        assert ended(process) == (130, "")


def test_a_recipe_that_prints_and_hangs(recipes):
    """
    What it prints goes to standard error, and what it hangs in does not hold up the end.
    """
    folder = recipes(
        noisy="import os, time\nfrom promptkit import prompt\nprint('imported')\n"
        "@prompt\ndef noisy():\n    print('rendered'); os.system('echo child')\n    return 'Done.'\n"
        "@prompt(timeout=0.05)\ndef hangs():\n    time.sleep(50)\n    return 'Late.'\n"
    )
    with running(folder, "--port", "0") as (process, page):
        assert b"<p>Done.</p>" in page.ask("/prompts/noisy").read()
        assert b"took longer than its limit of 0.05 s" in page.ask("/prompts/hangs").read()
        assert ended(process) == (130, "imported\nrendered\nchild\n")


def test_the_usual_port_and_another(recipes):
    """
    If the usual port is taken, there is another; one that was named is not replaced.
    """
    folder = recipes(greet=GREET)
    with running(folder) as (_, first), running(folder) as (_, second):
        assert first.host != second.host
        port = second.host.partition(":")[2]
        code, out, err = command("dev", "--no-open", "--port", port, cwd=folder.parent)

    assert (code, out) == (2, b"")
    assert err.decode().startswith(f"promptkit: cannot listen at 127.0.0.1, port {port}: another server")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ["x/y"],
            "promptkit: cannot load 'x/y': there is no such file or folder; there are recipes in 'recipes/'",
        ),
        (
            ["--port", "x"],
            "promptkit dev: error: argument --port: 'x' is not a port: write a number from 0 to 65535",
        ),
        (
            ["--port", "65536"],
            "promptkit dev: error: argument --port: '65536' is not a port: write a number from 0 to 65535",
        ),
    ],
    ids=["target", "word", "number"],
)
def test_wrong_usage(words, said, recipes):
    """
    The last line says what is wrong.
    """
    code, out, err = command("dev", *words, "--no-open", cwd=recipes(greet=GREET).parent)

    assert (code, out, err.decode().splitlines()[-1]) == (2, b"", said)


def test_the_extra_is_missing(recipes, tmp_path):
    """
    Without the libraries, the error says what to install.
    """
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "jinja2.py").write_text("raise ModuleNotFoundError(name='jinja2')\n")

    code, out, err = command(
        "dev", cwd=recipes(greet=GREET).parent, env={"PYTHONPATH": str(tmp_path / "missing")}
    )

    assert (code, out) == (2, b"")
    assert err.decode() == f"promptkit: dev needs jinja2: {install_command('preview')}\n"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_a_browser_is_opened(end, recipes, tmp_path):
    """
    It is given a file that only its owner can read: arguments are seen by everybody. The file leads to the
    address that is printed, and is gone in the end.
    """
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\nprintf '%s' \"$1\" > {opened}.part; mv {opened}.part {opened}\n")
    browser.chmod(0o755)
    process = subprocess.Popen(
        [*COMMAND, "dev", "--port", "0"],
        cwd=recipes(greet=GREET).parent,
        env=environment(BROWSER=f"{browser} %s", TMPDIR=str(tmp_path)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        address = process.stdout.readline().strip()
        while not opened.exists():
            assert process.poll() is None
        file = Path(unquote(urlsplit(opened.read_text()).path))
        assert f'content="0;url={address}"' in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
        process.send_signal(end)
        assert process.communicate(timeout=20)[1] == ""
        assert not file.exists()
    finally:
        process.kill()
        process.communicate()


def test_no_place_for_the_file_that_a_browser_opens(monkeypatch, capsys):
    """
    The page is served, and the error says why no browser opens.
    """
    from promptkit.cli import preview_server

    def full(**_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("promptkit.files.scratch.mkstemp", full)
    with ExitStack() as ends:
        preview_server._open("http://127.0.0.1:1/", ends)

    assert capsys.readouterr().err.startswith("promptkit: no browser is opened, as no temporary file can be")
