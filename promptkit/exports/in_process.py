"""An in-process server for another server, which forwards requests to it."""

from collections.abc import Mapping
from concurrent.futures import Future
from functools import cached_property
from itertools import count
from math import inf
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec
from anyio import to_thread
from mcp import MCPError
from mcp.types import Completion, CompletionArgument, CompletionContext, GetPromptResult, Prompt

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import Target, sound
from promptkit.language.annotations import NO_SCOPES
from promptkit.protocol import wire
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE, MODERN
from promptkit.server import Server
from promptkit.version import VERSION

if TYPE_CHECKING:
    from mcp.server.session import ServerSession


class InProcessServer:
    """
    Serves a catalog with promptkit's time limits, error messages and threads.

    Its threads start with the first request, so that the process can fork before that. Prompts that need
    scopes are omitted, because the scopes of callers are unknown here.

    Args:
        target:
            A folder, a file, a module, a `Catalog`, or one or more prompts and resources.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt or resource does not compile; a `Catalog` serves the valid ones.
    """

    def __init__(self, target: Target) -> None:
        catalog = target if isinstance(target, Catalog) else sound(compiler.compile(target))
        self.catalog = catalog.visible_to(NO_SCOPES)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._pending: dict[int, Future[dict[str, Any]]] = {}
        self._ids = count(1)

    def listed(self) -> list[Prompt]:
        """Return the prompts as clients list them."""
        lowering = lowering_for(LATEST_HANDSHAKE)
        listings = msgspec.to_builtins([lowering.prompt(prompt) for prompt in self.catalog.prompts])
        return [Prompt.model_validate(listing) for listing in listings]

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None, session: "ServerSession | None"
    ) -> GetPromptResult:
        """
        Render a prompt.

        Args:
            name:
                The prompt's name.

            arguments:
                The arguments as the client sent them.

            session:
                The client's session; None if it is unknown.

        Raises:
            MCPError: With the code, message and data that a promptkit server would send.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        result = await self._request("prompts/get", params, session)
        rendering = {"description": result.get("description"), "messages": result["messages"]}
        return GetPromptResult.model_validate(rendering)

    async def complete(
        self, name: str, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        """
        Complete the value of an argument.

        Args:
            name:
                The prompt's name.

            argument:
                The argument, and its value typed so far.

            context:
                The arguments already chosen.

        Raises:
            MCPError: In the same cases as `get_prompt`.
        """
        chosen = context.arguments if context else None
        params = {
            "ref": {"type": "ref/prompt", "name": name},
            "argument": {"name": argument.name, "value": argument.value},
            "context": {"arguments": chosen or {}},
        }
        result = await self._request("completion/complete", params, None)
        return Completion.model_validate(result["completion"])

    async def _request(self, method: str, params: dict[str, Any], session: "ServerSession | None") -> Any:
        request_id, reply = next(self._ids), Future[dict[str, Any]]()
        self._pending[request_id] = reply
        self._send({"id": request_id, "method": method, "params": {**params, "_meta": _meta(session)}})
        try:
            message = await to_thread.run_sync(reply.result, abandon_on_cancel=True)
        finally:
            if self._pending.pop(request_id, None) is not None:  # the client has cancelled the request
                reply.cancel()
                self._send({"method": "notifications/cancelled", "params": {"requestId": request_id}})
        if "error" in message:
            raise MCPError(**message["error"])
        return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        self._input.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    @cached_property
    def _input(self) -> SimpleQueue[bytes]:
        """The input queue of the server, which starts on first use."""
        server = Server(self.catalog, self._receive, limits=Limits(completions=inf))
        server.read_from(self._lines.get, bool)  # the input never ends
        return self._lines

    def _receive(self, data: bytes) -> None:
        for message in map(msgspec.json.decode, data.splitlines()):
            if (reply := self._pending.pop(message.get("id"), None)) is not None:
                reply.set_result(message)


def _meta(session: "ServerSession | None") -> dict[str, Any]:
    """Return the ``_meta`` of every request: the client does not support elicitation."""
    (revision,) = MODERN
    params = session.client_params if session is not None else None
    name, version = (params.client_info.name, params.client_info.version) if params else ("unknown", VERSION)
    return {
        wire.PROTOCOL_VERSION: revision,
        wire.CLIENT_INFO: {"name": name, "version": version},
        wire.CLIENT_CAPABILITIES: {},
    }
