"""What an author's code says without an end is stopped by the limit of a reply, and takes no more memory."""

import re
import sys

import pytest

from tests.faults.test_memory import MIB, grown
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
def test_a_prompt_without_an_end(serve, recipes, name):
    """
    It is refused at once, the author is told where it is and what to do, and the next request is served.
    """
    serving = serve("--max-reply", str(MIB), "--timeout", "20", folder=recipes(endless=RECIPE))
    serving.open(HANDSHAKES[-1])
    serving.ask(modern("warm", "prompts/get", {"name": "echo"}))

    more, reply = grown(serving, line(modern(1, "prompts/get", {"name": name})))

    assert serving.serves()
    serving.end()  # now all of standard error is written

    told = re.fullmatch(rf"prompt '{name}' failed \(error (\w+)\)", reply["error"]["message"])
    said = serving.log.read_text()
    assert f"promptkit: error {told[1]} in prompt '{name}':\nprompt '{name}' (" in said
    assert "more than 1,048,576 bytes, in" in said
    assert "--max-reply lets a server send more" in said
    assert more < 24 * MIB
