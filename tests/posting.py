"""Tools for HTTP tests: request heads like those of clients, and callers of ASGI applications."""

import asyncio
import json
from base64 import b64encode
from dataclasses import dataclass, field

from promptkit.catalog.catalog import Catalog
from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.http.messages import read_head
from promptkit.protocol.limits import Limits
from promptkit.transports.http.application import Application
from promptkit.transports.http.settings import BODY_BYTES, Settings
from tests.wire import MODERN

KEY = b"k" * 32
NAMED = {"prompts/get": "name", "resources/read": "uri", "tools/call": "name"}
PLAIN = {
    "host": "localhost:8000",
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
}


def encoded(value) -> str:
    """Encode a header value that is not printable ASCII."""
    return f"=?base64?{b64encode(value.encode()).decode()}?="


def modern_headers(message) -> dict:
    """Return the headers that repeat parts of a modern message."""
    method = message["method"]
    headers = {"mcp-protocol-version": MODERN, "mcp-method": method}
    name = message.get("params", {}).get(NAMED.get(method))
    if isinstance(name, str):
        is_plain = name.isascii() and name.isprintable() and name.strip() == name
        headers["mcp-name"] = name if is_plain and not name.startswith("=?base64?") else encoded(name)
    return headers


def raw_fields(fields) -> list:
    """
    Return headers in ASGI's form; a value can be a list of values, or None for a header that is not sent.
    """
    return [
        (name.encode(), value if isinstance(value, bytes) else value.encode("latin-1"))
        for name, values in fields.items()
        for value in (values if isinstance(values, list) else [values])
        if value is not None
    ]


def head(method="POST", path="/mcp", **fields):
    """
    Return a request head with the headers that every client sends, and *fields*; `_` in names becomes `-`.
    """
    given_fields = {name.replace("_", "-"): value for name, value in fields.items()}
    return read_head(method, path, raw_fields({**PLAIN, **given_fields}))


def body_of(message) -> bytes:
    """Return a body: bytes unchanged, anything else as JSON."""
    return message if isinstance(message, bytes) else json.dumps(message).encode()


@dataclass
class Answer:
    """The response of an ASGI application."""

    status: int = 0
    headers: list = field(default_factory=list)
    body: bytes = b""
    complete: bool = False

    def header(self, name) -> str | None:
        """Return the only value of a header; None if the header was not sent."""
        values = [value.decode("latin-1") for key, value in self.headers if key == name.encode()]
        assert len(values) < 2, f"{name} was sent twice"
        return values[0] if values else None

    @property
    def json(self):
        """The body parsed as JSON."""
        assert self.header("content-type") == "application/json"
        return json.loads(self.body)

    @property
    def code(self) -> int | None:
        """The code of the error in the body; None for a result or an empty body."""
        return self.json.get("error", {}).get("code") if self.body else None

    @property
    def events(self) -> list:
        """The messages in an event-stream body."""
        assert self.header("content-type") == "text/event-stream"
        blocks = [block for block in self.body.decode().split("\n\n") if block.strip(": ")]
        lines = [block.split("\n") for block in blocks]
        assert all(block_lines[0] == "event: message" and len(block_lines) == 2 for block_lines in lines)
        return [json.loads(block_lines[1].removeprefix("data: ")) for block_lines in lines]


class Caller:
    """
    One request to an ASGI application, with checks that the application follows the ASGI protocol.

    The client sends *pieces*, and disconnects when `gone` is set. It reads only while `reads` is set.
    """

    def __init__(self, app, pieces=(b"",), method="POST", path="/mcp", root="", **fields):
        given_fields = {name.replace("_", "-"): value for name, value in fields.items()}
        self.scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "method": method,
            "path": path,
            "root_path": root,
            "headers": raw_fields({**PLAIN, **given_fields}),
        }
        self.app = app
        self.answer = Answer()
        self.gone, self.reads, self.changed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.reads.set()
        self.pieces = list(pieces)
        self.task = asyncio.get_running_loop().create_task(app(self.scope, self.receive, self.send))

    async def receive(self):
        """Return the next piece of the body, or the disconnect event."""
        if self.pieces:
            piece = self.pieces.pop(0)
            if callable(piece):
                piece = await piece()
            return {"type": "http.request", "body": piece, "more_body": bool(self.pieces)}
        await self.gone.wait()
        return {"type": "http.disconnect"}

    async def send(self, event):
        """Record an event of the response."""
        await self.reads.wait()
        answer = self.answer
        assert not answer.complete, f"something came after the end: {event}"
        if event["type"] == "http.response.start":
            assert not answer.status, "a second response began"
            answer.status, answer.headers = event["status"], list(event["headers"])
        else:
            assert answer.status, "a body came before its head"
            answer.body += event.get("body", b"")
            answer.complete = not event.get("more_body", False)
        self.changed.set()

    async def until(self, condition, seconds=20.0):
        """Wait until *condition* holds for the response, and return it."""
        async with asyncio.timeout(seconds):
            while not condition(self.answer):
                self.changed.clear()
                await self.changed.wait()
        return self.answer

    async def result(self, seconds=20.0):
        """Return the complete response."""
        async with asyncio.timeout(seconds):
            await self.task
        return self.answer


def post(app, message, **fields):
    """Start posting a message, with the headers of its era and *fields*; requires a running event loop."""
    repeated = {name.replace("-", "_"): value for name, value in repeated_headers(message).items()}
    return Caller(app, [body_of(message)], **{**repeated, **fields})


def repeated_headers(message) -> dict:
    """Return the headers that repeat parts of a message; messages of the handshake era have none."""
    params = message.get("params") if isinstance(message, dict) else None
    meta = params.get("_meta") if isinstance(params, dict) else None
    is_modern = isinstance(meta, dict) and "io.modelcontextprotocol/protocolVersion" in meta
    return modern_headers(message) if is_modern else {}


def answer_to(app, message, **fields) -> Answer:
    """Post a message in a new event loop, and return the complete response."""

    async def ask():
        return await post(app, message, **fields).result()

    return asyncio.run(ask())


def application(
    catalog: Catalog,
    *,
    changes=False,
    hosts=(),
    origins=(),
    keys=(KEY,),
    body=BODY_BYTES,
    name="tests",
    **options,
) -> Application:
    """Return an application for a compiled catalog, as `promptkit.asgi.app` builds it."""
    limits = Limits(**{name: options.pop(name) for name in list(options) if name in Limits.__annotations__})
    settings = Settings(
        identity=ServerInfo(name, "1"),
        hosts=hosts,
        origins=origins,
        keys=keys,
        changes=changes,
        body_limit=body,
        limits=limits,
    )
    app = Application(catalog, settings)
    for attribute, value in options.items():
        setattr(app, attribute, value)
    return app
