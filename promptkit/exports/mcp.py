"""Prompts for an existing server of the official Python SDK. Requires mcp 2.3 or later."""

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
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver import MCPServer
from mcp.types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    CompletionArgument,
    CompletionContext,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    PaginatedRequestParams,
    Prompt,
    PromptReference,
)

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.compiler.compilation import Target, require_complete
from promptkit.language.annotations import NO_SCOPES
from promptkit.protocol import wire
from promptkit.protocol.limits import Limits
from promptkit.protocol.lowering import lowering_for
from promptkit.protocol.revisions import LATEST_HANDSHAKE, MODERN
from promptkit.server import Server
from promptkit.version import VERSION

if TYPE_CHECKING:
    from mcp.server.session import ServerSession

__all__ = ["add_prompts"]


def add_prompts(server: MCPServer[Any] | LowLevelServer[Any], target: Target) -> None:
    """
    Add prompts and their completions to a server of the official Python SDK.

    Clients receive the same prompts and error messages as from a promptkit server. The server continues to
    answer all other requests itself. If one of its own prompts has the same name as an added prompt, it is
    replaced. Call this function after registering the server's own prompts and its ``completion`` handler.

    Args:
        server:
            An `MCPServer`, or a low-level `Server`.

        target:
            A folder, a file, a module, a `Catalog`, or one or more prompts.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt does not compile. If *target* is a `Catalog`, its valid prompts are served.
    """
    source = InProcessServer(target)
    low_level = server._lowlevel_server if isinstance(server, MCPServer) else server  # noqa: SLF001 (its own decorators do the same)
    # The previous handlers receive the requests that do not concern the added prompts.
    previous = {
        method: entry.handler
        for method in ("prompts/list", "prompts/get", "completion/complete")
        if (entry := low_level.get_request_handler(method)) is not None
    }

    async def list_prompts(context: Any, params: PaginatedRequestParams) -> Any:
        """Return a page of the server's own prompts. The last page also contains the added prompts."""
        page: Any = ListPromptsResult(prompts=[])
        if "prompts/list" in previous:
            page = await previous["prompts/list"](context, params)
        prompts = [prompt for prompt in page.prompts if prompt.name not in source.catalog]
        if page.next_cursor is None:
            prompts += source.list_prompts()
        return page.model_copy(update={"prompts": prompts})

    async def get_prompt(context: Any, params: GetPromptRequestParams) -> Any:
        if params.name in source.catalog or "prompts/get" not in previous:
            return await source.get_prompt(params.name, params.arguments, context.session)
        return await previous["prompts/get"](context, params)

    async def complete(context: Any, params: CompleteRequestParams) -> Any:
        ref, fallback = params.ref, previous.get("completion/complete")
        if isinstance(ref, PromptReference) and (ref.name in source.catalog or fallback is None):
            completion = await source.complete(ref.name, params.argument, params.context)
            return CompleteResult(completion=completion)
        return (
            await fallback(context, params) if fallback else CompleteResult(completion=Completion(values=[]))
        )

    low_level.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
    low_level.add_request_handler("prompts/get", GetPromptRequestParams, get_prompt)
    low_level.add_request_handler("completion/complete", CompleteRequestParams, complete)


class InProcessServer:
    """
    An in-process server that answers requests about prompts on behalf of another server.

    The server has promptkit's time limits, error messages and threads. The threads start with the first
    request, so that the process can still fork before that request. Prompts that require scopes are omitted,
    because the callers' scopes are unknown here.

    Args:
        target:
            A folder, a file, a module, a `Catalog`, or one or more prompts and resources.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt or resource does not compile. If *target* is a `Catalog`, its valid items
            are served.
    """

    def __init__(self, target: Target) -> None:
        catalog = target if isinstance(target, Catalog) else require_complete(compiler.compile(target))
        self.catalog = catalog.visible_to(NO_SCOPES)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._pending: dict[int, Future[dict[str, Any]]] = {}
        self._ids = count(1)

    def list_prompts(self) -> list[Prompt]:
        """Return the prompts in the form in which servers list them."""
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
                The argument, and the part of its value that was typed so far.

            context:
                The values that were already chosen for other arguments.

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
        """The queue of input lines. The first access starts the server."""
        server = Server(self.catalog, self._receive, limits=Limits(completions=inf))
        server.read_from(self._lines.get, bool)  # the input never ends
        return self._lines

    def _receive(self, data: bytes) -> None:
        for message in map(msgspec.json.decode, data.splitlines()):
            if (reply := self._pending.pop(message.get("id"), None)) is not None:
                reply.set_result(message)


def _meta(session: "ServerSession | None") -> dict[str, Any]:
    """Return the ``_meta`` of a request. It does not declare any client capabilities, such as elicitation."""
    (revision,) = MODERN
    params = session.client_params if session is not None else None
    name, version = (params.client_info.name, params.client_info.version) if params else ("unknown", VERSION)
    return {
        wire.PROTOCOL_VERSION: revision,
        wire.CLIENT_INFO: {"name": name, "version": version},
        wire.CLIENT_CAPABILITIES: {},
    }
