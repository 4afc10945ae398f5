"""A model on loopback that answers every request with the same text, and records what it receives."""

import json
from collections.abc import Iterable, Iterator, Mapping
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

#: The reply of Gemini's `streamGenerateContent`.
_GEMINI: list[dict[str, Any]] = [
    {
        "candidates": [{"content": {"role": "model", "parts": [{"text": _REPLY}]}, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
    }
]


class ScriptedModel:
    """
    A server of the vendors' streaming protocols, in a ``with`` block.

    Args:
        tool:
            The name of an MCP tool that the model calls once, if the client offers it.

        arguments:
            The arguments of the call.
    """

    def __init__(self, tool: str = "", arguments: Mapping[str, Any] | None = None) -> None:
        self.authorizations: list[str | None] = []
        """The headers ``Authorization`` of the requests that are not for a model."""
        self._requests: list[dict[str, Any]] = []
        self._call = (tool, json.dumps(arguments or {}))
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
        """The text of each user message that the model has received."""
        messages = [message for request in self._requests for message in _messages_in(request)]
        return [text for message in messages if message.get("role") == "user" for text in _texts_of(message)]

    @property
    def tool_results(self) -> list[str]:
        """The results of the tool that the model has called."""
        messages = [message for request in self._requests for message in _messages_in(request)]
        return [text for message in messages for text in _results_in(message)]

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        requests, authorizations, call = self._requests, self.authorizations, self._call

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def do_HEAD(self) -> None:
                """Answer a client that checks whether the server exists."""
                self._send(b"")

            def do_GET(self) -> None:
                """Answer with status 404."""
                self._send(b"", 404)

            def do_POST(self) -> None:
                """
                Answer a request, and record it.

                If it is not for a model, record only its header ``Authorization``.
                """
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                events = _reply(self.path, request, call)
                if events is None:
                    authorizations.append(self.headers["Authorization"])
                    self._send(b"", 404)
                else:
                    requests.append(request)
                    self._send(b"".join(_encode(events)))

            def _send(self, body: bytes, status: int = 200) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def _reply(path: str, request: dict[str, Any], call: tuple[str, str]) -> list[dict[str, Any]] | None:
    """Return the events that answer a request; None if the request is not for a model."""
    path = path.partition("?")[0]
    if path.endswith("/messages"):
        return _ANTHROPIC
    if path.endswith(":streamGenerateContent"):
        return _GEMINI
    tool = None if any(map(_results_in, _messages_in(request))) else _find_tool(request, call[0])
    if path.endswith("/chat/completions"):
        return _chat_events(tool, call[1])
    return _response_events(tool, call[1]) if path.endswith("/responses") else None


def _find_tool(request: dict[str, Any], name: str) -> dict[str, Any] | None:
    """
    Return the fields that name the MCP tool *name* in a call; None if the client does not offer the tool.
    """
    for tool in request.get("tools", ()) if name else ():
        if tool["type"] == "namespace" and name in [member["name"] for member in tool["tools"]]:
            return {"namespace": tool["name"], "name": name}
        if tool["type"] == "function" and tool.get("function", tool)["name"].endswith(f"-{name}"):
            return {"name": tool.get("function", tool)["name"]}
    return None


def _chat_events(tool: dict[str, Any] | None, arguments: str) -> list[dict[str, Any]]:
    """Return the events that answer `POST /v1/chat/completions`."""
    delta: dict[str, Any] = {"role": "assistant", "content": _REPLY}
    if tool is not None:
        function = {**tool, "arguments": arguments}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        delta = {"role": "assistant", "tool_calls": [call]}
    end = "stop" if tool is None else "tool_calls"
    start = {"id": "chat_1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    return [
        {**start, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        for delta, reason in [(delta, None), ({}, end)]
    ]


def _response_events(tool: dict[str, Any] | None, arguments: str) -> list[dict[str, Any]]:
    """Return the events that answer `POST /v1/responses`."""
    content = [{"type": "output_text", "text": _REPLY, "annotations": []}]
    item: dict[str, Any] = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    if tool is not None:
        item = {"type": "function_call", "call_id": "call_1", **tool, "arguments": arguments}
    usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    return [
        {"type": "response.created", "response": {"id": "resp_1"}},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}},
    ]


def _encode(events: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the events of a stream: with names, like Anthropic, or with a final event, like OpenAI."""
    for event in events:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()
    if "choices" in event:
        yield b"data: [DONE]\n\n"


def _messages_in(request: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the messages of a request, in the form of its vendor."""
    return next((request[key] for key in ("messages", "input", "contents") if key in request), [])


def _texts_of(message: dict[str, Any]) -> list[str]:
    content = message["parts"] if "parts" in message else message["content"]
    return [content] if isinstance(content, str) else [part["text"] for part in content if "text" in part]


def _results_in(message: dict[str, Any]) -> list[str]:
    """Return the results of tools in a message."""
    if message.get("role") == "tool":
        return _texts_of(message)
    if message.get("type") == "function_call_output":
        output = message["output"]
        return [output] if isinstance(output, str) else [part["text"] for part in output]
    return []
