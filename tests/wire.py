"""How tests speak to a server: lines, replies, and the published schemas."""

import json
from functools import cache
from pathlib import Path

import jsonschema
import pytest

from promptkit.server import Server

#: Where the published schemas lie for those who develop promptkit; users do not have them.
SCHEMAS = Path(__file__).parents[2] / "shared" / "schema"

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]


def line(message) -> bytes:
    """Return *message* as one line."""
    return json.dumps(message).encode() + b"\n"


def request(number, method, params=None) -> dict:
    """Return a request."""
    members = {"jsonrpc": "2.0", "id": number, "method": method}
    return members if params is None else {**members, "params": params}


def initialize(revision, number=0) -> dict:
    """Return the opening of a handshake."""
    client = {"name": "test", "version": "3.1"}
    params = {"protocolVersion": revision, "capabilities": {"roots": {}}, "clientInfo": client}
    return request(number, "initialize", params)


class Client:
    """A client of a server in the same process."""

    def __init__(self, catalog, revision="2025-11-25"):
        self.sent = []
        self.server = Server(catalog, self.sent.append)
        if revision:
            self.revision = revision
            self.ask("initialize", initialize(revision)["params"])
            self.server.receive_data(line({"jsonrpc": "2.0", "method": "notifications/initialized"}))

    def send(self, data: bytes) -> list:
        """Send bytes; return what has been answered since."""
        self.sent.clear()
        self.server.receive_data(data)
        return self.replies()

    def replies(self) -> list:
        """Return everything that has been sent since the last call of `send`."""
        return [json.loads(reply) for reply in b"".join(self.sent).splitlines()]

    def ask(self, method, params=None, number=1) -> dict:
        """Send one request and return its one reply."""
        (reply,) = self.send(line(request(number, method, params)))
        return reply

    def get(self, name, /, **arguments) -> dict:
        """Return the reply to ``prompts/get``."""
        return self.ask("prompts/get", {"name": name, "arguments": arguments})


@cache
def _schema(revision: str) -> dict:
    file = SCHEMAS / f"{revision}.json"
    if not file.is_file():
        pytest.skip(f"the published schema of {revision} is not here")
    return json.loads(file.read_text(encoding="utf-8"))


def validate(value, revision: str, definition: str) -> None:
    """Check *value* against a definition of the published schema; skip where there is none."""
    schema = _schema(revision)
    container = "$defs" if "$defs" in schema else "definitions"
    jsonschema.validate(value, {**schema, "$ref": f"#/{container}/{definition}"})
