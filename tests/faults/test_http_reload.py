"""Reloads under load over HTTP: recipes are saved repeatedly, and no request is lost."""

import asyncio
import re
import signal
import sys
from collections import Counter

import pytest

from tests.faults.test_http_soak import WAIT_S, Server, get_request

RECIPE = '''
from promptkit import prompt

@prompt
def plain():
    """Return the version."""
    return "version {version}."
'''

PLAIN = get_request("plain")
CLIENTS = 16

#: The minimum number of saves.
MIN_SAVES = 5


class Load:
    """Clients with their own connections, and the counts of their replies."""

    def __init__(self, port):
        self.port = port
        self.statuses, self.versions = Counter(), Counter()
        self.lost = 0
        self.ends = False

    async def client(self):
        """Send requests repeatedly, and reconnect when a connection ends."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        while not self.ends:
            try:
                await self.ask(reader, writer)
            except (OSError, asyncio.IncompleteReadError):
                self.lost += 1
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.close()

    async def ask(self, reader, writer):
        """Send a request, and record the status and version of the reply."""
        writer.write(PLAIN)
        head = await reader.readuntil(b"\r\n\r\n")
        (size,) = re.findall(rb"content-length: (\d+)", head)
        body = await reader.readexactly(int(size))
        self.statuses[head[9:12]] += 1
        self.versions.update(map(int, re.findall(rb"version (\d+)\.", body)))


async def run(load, recipe, count):
    """
    Save the recipe whenever the last version is served, until *count* requests are answered; return the
    number of saves.
    """
    clients = asyncio.gather(*(load.client() for _ in range(CLIENTS)))
    saved = 0
    while load.statuses.total() < count or saved < MIN_SAVES:
        saved += 1
        recipe.write_text(RECIPE.format(version=saved))
        async with asyncio.timeout(WAIT_S):
            while not load.versions[saved]:  # noqa: ASYNC110 (clients set no event for each reply)
                await asyncio.sleep(0.01)
    load.ends = True
    await clients
    return saved


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no workers")
@pytest.mark.parametrize("workers", ["1", "2"])
def test_no_request_is_lost_during_reloads(tmp_path, amount, figures, workers):
    """Every request is answered with 200, and every version is served."""
    folder, count = tmp_path / "saved", amount(100_000, 4_000, 2_000)
    folder.mkdir()
    recipe = folder / "recipe.py"
    recipe.write_text(RECIPE.format(version=0))
    server = Server(folder, tmp_path / "stderr", "--workers", workers)
    load = Load(server.port)
    try:
        saved = asyncio.run(run(load, recipe, count))
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(WAIT_S)
    finally:
        server.process.kill()
        server.process.wait()
    answered = load.statuses.total()
    figures(requests=answered, lost=load.lost, reloads=saved)

    assert (load.lost, set(load.statuses)) == (0, {b"200"})
    assert load.versions.total() == answered
    assert set(load.versions) == set(range(saved + 1))
    assert code == 0
