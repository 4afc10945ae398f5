"""Memory does not grow with the number of reloads: previous versions are freed."""

import os
import sys
import time
from pathlib import Path

import pytest

from tests.wire import HANDSHAKES, modern

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")

#: A recipe of one mebibyte that fills all kinds of caches with objects of its version.
RECIPE = '''
import sys
from dataclasses import dataclass
from typing import Annotated, Optional, overload

import attrs
from promptkit import Arg, Text, prompt, register_type, resource
from promptkit.fragments import fill

VERSION = "{version}"
DATA = VERSION.encode() * (2**20 // len(VERSION))
LONG = "{{{{word}}}} " + VERSION * (50_000 // len(VERSION))


class Money:
    def __init__(self, text):
        self.text, self.data = text, DATA


register_type(Money, Money, expected="an amount", write=lambda money: money.text)


@dataclass
class Point:
    x: int
    prices: list[Money]


@attrs.frozen
class Line:
    start: Point
    version_{version}: int = 0


@overload
def shown(value: int) -> str: ...
{blank}
@overload
def shown(value: str) -> str: ...
def shown(value):
    return str(value)


def words(typed):
    return [VERSION, DATA[:1].decode()]


@prompt
def plain(word: Annotated[str, Arg("A word of {version}", complete=words)] = "x"):
    """Say the version {version}."""
    return VERSION


@prompt
def filled(word: Annotated[Optional[str], Arg("A word", complete=words)] = None):
    return Text(fill(LONG, word=word or VERSION).text[-100:])


@prompt
def typed(line: Annotated[Optional[Line], Arg("A line")] = None, price: Money | None = None):
    return f"{{line}} {{price}}"[:100]


@prompt
async def later():
    yield VERSION


@resource("data://all/{{part}}")
def data(part: int) -> bytes:
    return DATA[:part]
'''

#: Reloads without waiting for an editor to finish: the files are replaced atomically.
SERVER = """
import sys
from promptkit.compiler import reloading
from promptkit.loader.watching import Debounce
reloading.DEBOUNCE = Debounce(quiet=2, at_most=50, every=20)
from promptkit.cli import main
main(sys.argv[1:])
"""

LINE = '{{"start": {{"x": 1, "prices": ["{0}"]}}, "version_{0}": 2}}'
#: Number of reloads before memory is measured for the first time.
EARLY = 50


class Author:
    """An author who saves the recipe with old timestamps, and checks that it is served."""

    def __init__(self, serving, file):
        self.serving = serving
        self.file = Path(file)

    def save(self, number):
        """Replace the file, wait until it is served, and use all its features."""
        version, new = f"v{number:06}", self.file.with_suffix(".new")
        new.write_text(RECIPE.format(version=version, blank="\n" * (number % 7)))
        os.utime(new, (10**9 + number, 10**9 + number))
        new.replace(self.file)
        deadline = time.monotonic() + 20
        while self.get("plain") != version:
            assert time.monotonic() < deadline, self.serving.tail()
            time.sleep(0.001)
        assert self.get("later") == version
        assert self.get("filled", word=version).endswith(version[-1])
        assert "Line" in self.get("typed", line=LINE.format(version), price="3")
        self.ask("resources/read", uri="data://all/10")
        reference = {
            "ref": {"type": "ref/prompt", "name": "plain"},
            "argument": {"name": "word", "value": "v"},
        }
        assert version in self.ask("completion/complete", **reference)["completion"]["values"]

    def get(self, name, **arguments):
        """Return the text of a prompt."""
        result = self.ask("prompts/get", name=name, arguments=arguments)
        return result["messages"][0]["content"]["text"]

    def ask(self, method, **params):
        """Return the result of a request."""
        reply, _ = self.serving.ask(modern(f"{method} {time.monotonic()}", method, params))
        assert "result" in reply, f"{reply}\n{self.serving.tail()}"
        self.serving.lines.clear()
        return reply["result"]


@pytest.mark.timeout(180)
def test_memory_of_many_reloads(serve, recipes, amount, figures):
    """
    After many reloads of a recipe of one mebibyte, a server takes at most 15 % more memory than after fifty.
    """
    last = amount(500, 500, 90)
    folder = recipes(recipe=RECIPE.format(version="v000000", blank=""))
    serving = serve("--completion-rate", "1000000", folder=folder, program=("-c", SERVER))
    memory, started = {}, time.monotonic()
    serving.open(HANDSHAKES[-1])
    author = Author(serving, folder / "recipe.py")
    for number in range(1, last + 1):
        author.save(number)
        if number in (EARLY, last):
            memory[number] = serving.memory()
    figures(
        seconds=round(time.monotonic() - started, 1),
        MiB={number: round(size / 2**20, 1) for number, size in memory.items()},
    )

    assert memory[last] <= 1.15 * memory[EARLY]
