"""A soak test over HTTP: requests, reloads and disconnecting clients leak no threads, sockets or memory."""

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
    """Reply immediately."""
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
    """Take longer than any client waits."""
    await asyncio.sleep(60)
'''

#: The number of clients, and the number of requests of which one is not plain.
CLIENTS = 32
ROUND = 100

#: The number of parts in which the requests are sent; after each, the recipe changes.
PARTS = 10

#: The timeout for the server to start, become idle or exit, in seconds.
WAIT_S = 20.0


def http_request(message, **fields):
    """Return a message as an HTTP request."""
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


def get_request(name):
    """Return a request for a prompt."""
    return http_request(modern(1, "prompts/get", {"name": name}))


PLAIN, UNUSUAL = (
    get_request("plain"),
    [get_request(name) for name in ("waits", "sleeps", "works", "fails", "overdue")],
)
LATE = get_request("late")
LISTEN = http_request(modern(1, "subscriptions/listen", {"notifications": {"promptsListChanged": True}}))


class Server:
    """A process that serves a folder over HTTP."""

    def __init__(self, folder, log, *options):
        self.log = log
        command = [sys.executable, "-m", "promptkit", "serve", str(folder), "--http", "0", *options]
        with log.open("wb") as file:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stderr=file)
        deadline = time.monotonic() + WAIT_S
        while not (match := re.search(r"127\.0\.0\.1:(\d+)", log.read_text())):
            assert time.monotonic() < deadline, log.read_text()
            time.sleep(0.02)
        self.port = int(match[1])

    def usage(self):
        """Return the numbers of threads and descriptors."""
        folder = Path(f"/proc/{self.process.pid}")
        return len(list((folder / "task").iterdir())), len(list((folder / "fd").iterdir()))

    def wait_until_idle(self, limit=(0, 0)):
        """
        Wait until the numbers of threads and descriptors are stable and at most *limit*, and return them.
        """
        deadline, usage = time.monotonic() + WAIT_S, self.usage()
        since = time.monotonic()
        while time.monotonic() < deadline:
            time.sleep(0.1)
            if (current := self.usage()) != usage:
                usage, since = current, time.monotonic()
            elif time.monotonic() - since > 2 and (limit == (0, 0) or current <= limit):
                break
        return usage

    def memory(self):
        """Return the resident memory in bytes."""
        (resident,) = re.findall(r"VmRSS:\s+(\d+)", Path(f"/proc/{self.process.pid}/status").read_text())
        return int(resident) * 1024


async def abandon_request(port, request):
    """Send a request on a new connection, and disconnect without the reply."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    if request is LISTEN:
        await reader.readuntil(b"acknowledged")
    else:
        await asyncio.sleep(0.02)
    writer.transport.abort()


async def run_client(port, first, count, statuses):
    """Send requests one after the other, and abandon further ones in between."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for number in range(first, first + count):
        if number % ROUND == 50:
            await abandon_request(port, LATE if number % (2 * ROUND) == 50 else LISTEN)
        writer.write(UNUSUAL[number // ROUND % len(UNUSUAL)] if number % ROUND == 0 else PLAIN)
        head = await reader.readuntil(b"\r\n\r\n")
        (size,) = re.findall(rb"content-length: (\d+)", head)
        await reader.readexactly(int(size))
        statuses[head[9:12]] = statuses.get(head[9:12], 0) + 1
    writer.close()
    await writer.wait_closed()


async def soak(port, count, statuses):
    """Send *count* requests from all clients together."""
    starts = range(0, 10 * CLIENTS, 10)  # so that a short run has requests of all kinds, too
    await asyncio.gather(*(run_client(port, start, count // CLIENTS, statuses) for start in starts))


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="threads and memory are read from /proc")
def test_soak(tmp_path, amount, figures):
    """
    At the end, there are no more threads, descriptors or memory than after the first tenth, and every request
    was answered.
    """
    folder, count = tmp_path / "soaked", amount(500_000, 16_000, 4_000)
    folder.mkdir()
    recipe = folder / "recipe.py"
    recipe.write_text(RECIPE.format(version="v0"))
    server = Server(folder, tmp_path / "stderr")
    statuses, usage, memory, started = {}, [], [], time.monotonic()
    try:
        for part in range(1, PARTS + 1):
            asyncio.run(soak(server.port, count // PARTS, statuses))
            recipe.write_text(RECIPE.format(version=f"v{part}"))
            if part in (1, PARTS):
                usage.append(server.wait_until_idle(usage[0] if usage else (0, 0)))
            memory.append(server.memory())
        seconds = time.monotonic() - started
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(WAIT_S)
    finally:
        server.process.kill()
        server.process.wait()
    figures(
        requests=sum(statuses.values()),
        seconds=round(seconds, 1),
        threads_and_descriptors=usage,
        memory_MiB=[round(size / 2**20, 1) for size in memory],
    )

    assert statuses == {b"200": count // PARTS // CLIENTS * CLIENTS * PARTS}
    assert usage[-1][0] <= usage[0][0]
    assert usage[-1][1] <= usage[0][1]
    assert memory[-1] < memory[0] * 1.1
    assert code == 0
