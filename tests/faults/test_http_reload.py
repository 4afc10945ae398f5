"""Reloads under load over HTTP: recipes are saved again and again, and no request is lost."""

import asyncio
import re
import signal
import sys
from collections import Counter

import pytest

from tests.faults.test_http_soak import REST, Server, get

RECIPE = '''
from promptkit import prompt

@prompt
def plain():
    """Say which version this is."""
    return "version {version}."
'''

PLAIN = get("plain")
CLIENTS = 16

#: How often the recipe is saved at least.
SAVES = 5


class Load:
    """Clients that ask on connections of their own, and what came of that."""

    def __init__(self, port):
        self.port = port
        self.statuses, self.versions = Counter(), Counter()
        self.lost = 0
        self.ends = False

    async def client(self):
        """Ask again and again; connect anew if a connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while not self.ends:
            try:
                await self.ask(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                self.lost += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.close()

    async def ask(self, reader, writer):
        """Ask once, and note the status and the version in the reply."""
        writer.write(PLAIN)
        head = await reader.readuntil(b"\r\n\r\n")
        (size,) = re.findall(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(size))
        self.statuses[head[9:12]] += 1
        self.versions.update(map(int, re.findall(rb"version (\d+)\.", body)))


async def run(load, recipe, count):
    """Save the recipe anew once it is served, until *count* requests are answered; return how often."""
    asking = asyncio.gather(*(load.client() for _ in range(CLIENTS)))
    saved = 0
    while load.statuses.total() < count or saved < SAVES:
        saved += 1
        recipe.write_text(RECIPE.format(version=saved))
        async with asyncio.timeout(REST):
            while not load.versions[saved]:  # noqa: ASYNC110 (clients set no event for each reply)
                await asyncio.sleep(0.01)
    load.ends = True
    await asking
    return saved


@pytest.mark.skipif(sys.platform == "win32", reason="it has no workers")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_is_lost_in_a_reload(tmp_path, amount, figures, workers):
    """However often recipes are saved, every request is answered with 200, and every version is served."""
    folder, count = tmp_path / "saved", amount(100_000, 4_000, 2_000)
    folder.mkdir()
    recipe = folder / "recipe.py"
    recipe.write_text(RECIPE.format(version=0))
    server = Server(folder, tmp_path / "stderr", "--workers", workers)
    load = Load(server.port)
    try:
        saved = asyncio.run(run(load, recipe, count))
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(REST)
    finally:
        server.process.kill()
        server.process.wait()
    answered = load.statuses.total()
    figures(requests=answered, lost=load.lost, reloads=saved)

    assert (load.lost, set(load.statuses)) == (0, {b"200"})
    assert load.versions.total() == answered
    assert set(load.versions) == set(range(saved + 1))
    assert code == 0
