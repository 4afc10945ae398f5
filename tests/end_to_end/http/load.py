"""
Clients that send requests until standard input ends, then print their counts and errors as JSON.

The arguments of this program are an address, a port, the number of clients, and the minimum number of
requests.
"""

import asyncio
import json
import sys
from collections import Counter
from itertools import count

HOST = "prompts.example"
VERSION = "2026-07-28"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "load", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}

#: The number of plain requests of a client before each one that leads to an input request.
PLAIN_BETWEEN = 3


class Load:
    """The clients that send requests, and the state that they share."""

    def __init__(self, address, port, minimum):
        self.address, self.port, self.minimum = address, port, minimum
        self.numbers = count(1)
        self.sent = 0
        self.is_ending = False
        self.errors = []
        self.served, self.crossed = Counter(), Counter()

    @property
    def has_more(self):
        """Whether more requests must be sent."""
        return not self.errors and (not self.is_ending or self.sent < self.minimum)

    async def run(self, clients):
        """Send requests with this number of clients, and return the counts."""
        await asyncio.gather(self.listen(), *(self.client() for _ in range(clients)))
        counts = {"sent": self.sent, "errors": self.errors, "served": self.served, "crossed": self.crossed}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in counts.items()}

    async def listen(self):
        """Wait for the end of standard input."""
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        self.is_ending = True

    async def client(self):
        """Send requests on one connection after the other."""
        while self.has_more:
            reader, writer = await asyncio.open_connection(self.address, self.port)
            try:
                while self.has_more and await self.run_round(reader, writer):
                    pass
            except (OSError, EOFError, ValueError) as error:
                self.errors.append(repr(error))
            finally:
                writer.close()

    async def run_round(self, reader, writer):
        """Send a few requests, and answer an input request; return whether the connection stays open."""
        for _ in range(PLAIN_BETWEEN):
            number = next(self.numbers)
            rendered, _, stays_open = await self.ask(
                reader, writer, name="greet", arguments={"name": f"n{number}"}
            )
            self.expect(rendered, f"Hello, n{number}.")
            if not stays_open:
                return False
        result, first, stays_open = await self.ask(reader, writer, name="plan")
        if not stays_open:  # the answer is sent on another connection
            reader, writer = await asyncio.open_connection(self.address, self.port)
        answers = {
            key: {"action": "accept", "content": {"goal": f"g{number}"}}
            for key in result.get("inputRequests", {})
        }
        state = {"inputResponses": answers, "requestState": result.get("requestState")}
        rendered, second, still_open = await self.ask(reader, writer, name="plan", **state)
        self.expect(rendered, f"Plan g{number}.")
        self.crossed["different" if first != second else "same"] += 1
        if not stays_open:
            writer.close()
        return stays_open and still_open

    def expect(self, result, text):
        """Record an unexpected result."""
        texts = [message["content"]["text"] for message in result.get("messages", [])]
        if texts != [text]:
            self.errors.append(f"{text!r} was expected, not {result}")

    async def ask(self, reader, writer, **params):
        """
        Send a request, and return its result, the address of the server, and whether the connection stays
        open.
        """
        message = {"jsonrpc": "2.0", "id": 1, "method": "prompts/get", "params": {**params, "_meta": META}}
        body = json.dumps(message).encode()
        fields = (
            f"POST /mcp HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\n"
            f"accept: application/json, text/event-stream\r\n"
            f"mcp-protocol-version: {VERSION}\r\nmcp-method: prompts/get\r\n"
            f"mcp-name: {params['name']}\r\ncontent-length: {len(body)}\r\n\r\n"
        )
        writer.write(fields.encode() + body)
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower().split("\r\n")
        headers = dict(line.split(": ", 1) for line in head[1:] if line)
        reply = await reader.readexactly(int(headers["content-length"]))
        self.sent += 1
        server = headers.get("x-upstream", "").rsplit(", ", 1)[-1]
        self.served[server] += 1
        if " 200 " not in head[0]:
            self.errors.append(f"{head[0]}: {reply[:300]!r}")
            return {}, server, True
        return json.loads(reply).get("result", {}), server, headers.get("connection") != "close"


if __name__ == "__main__":
    address, port, clients, minimum = sys.argv[1], *map(int, sys.argv[2:])
    print(json.dumps(asyncio.run(Load(address, port, minimum).run(clients))))  # noqa: T201 (a program)
