"""Endless output of recipes is stopped by the limit for replies, without growing memory."""

import re
import sys

import pytest

from tests.faults.test_memory import MIB, memory_growth
from tests.wire import HANDSHAKES, line, modern

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")

RECIPE = """
from itertools import repeat

from promptkit import Workflow, assistant, prompt, user

LARGE = "x" * 100_000

@prompt
def plain():
    while True:
        yield user(LARGE + "y")

@prompt
async def later():
    while True:
        yield user(LARGE + "y")

@prompt
def short():
    while True:
        yield "x"

@prompt
def nested():
    return ["one", (assistant(LARGE + "y") for _ in repeat(None))]

@prompt
def same():
    return Workflow([*user(LARGE)] * 100_000)

@prompt
def inner():
    yield from plain()

@prompt
def echo(text: str = "x", more: list[str] | None = None):
    return f"Said: {text}"
"""

ENDLESS = re.findall(r"def (\w+)\(\):", RECIPE)


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_prompt_is_stopped(serve, recipes, name):
    """
    The request gets an error, the log names the prompt and the option for larger replies, and the next
    request is served.
    """
    serving = serve("--max-reply", str(MIB), "--timeout", "20", folder=recipes(endless=RECIPE))
    serving.open(HANDSHAKES[-1])
    serving.ask(modern("warm", "prompts/get", {"name": "echo"}))

    growth, reply = memory_growth(serving, line(modern(1, "prompts/get", {"name": name})))

    assert serving.is_serving()
    serving.end()  # all of standard error is written by now

    match = re.fullmatch(rf"prompt '{name}' failed \(error (\w+)\)", reply["error"]["message"])
    log = serving.log.read_text()
    assert f"promptkit: error {match[1]} in prompt '{name}':\nprompt '{name}' (" in log
    assert "more than 1,048,576 bytes, in" in log
    assert "use --max-reply to raise a server's limit" in log
    assert growth < 24 * MIB
