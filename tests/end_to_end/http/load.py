"""
Clients that go on asking until they are told to end, and then say what came of it, as JSON.

It is run as a program, with an address, how many clients there are, and how many requests they send at least.
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

#: Each client asks this often before it is asked itself.
PLAIN_BETWEEN = 3


class Load:
    """What the clients share."""

    def __init__(self, address, port, least):
        self.address, self.port, self.least = address, port, least
        self.numbers = count(1)
        self.sent = 0
        self.is_ending = False
        self.faults = []
        self.served, self.crossed = Counter(), Counter()

    @property
    def goes_on(self):
        """Whether there is more to ask."""
        return not self.faults and (not self.is_ending or self.sent < self.least)

    async def run(self, clients):
        """Ask with so many clients; return what came of it."""
        await asyncio.gather(self.listen(), *(self.client() for _ in range(clients)))
        found = {"sent": self.sent, "faults": self.faults, "served": self.served, "crossed": self.crossed}
        return {name: dict(value) if isinstance(value, Counter) else value for name, value in found.items()}

    async def listen(self):
        """Note that standard input has ended."""
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
        self.is_ending = True

    async def client(self):
        """Ask on one connection after the other."""
        while self.goes_on:
            reader, writer = await asyncio.open_connection(self.address, self.port)
            try:
                while self.goes_on and await self.round(reader, writer):
                    pass
            except (OSError, EOFError, ValueError) as error:
                self.faults.append(repr(error))
            finally:
                writer.close()

    async def round(self, reader, writer):
        """Ask a few times, and answer a question; return whether the connection stays."""
        for _ in range(PLAIN_BETWEEN):
            number = next(self.numbers)
            result, _, stays = await self.ask(reader, writer, name="greet", arguments={"name": f"n{number}"})
            self.expect(result, f"Hello, n{number}.")
            if not stays:
                return False
        asked, first, stays = await self.ask(reader, writer, name="plan")
        if not stays:  # the answer goes over another connection
            reader, writer = await asyncio.open_connection(self.address, self.port)
        answers = {
            key: {"action": "accept", "content": {"goal": f"g{number}"}}
            for key in asked.get("inputRequests", {})
        }
        state = {"inputResponses": answers, "requestState": asked.get("requestState")}
        result, second, still = await self.ask(reader, writer, name="plan", **state)
        self.expect(result, f"Plan g{number}.")
        self.crossed["others" if first != second else "same"] += 1
        if not stays:
            writer.close()
        return stays and still

    def expect(self, result, text):
        """Note what is not as it has to be."""
        came = [message["content"]["text"] for message in result.get("messages", [])]
        if came != [text]:
            self.faults.append(f"{text!r} was to come, not {result}")

    async def ask(self, reader, writer, **params):
        """Send a request; return its result, who answered, and whether the connection stays."""
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
        found = dict(line.split(": ", 1) for line in head[1:] if line)
        reply = await reader.readexactly(int(found["content-length"]))
        self.sent += 1
        server = found.get("x-upstream", "").rsplit(", ", 1)[-1]
        self.served[server] += 1
        if " 200 " not in head[0]:
            self.faults.append(f"{head[0]}: {reply[:300]!r}")
            return {}, server, True
        return json.loads(reply).get("result", {}), server, found.get("connection") != "close"


if __name__ == "__main__":
    address, port, clients, least = sys.argv[1], *map(int, sys.argv[2:])
    print(json.dumps(asyncio.run(Load(address, port, least).run(clients))))  # noqa: T201 (it is a program)
