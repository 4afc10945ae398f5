"""A model on loopback that answers every request with one text, and records what it receives."""

import json
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any, Self

_REPLY = "Done."

#: The reply of `POST /v1/messages`, as an assistant streams it.
_ANTHROPIC: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": _REPLY}},
    {"type": "content_block_stop", "index": 0},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
]

#: The reply of `POST /v1/chat/completions`.
_OPENAI: list[dict[str, Any]] = [
    {
        "id": "chat_1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "scripted",
        "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
    }
    for delta, reason in [({"role": "assistant", "content": _REPLY}, None), ({}, "stop")]
]


class ScriptedModel:
    """A server of the vendors' streaming protocols, in a ``with`` block."""

    def __init__(self) -> None:
        self._requests: list[dict[str, Any]] = []
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    @property
    def url(self) -> str:
        """The address, without a path."""
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def texts(self) -> list[str]:
        """The texts of all messages that the model has received, without those of the system."""
        messages = (message for request in self._requests for message in request.get("messages", ()))
        return [text for message in messages if message["role"] == "user" for text in _texts_of(message)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        requests = self._requests

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def do_HEAD(self) -> None:
                """Answer a client that looks whether there is a server."""
                self._send(b"")

            def do_POST(self) -> None:
                """Record the request, and answer it."""
                requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                is_openai = self.path.endswith("/chat/completions")
                self._send(b"".join(_events(_OPENAI if is_openai else _ANTHROPIC)))

            def _send(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def _events(data: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the events of a stream: named as Anthropic does, or with an end as OpenAI does."""
    for event in data:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if "type" not in event:
        yield b"data: [DONE]\n\n"


def _texts_of(message: dict[str, Any]) -> list[str]:
    content = message["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]
