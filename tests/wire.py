"""Tools for tests of servers: lines, replies, and checks against the published schemas."""

import json
import os
from contextlib import suppress
from functools import cache
from pathlib import Path
from queue import Queue
from threading import Event
from weakref import finalize

import jsonschema
import pytest

from promptkit.server import Server

#: A checkout of the specification's repository, or a folder with one schema file for each revision.
SCHEMAS = Path(os.environ.get("PROMPTKIT_TEST_SCHEMAS") or Path(__file__).parents[2] / "shared" / "schema")

HANDSHAKES = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
MODERN = "2026-07-28"
REVISIONS = [*HANDSHAKES, MODERN]


def line(message) -> bytes:
    """Return *message* as one line of JSON."""
    return json.dumps(message).encode() + b"\n"


def request(number, method, params=None) -> dict:
    """Return a request."""
    members = {"jsonrpc": "2.0", "id": number, "method": method}
    return members if params is None else {**members, "params": params}


def notification(method, params=None) -> dict:
    """Return a notification."""
    members = {"jsonrpc": "2.0", "method": method}
    return members if params is None else {**members, "params": params}


def initialize(revision, number=0, capabilities=None, client="test") -> dict:
    """Return the first request of a handshake."""
    client = {"name": client, "version": "3.1"}
    declared = {"roots": {}} if capabilities is None else capabilities
    return request(
        number, "initialize", {"protocolVersion": revision, "capabilities": declared, "clientInfo": client}
    )


def envelope(capabilities=None, **members) -> dict:
    """Return the `_meta` of a request of the modern era, with the additional fields *members*."""
    return {
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "3.1"},
        "io.modelcontextprotocol/clientCapabilities": capabilities or {},
        **members,
    }


def modern(number, method, params=None, **members) -> dict:
    """Return a request of the modern era."""
    return request(number, method, {**(params or {}), "_meta": envelope(**members)})


class Input:
    """The input of a server that reads on its own threads."""

    def __init__(self, server):
        self._data = Queue()
        self._is_read = Event()
        server.read_from(self._read, bool)
        assert self._is_read.wait(50)

    def _read(self):
        self._is_read.set()  # all earlier input has been answered, or runs on other threads
        return self._data.get()

    def write(self, data):
        """Write bytes, and wait until the server has handled them and reads again."""
        self._is_read.clear()
        self._data.put(data)
        assert self._is_read.wait(50)

    def end(self):
        """End the input."""
        self._data.put(b"")


class Client:
    """
    A client of a server in the same process.

    Every message from the server is validated with the published schema of the revision. With *threads*, the
    server reads on its own threads, as in a process; otherwise prompts run on the calling thread.
    """

    def __init__(
        self, catalog, revision="2025-11-25", *, capabilities=None, threads=False, name="test", **options
    ):
        self.sent = []
        self.name = name
        self.server = Server(catalog, self.sent.append, **options)
        self.receive = self.server.receive_data
        if threads:
            server_input = Input(self.server)
            self.receive = server_input.write
            finalize(self, server_input.end)
        self.revision = revision
        self.capabilities = {"roots": {}} if capabilities is None else capabilities
        self.methods = {}
        if revision in HANDSHAKES:
            self.ask(
                "initialize", initialize(revision, capabilities=self.capabilities, client=name)["params"]
            )
            self.receive(line(notification("notifications/initialized")))

    def send(self, data: bytes) -> list:
        """Send bytes, and return the messages that the server sends back."""
        self.methods |= dict(find_server_requests(data))
        self.sent.clear()
        self.receive(data)
        return self.replies()

    def replies(self) -> list:
        """Return all messages from the server since the last call of `send`."""
        messages = [json.loads(message) for message in b"".join(self.sent).splitlines()]
        for message in messages:
            check(message, self.revision, self.methods)
        return messages

    def post(self, method, params=None, number=1, **members) -> list:
        """Send one request, and return the messages that the server sends back."""
        if self.revision in HANDSHAKES:
            meta = {"_meta": members} if members else {}
            return self.send(line(request(number, method, {**(params or {}), **meta} or None)))
        capabilities = members.pop("capabilities", self.capabilities)
        members.setdefault("io.modelcontextprotocol/clientInfo", {"name": self.name, "version": "3.1"})
        return self.send(line(modern(number, method, params, capabilities=capabilities, **members)))

    def ask(self, method, params=None, number=1, **members) -> dict:
        """Send one request and return its single reply."""
        (reply,) = self.post(method, params, number, **members)
        return reply

    def get(self, name, /, **arguments) -> dict:
        """Return the reply to ``prompts/get``."""
        return self.ask("prompts/get", {"name": name, "arguments": arguments})

    def call(self, name, /, **arguments) -> dict:
        """Return the reply to ``tools/call``."""
        return self.ask("tools/call", {"name": name, "arguments": arguments})

    def answer(self, number, result) -> list:
        """Answer a request of the server, and return the messages that the server then sends."""
        return self.send(line({"jsonrpc": "2.0", "id": number, "result": result}))


def find_server_requests(data: bytes):
    """Yield the id and the method of every request in *data*, which can be any bytes."""
    for text in data.splitlines():
        with suppress(ValueError):
            content = json.loads(text)
            for message in content if isinstance(content, list) else [content]:
                if isinstance(message, dict) and isinstance(message.get("id"), str | int):
                    yield message["id"], message.get("method")


#: The schema definition of each method's result.
RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "server/discover": "DiscoverResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    # Methods of an extension, which the schemas do not contain.
    "skills/list": "Result",
    "skills/get": "Result",
    "resources/directory/read": "Result",
}


def check(message, revision, methods) -> None:
    """
    Validate a message from a server with the published schema of *revision*.

    *methods* maps the ids of requests to their methods. An error without an id is only valid in revisions
    whose schema allows it; older revisions have no valid reply to a request without a readable id.
    """
    if revision is None or schema_file(revision) is None:
        return
    if isinstance(message, list):
        for part in message:
            check(part, revision, methods)
    elif "method" in message:
        validate(message, revision, _sent(revision)[message["method"]])
        validate(message, revision, "JSONRPCRequest" if "id" in message else "JSONRPCNotification")
    elif "result" in message:
        asks = message["result"].get("resultType") == "input_required"
        validate(
            message["result"], revision, "InputRequiredResult" if asks else RESULTS[methods[message["id"]]]
        )
        validate(message, revision, "JSONRPCMessage")
    elif "id" in message or revision in ("2025-11-25", MODERN):
        validate(message, revision, "JSONRPCMessage")


@cache
def _sent(revision) -> dict:
    """Return the names of the requests and notifications that a schema defines, by method."""
    schema = published_schema(revision)
    definitions = schema.get("$defs") or schema["definitions"]
    return {
        definition["properties"]["method"].get("const"): name
        for name, definition in definitions.items()
        if "method" in definition.get("properties", {}) and not name.startswith(("Client", "Server"))
    }


@cache
def schema_file(revision: str) -> Path | None:
    """Return the file with the published schema of a revision; None if this machine does not have it."""
    files = SCHEMAS / f"{revision}.json", SCHEMAS / "schema" / revision / "schema.json"
    return next(filter(Path.is_file, files), None)


def published_schema(revision: str) -> dict:
    """Return the published schema of a revision. If it is missing, skip the test, or in CI fail the test."""
    if (file := schema_file(revision)) is not None:
        return json.loads(file.read_text(encoding="utf-8"))
    reason = f"the published schema of {revision} is not here: set PROMPTKIT_TEST_SCHEMAS (CONTRIBUTING.md)"
    return pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)


@cache
def _validator(revision: str, definition: str):
    schema = published_schema(revision)
    container = "$defs" if "$defs" in schema else "definitions"
    rooted = {**schema, "$ref": f"#/{container}/{definition}"}
    return jsonschema.validators.validator_for(schema)(rooted)


def validate(value, revision: str, definition: str) -> None:
    """Validate *value* with a definition of the published schema; skip the test without the schema."""
    _validator(revision, definition).validate(value)
