"""Calls that hold up all asynchronous prompts, as they do not await what they wait for."""

import sys
from types import ModuleType

import pytest

from promptkit.errors.rules import Rule

HEAD = """
import asyncio
import os
import subprocess
import time
import time as clock
import urllib.request
from subprocess import check_output
from time import sleep

import httpx
import requests

import promptkit.workspace
from promptkit import prompt
from promptkit.workspace import run, run_async


async def pause(seconds):
    await asyncio.sleep(seconds)

"""


@pytest.fixture
def blocking(found, monkeypatch):
    """A function that returns the remedies for what blocks in the body of a function."""
    for name, home in (("requests", "requests.api"), ("httpx", "httpx")):
        module = ModuleType(name)
        for method in ("get", "post"):
            made = lambda url: url  # noqa: E731 (it is given a name and a home)
            made.__name__, made.__module__ = method, home
            setattr(module, method, made)
        module.Session = type("Session", (), {"get": module.get})
        monkeypatch.setitem(sys.modules, name, module)

    def blocking(body, before="async def"):
        indented = body.replace("\n", "\n    ")
        source = f"{HEAD}@prompt\n{before} subject(name: str):\n    {indented}\n    yield name\n"
        reported = [one for one in found(subject=source) if one.rule is Rule.BLOCKING_CALL]
        return [(one.message.partition(": ")[2].partition("(")[0], one.remedy) for one in reported]

    return blocking


def on_a_thread(called):
    return f"await asyncio.to_thread({called}, ...), or write def, not async def: it waits on a thread"


THERE = on_a_thread("urllib.request.urlopen")
OWN = "await run_async(...) of promptkit.workspace"


@pytest.mark.parametrize(
    ("body", "called", "remedy"),
    [
        ("time.sleep(1)", "time.sleep", "await asyncio.sleep(...)"),
        ("sleep(1)", "sleep", "await asyncio.sleep(...)"),
        ("clock.sleep(1)", "clock.sleep", "await asyncio.sleep(...)"),
        ("import time as later\nlater.sleep(1)", "later.sleep", "await asyncio.sleep(...)"),
        ("from time import sleep as rest\nrest(1)", "rest", "await asyncio.sleep(...)"),
        ("if name:\n    for _ in name:\n        time.sleep(1)", "time.sleep", "await asyncio.sleep(...)"),
        ("async def inner():\n    time.sleep(1)\nawait inner()", "time.sleep", "await asyncio.sleep(...)"),
        ("subprocess.run(['ls'])", "subprocess.run", on_a_thread("subprocess.run")),
        ("x = subprocess.call('ls')", "subprocess.call", on_a_thread("subprocess.call")),
        ("x = check_output(['ls'])", "check_output", on_a_thread("check_output")),
        ("os.system('ls')", "os.system", on_a_thread("os.system")),
        ("urllib.request.urlopen(name).read()", "urllib.request.urlopen", THERE),
        ("requests.get(name).text", "requests.get", on_a_thread("requests.get")),
        ("httpx.post(name)", "httpx.post", on_a_thread("httpx.post")),
        ("input()", "input", "make it a parameter: no person is at the terminal of a server"),
        ("run('git', 'log')", "run", OWN),
        ("promptkit.workspace.run('ls')", "promptkit.workspace.run", OWN),
    ],
)  # fmt: skip
def test_what_waits_without_being_awaited(body, called, remedy, blocking):
    """
    However it was imported, and wherever in the function it stands.
    """
    assert blocking(body) == [(called, remedy)]


@pytest.mark.parametrize(
    "body",
    [
        "await asyncio.sleep(1)",
        "await pause(1)",
        "await asyncio.to_thread(time.sleep, 1)",
        "await asyncio.to_thread(lambda: time.sleep(1))",
        "def wait():\n    time.sleep(1)\nawait asyncio.to_thread(wait)",
        "await run_async('git', 'log')",
        "x = requests.Session().get(name)",
        "x = open(__file__).read()",
        "sleep = pause\nawait sleep(1)",
        "from asyncio import sleep\nawait sleep(1)",
        "import elsewhere as time\ntime.sleep(1)",
        "x = time.monotonic()",
    ],
)
def test_what_holds_up_nothing(body, blocking):
    """
    What is awaited, what runs on a thread, and what only shares a name; small files are read at once.
    """
    assert blocking(body) == []


def test_a_plain_function_may_wait(blocking):
    """
    It is on a thread of its own as soon as it takes long.
    """
    assert blocking("time.sleep(1)", before="def") == []
