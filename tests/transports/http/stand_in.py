"""
`promptkit serve` with an application of few lines in place of the real one, to test all that is around it.

Run as a script, its arguments are those of `promptkit`, after some settings as JSON: limits of connections,
and how long it may be unable to accept any (`deaf_s`).
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
    """The memory of this process, in bytes; 0 where nothing says it."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
    except OSError:
        return 0


def open_all():
    """Open files until no more can be opened."""
    with suppress(OSError):
        while True:
            os.open(os.devnull, os.O_RDONLY)


#: What others' code may do by mistake, by the path that asks for it.
MISTAKES = {"/greedy": open_all, "/crash": lambda: os.kill(os.getpid(), 9)}


class StandIn:
    """Answers with its process, slowly, or without an end, as the path says."""

    def __init__(self, catalog):
        self.draining = False
        self.catalog = catalog
        self.ending = None
        self.running = 0
        self.loop = None
        self.flooding = 0

    def start(self):
        """There are no threads."""

    async def __call__(self, scope, receive, send):
        """Answer, and count what runs."""
        self.loop, self.ending = asyncio.get_running_loop(), self.ending or asyncio.Event()
        self.running += 1
        try:
            await self.answer(scope, receive, send)
        finally:
            self.running -= 1

    async def answer(self, scope, receive, send):
        """Answer what the path asks for."""
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
        said = {
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
        content = json.dumps(said).encode()
        headers = [*JSON, (b"content-length", str(len(content)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": content})

    async def stream(self, send):
        """A line now, and one at the end."""
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"data: begun\n\n", "more_body": True})
        await self.ending.wait()
        await send({"type": "http.response.body", "body": b"data: ended\n\n"})

    async def flood(self, receive, send):
        """More than anybody reads."""
        headers = [(b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        writing = asyncio.create_task(self.write_on(send))
        self.flooding += 1
        while (await receive())["type"] != "http.disconnect":
            pass
        self.flooding -= 1
        writing.cancel()

    async def write_on(self, send):
        """Write until cancelled."""
        while True:
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})

    def replace(self, catalog):
        """Serve another catalog."""
        self.catalog = catalog

    def is_idle(self):
        """Whether no request has come for a second."""
        return True

    def close(self, grace):
        """End streams, and wait for what runs."""
        until = time.monotonic() + grace
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.ending.set)
        while self.running and time.monotonic() < until:
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
        from promptkit.transports.http.connection_limits import ConnectionLimits

        worker._SWEEP_EVERY_S = 0.2  # limits of less than a second hold, too
        worker._ACCEPT_TIMEOUT_S = limits.pop("deaf_s", 0.6)
        serve_http._connection_limits = lambda _options: ConnectionLimits(**limits)
    sys.argv[1:] = arguments
    return command()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
