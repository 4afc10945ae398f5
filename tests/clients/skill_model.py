"""A model of Gemini's and of OpenAI's protocol that calls several tools, one after the other."""

import json
import time
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.clients.scripted_model import ScriptedModel

_REPLY = "Done."

#: The reply of `POST /v1/responses` with an item, as Codex reads it.
_RESPONSE: dict[str, Any] = {
    "id": "response_1",
    "usage": {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2},
}

#: A tool of Codex without an effect, which the model calls while Codex still starts its servers.
_WAITING = "list_mcp_resources"

#: The number of requests after which the model stops waiting for a tool.
_MAX_REQUESTS = 100


class SkillModel(ScriptedModel):
    """
    A model that finds and reads skills.

    Args:
        *calls:
            The tools that the model calls, with their arguments, before it answers.
    """

    def __init__(self, *calls: tuple[str, dict[str, Any]]) -> None:
        self._calls = list(calls)
        super().__init__()

    @property
    def results(self) -> list[str]:
        """The results of the called tools, as JSON, from the request that has the most results."""
        return max((_results_of(request) for request in self._requests), key=len, default=[])

    def _reply_to(self, path: str, request: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the events of the reply."""
        if path.endswith("/responses"):
            item = self._item_for(request)
            done = {"type": "response.output_item.done", "output_index": 0, "item": item}
            return [done, {"type": "response.completed", "response": _RESPONSE}]
        if "GenerateContent" in path:
            declared = {
                each["name"] for tool in request.get("tools", ()) for each in tool["functionDeclarations"]
            }
            part: dict[str, Any] = {"text": _REPLY}
            if self._calls and self._calls[0][0] in declared:
                name, arguments = self._calls.pop(0)
                part = {"functionCall": {"name": name, "args": arguments}}
            content = {"role": "model", "parts": [part]}
            return [{"candidates": [{"content": content, "finishReason": "STOP", "index": 0}]}]
        return []

    def _item_for(self, request: dict[str, Any]) -> dict[str, Any]:
        """
        Return the next call, a call that waits until its tool is offered, or the answer, as a response item.
        """
        if not self._calls or len(self._requests) > _MAX_REQUESTS:
            content = [{"type": "output_text", "text": _REPLY}]
            return {"type": "message", "id": "message_1", "role": "assistant", "content": content}
        name, arguments = self._calls[0]
        namespaces = {
            inner["name"]: {"namespace": tool["name"]}
            for tool in request["tools"]
            for inner in tool.get("tools", ())
        }
        if name in namespaces:
            self._calls.pop(0)
        else:  # the server of the tool is still starting
            time.sleep(0.2)
            name, arguments = _WAITING, {}
        identity = {"type": "function_call", "call_id": f"call_{len(self._requests)}", "name": name}
        return {**identity, **namespaces.get(name, {}), "arguments": json.dumps(arguments)}

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        requests, reply_to = self._requests, self._reply_to

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_: object) -> None:
                """Log nothing."""

            def do_HEAD(self) -> None:
                """Answer a client that checks whether the server exists."""
                self._send(b"")

            def do_POST(self) -> None:
                """Record the request, and answer it."""
                request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                requests.append(request)
                path = self.path.partition("?")[0]
                if path.endswith(":generateContent"):
                    self._send(json.dumps(reply_to("GenerateContent", request)[0]).encode())
                else:
                    self._send(b"".join(_events(reply_to(path, request))))

            def _send(self, body: bytes) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

        return Handler


def _events(data: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    """Yield the events of a stream, named if they have a type."""
    for event in data:
        name = f"event: {event['type']}\n" if "type" in event else ""
        yield f"{name}data: {json.dumps(event)}\n\n".encode()


def _results_of(request: dict[str, Any]) -> list[str]:
    """Return the results of tools in a request of OpenAI's protocol for responses, or of Gemini's."""
    outputs = [
        item.get("output") for item in request.get("input", ()) if item["type"] == "function_call_output"
    ]
    parts = [part for content in request.get("contents", ()) for part in content["parts"]]
    return [
        json.dumps(each)
        for each in (*outputs, *(part["functionResponse"] for part in parts if "functionResponse" in part))
    ]
