"""`promptkit dev`: a real process, its address, and its shutdown."""

import re
import signal
import socket
import subprocess
import sys
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from promptkit.errors.distribution import install_command
from tests.terminal import COMMAND, command, environment

pytest.importorskip("starlette")

GREET = "from promptkit import prompt\n@prompt\ndef greet(name: str = 'you'):\n    return f'Hello, {name}.'\n"


#: The command line with a short timeout for request heads.
SHORT_TIMEOUT = [
    sys.executable,
    "-c",
    """
import sys
from promptkit.cli import main
from promptkit.cli import dev
from promptkit.transports.http.connection import ConnectionLimits
dev._LIMITS = ConnectionLimits(head_s=0.2)
sys.exit(main())
""",
]


class Browser:
    """A browser that has opened the printed address of a preview."""

    def __init__(self, address):
        self.host, path = re.fullmatch(r"http://(127\.0\.0\.1:\d+)(/\?access-token=\S+)\n", address).groups()
        response = self.get(path)
        assert response.status == 303
        self.cookie = response.headers["set-cookie"].partition(";")[0]

    cookie = ""

    def get(self, path):
        """Send a request and return the response, whose body is not read yet."""
        connection = HTTPConnection(self.host, timeout=20)
        connection.request("GET", path, headers={"Cookie": self.cookie, "Connection": "close"})
        return connection.getresponse()


@contextmanager
def running(folder, *words, program=COMMAND, **variables):
    """Run a preview; yield its process and a browser."""
    process = subprocess.Popen(
        [*program, "dev", *words, "--no-open"],
        cwd=folder.parent,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        yield process, Browser(process.stdout.readline())
    finally:
        process.kill()
        process.communicate()


def interrupt(process):
    """Press Ctrl-C; return the exit code and standard error."""
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=20)
    return process.returncode, stderr


def test_page_and_reload(recipes):
    """The page is served until Ctrl-C; a save notifies open pages, which do not delay the shutdown."""
    folder = recipes(greet=GREET)
    with running(folder, "--port", "0") as (process, browser):
        assert b"Hello, you." in browser.get("/prompts/greet").read()
        events = browser.get("/events?version=0")
        (folder / "more.py").write_text(GREET.replace("greet", "more"))
        lines = iter(events.readline, b"event: reload\n")
        assert all(lines)
        assert b"added more" in events.readline()
        assert b"Hello, you." in browser.get("/prompts/more").read()
        assert interrupt(process) == (130, "")


def test_a_server_of_another_program(scripted, recipes):
    """The prompts of a server are shown, and the server stops with the preview."""
    text = {"type": "text", "text": "Hello from the server."}
    replies = {
        "prompts/list": {"prompts": [{"name": "greet", "description": "Say hello."}]},
        "prompts/get": {"messages": [{"role": "user", "content": text}]},
        "tools/list": {"tools": []},
    }
    with running(recipes(), "--server", scripted(replies=replies), "--port", "0") as (process, browser):
        assert b"Say hello." in browser.get("/").read()
        assert b"Hello from the server." not in browser.get("/prompts/greet").read()
        assert interrupt(process) == (130, "")


def test_signal_after_the_address(recipes):
    """A signal stops the preview cleanly as soon as the address is printed."""
    folder = recipes(greet=GREET)
    for _ in range(2):
        with running(folder, "--port", "0") as (process, _):
            process.send_signal(signal.SIGTERM)
            assert (process.communicate(timeout=20)[1], process.returncode) == ("", 0)


def test_incomplete_head(recipes):
    """A connection with an incomplete head gets 408, because the preview uses the HTTP server of `serve`."""
    folder = recipes(greet=GREET)
    with running(folder, "--port", "0", program=SHORT_TIMEOUT) as (process, browser):
        host, _, port = browser.host.partition(":")
        with socket.create_connection((host, int(port)), timeout=20) as connection:
            connection.sendall(b"GET / HTTP/1.1\r\nhost:")
            assert connection.makefile("rb").read().startswith(b"HTTP/1.1 408 ")
        assert interrupt(process) == (130, "")


def test_recipe_that_prints_and_hangs(recipes):
    """Output of recipes goes to standard error, and a hanging recipe does not delay the shutdown."""
    folder = recipes(
        noisy="import os, time\nfrom promptkit import prompt\nprint('imported')\n"
        "@prompt\ndef noisy():\n    print('rendered'); os.system('echo child')\n    return 'Done.'\n"
        "@prompt(timeout=0.05)\ndef hangs():\n    time.sleep(50)\n    return 'Late.'\n"
    )
    with running(folder, "--port", "0") as (process, browser):
        assert b"<p>Done.</p>" in browser.get("/prompts/noisy").read()
        assert b"took longer than its limit of 0.05 s" in browser.get("/prompts/hangs").read()
        assert interrupt(process) == (130, "imported\nrendered\nchild\n")


def test_ports(recipes):
    """If the default port is in use, another port is chosen; a requested port is not replaced."""
    folder = recipes(greet=GREET)
    with running(folder) as (_, first), running(folder) as (_, second):
        assert first.host != second.host
        port = second.host.partition(":")[2]
        code, out, err = command("dev", "--no-open", "--port", port, cwd=folder.parent)

    assert (code, out) == (2, b"")
    assert err.decode().startswith(f"promptkit: cannot listen on 127.0.0.1, port {port}: another server")


@pytest.mark.parametrize(
    ("words", "message"),
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
def test_usage_errors(words, message, recipes):
    """The last line explains the error."""
    code, out, err = command("dev", *words, "--no-open", cwd=recipes(greet=GREET).parent)

    assert (code, out, err.decode().splitlines()[-1]) == (2, b"", message)


def test_missing_extra(recipes, tmp_path):
    """The error names the command that installs the missing library."""
    (tmp_path / "missing").mkdir()
    (tmp_path / "missing" / "jinja2.py").write_text("raise ModuleNotFoundError(name='jinja2')\n")

    code, out, err = command(
        "dev", cwd=recipes(greet=GREET).parent, env={"PYTHONPATH": str(tmp_path / "missing")}
    )

    assert (code, out) == (2, b"")
    assert err.decode() == f"promptkit: dev needs jinja2: {install_command('preview')}\n"


@pytest.mark.parametrize("signal_number", [signal.SIGINT, signal.SIGTERM])
def test_browser(signal_number, recipes, tmp_path):
    """
    The browser opens a private file that redirects to the address, and that is deleted on exit.

    The address on the command line of the browser would be visible to other users.
    """
    url_file = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f"#!/bin/sh\nprintf '%s' \"$1\" > {url_file}.part; mv {url_file}.part {url_file}\n")
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
        while not url_file.exists():
            assert process.poll() is None
        file = Path(unquote(urlsplit(url_file.read_text()).path))
        assert f'content="0;url={address}"' in file.read_text()
        assert file.stat().st_mode & 0o777 == 0o600
        process.send_signal(signal_number)
        assert process.communicate(timeout=20)[1] == ""
        assert not file.exists()
    finally:
        process.kill()
        process.communicate()
