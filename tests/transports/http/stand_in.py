"""
`promptkit serve` with a minimal application in place of the real one, to test the code around it.

As a script, it takes settings as JSON (connection limits, and `deaf_s`: how long the server can fail to
accept connections), then the arguments of `promptkit`.
"""

import asyncio
import json
import os
import sys
import time
from contextlib import suppress
from pathlib import Path

JSON = [(b"content-type", b"application/json")]


def resident():
    """Return the resident memory of this process in bytes, or 0 if it is unknown."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def open_all():
    """Open files until no more can be opened."""
    with suppress(OSError):
        while True:
            os.open(os.devnull, os.O_RDONLY)


#: Mistakes of foreign code, by the path that triggers them.
MISTAKES = {"/greedy": open_all, "/crash": lambda: os.kill(os.getpid(), 9)}


class StandIn:
    """An application that, depending on the path, replies with its process id, slowly, or endlessly."""

    def __init__(self, catalog):
        self.draining = False
        self.catalog = catalog
        self.ending = None
        self.running = 0
        self.loop = None
        self.flooding = 0

    def join(self, siblings, number):
        """Do nothing, because there are no messages for other workers."""

    def start(self):
        """Do nothing, because there are no threads."""

    async def __call__(self, scope, receive, send):
        """Count and answer a request."""
        self.loop, self.ending = asyncio.get_running_loop(), self.ending or asyncio.Event()
        self.running += 1
        try:
            await self.answer(scope, receive, send)
        finally:
            self.running -= 1

    async def answer(self, scope, receive, send):
        """Answer depending on the path."""
        path = scope["path"]
        body = b""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            if not message["more_body"]:
                break
        if path == "/stream":
            await self.stream(send)
            return
        if path == "/flood":
            await self.flood(receive, send)
            return
        MISTAKES.get(path, bool)()
        if path == "/print":
            sys.stderr.write("x" * 1_000_000 + "\n")
        if path == "/late":
            await self.ending.wait()
        if path in ("/slow", "/late"):
            await asyncio.sleep(float(scope["query_string"]))
        content = {
            "pid": os.getpid(),
            "path": path,
            "length": len(body),
            "headers": [
                [name.decode("latin-1"), value.decode("latin-1")] for name, value in scope["headers"]
            ],
            "prompts": [prompt.name for prompt in self.catalog.prompts],
            "flooding": self.flooding,
            "memory": resident(),
        }
        body_bytes = json.dumps(content).encode()
        headers = [*JSON, (b"content-length", str(len(body_bytes)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": body_bytes})

    async def stream(self, send):
        """Send one line now, and one when the server closes."""
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"data: started\n\n", "more_body": True})
        await self.ending.wait()
        await send({"type": "http.response.body", "body": b"data: ended\n\n"})

    async def flood(self, receive, send):
        """Send more than any client reads."""
        headers = [(b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        writer = asyncio.create_task(self.write_on(send))
        self.flooding += 1
        while (await receive())["type"] != "http.disconnect":
            pass
        self.flooding -= 1
        writer.cancel()

    async def write_on(self, send):
        """Write until cancelled."""
        while True:
            await send({"type": "http.response.body", "body": b"x" * 1_000_000, "more_body": True})

    def replace(self, catalog):
        """Serve another catalog."""
        self.catalog = catalog

    def is_idle(self):
        """Return True, because the stand-in never delays a reload."""
        return True

    def close(self, grace):
        """Close the streams, and wait for running requests."""
        deadline = time.monotonic() + grace
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.ending.set)
        while self.running and time.monotonic() < deadline:
            time.sleep(0.005)


def main(settings, *arguments):
    """Run the command line with the stand-in."""
    from functools import partial

    from promptkit.cli import main as command
    from promptkit.cli import serve_http

    serve_http.application_factory = lambda _options, _reloader, catalog, _listening: partial(
        StandIn, catalog
    )
    if limits := json.loads(settings):
        from promptkit.transports.http import worker
        from promptkit.transports.http.connection import ConnectionLimits

        worker._SWEEP_EVERY_S = 0.2  # so that limits of less than a second are enforced
        worker._ACCEPT_TIMEOUT_S = limits.pop("deaf_s", 0.6)
        serve_http._connection_limits = lambda _options: ConnectionLimits(**limits)
    sys.argv[1:] = arguments
    return command()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
