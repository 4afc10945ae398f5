"""A soak over HTTP: many requests, reloads and clients that leave keep no thread, socket or memory."""

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.wire import modern

RECIPE = '''
import asyncio
import time
from promptkit import prompt

VERSION = "{version}"

@prompt
def plain(word: str = "x"):
    """Answer at once."""
    return f"{{VERSION}} {{word}}"

@prompt
async def waits():
    """Wait without holding a thread."""
    await asyncio.sleep(0.001)
    return VERSION

@prompt
def sleeps():
    """Hold a thread."""
    time.sleep(0.02)
    return VERSION

@prompt
def works():
    """Hold the processor."""
    end = time.monotonic() + 0.02
    while time.monotonic() < end:
        pass
    return VERSION

@prompt
def fails():
    """Raise an exception."""
    raise LookupError(VERSION)

@prompt(timeout=0.05)
async def overdue():
    """Take longer than its own limit."""
    await asyncio.sleep(60)

@prompt
async def late():
    """Take longer than anybody waits."""
    await asyncio.sleep(60)
'''

#: How many clients there are at once, and of how many requests one is not plain.
CLIENTS = 32
ROUND = 100

#: In how many parts the requests are sent; after each the recipes change.
PARTS = 10

#: How long the server is given to come to rest, in seconds.
REST = 20.0


def posted(message, **fields):
    """A message as it is sent over HTTP."""
    body = json.dumps(message).encode()
    name = message["params"].get("name")
    head = {
        "Host": "127.0.0.1",
        "Content-Type": "application/json",
        "Content-Length": len(body),
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": message["method"],
        **({"Mcp-Name": name} if name else {}),
        **fields,
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in head.items())
    return f"POST /mcp HTTP/1.1\r\n{lines}\r\n".encode() + body


def get(name):
    """A request for a prompt."""
    return posted(modern(1, "prompts/get", {"name": name}))


PLAIN, OTHERS = get("plain"), [get(name) for name in ("waits", "sleeps", "works", "fails", "overdue")]
LATE = get("late")
LISTEN = posted(modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}}))


class Server:
    """A process that serves a folder over HTTP."""

    def __init__(self, folder, log, *options):
        self.log = log
        command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--http", "0", *options]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=file)
        until = time.monotonic() + REST
        while not (found := re.search(r"127\.0\.0\.1:(\d+)", log.read_text())):
            assert time.monotonic() < until, log.read_text()
            time.sleep(0.02)
        self.port = int(found[1])

    def use(self):
        """How many threads and descriptors it has."""
        folder = Path(f"/proc/{self.process.pid}")
        return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))

    def rested(self, most=(0, 0)):
        """How many threads and descriptors it has once it is at rest; waits for no more than *most*."""
        until, found = time.monotonic() + REST, self.use()
        since = time.monotonic()
        while time.monotonic() < until:
            time.sleep(0.1)
            if (now := self.use()) != found:
                found, since = now, time.monotonic()
            elif time.monotonic() - since > 2 and (most == (0, 0) or now <= most):
                break
        return found

    def memory(self):
        """Its memory, in bytes."""
        (resident,) = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(resident) * 1024


async def one(port, request):
    """Send a request on a connection of its own, and leave without the reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if request is LISTEN:
        await reader.readuntil(b"acknowledged")
    else:
        await asyncio.sleep(0.02)
    writer.transport.abort()


async def client(port, first, count, statuses):
    """Send requests one after the other, and leave some of them alone."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(first, first + count):
        if number % ROUND == 50:
            await one(port, LATE if number % (2 * ROUND) == 50 else LISTEN)
        writer.write(OTHERS[number // ROUND % len(OTHERS)] if number % ROUND == 0 else PLAIN)
        head = await reader.readuntil(b"\r\n\r\n")
        (size,) = re.findall(rb"content-length: (\d+)", head)
        await reader.readexactly(int(size))
        statuses[head[9:12]] = statuses.get(head[9:12], 0) + 1
    writer.close()
    await writer.wait_closed()


async def soak(port, count, statuses):
    """Have all clients send *count* requests together."""
    starts = range(0, 10 * CLIENTS, 10)  # so that a short soak has requests of all kinds, too
    await asyncio.gather(*(client(port, start, count // CLIENTS, statuses) for start in starts))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads and memory are read from /proc")
def test_soak(tmp_path, amount, figures):
    """
    At the end, threads, descriptors and memory are those of the first tenth, and every request was answered.
    """
    folder, count = tmp_path / "soaked", amount(500_000, 16_000, 4_000)
    folder.mkdir()
    recipe = folder / "recipe.py"
    recipe.write_text(RECIPE.format(version="v0"))
    server = Server(folder, tmp_path / "stderr")
    statuses, use, memory, started = {}, [], [], time.monotonic()
    try:
        for part in range(1, PARTS + 1):
            asyncio.run(soak(server.port, count // PARTS, statuses))
            recipe.write_text(RECIPE.format(version=f"v{part}"))
            if part in (1, PARTS):
                use.append(server.rested(use[0] if use else (0, 0)))
            memory.append(server.memory())
        took = time.monotonic() - started
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(REST)
    finally:
        server.process.kill()
        server.process.wait()
    figures(
        requests=sum(statuses.values()),
        seconds=round(took, 1),
        threads_and_descriptors=use,
        memory_MiB=[round(size / 2**20, 1) for size in memory],
    )

    assert statuses == {b"200": count // PARTS // CLIENTS * CLIENTS * PARTS}
    assert use[-1][0] <= use[0][0]
    assert use[-1][1] <= use[0][1]
    assert memory[-1] < memory[0] * 1.1
    assert code == 0
