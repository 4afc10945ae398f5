"""Prompts in a server of the official Python SDK that exists already. It needs mcp 2.3 or later."""

from typing import Any

from mcp.server.lowlevel import Server
from mcp.server.mcpserver import MCPServer
from mcp.types import (
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    ListPromptsResult,
    PaginatedRequestParams,
    PromptReference,
)

from promptkit.compiler.compilation import Target
from promptkit.exports.in_process import InProcessServer

__all__ = ["add_prompts"]


def add_prompts(server: MCPServer[Any] | Server[Any], target: Target) -> None:
    """
    Add prompts to a server of the official Python SDK, with their completions.

    Clients list them, get them, and are told what is wrong with arguments, as promptkit serves them.
    Everything else is answered as before. A prompt of the server's own with the same name is replaced.
    Call it after the server's own prompts, and its ``completion``, are registered.

    Args:
        server:
            An `MCPServer`, or a low-level `Server`.

        target:
            A folder, a file, a module, or a `Catalog`; or one prompt, or several.

    Raises:
        LoadError: If there is nothing at *target*.

        CompileError: If something there cannot be served. Of a `Catalog`, all else is served.
    """
    low_level = server._lowlevel_server if isinstance(server, MCPServer) else server  # noqa: SLF001 (its own decorators do the same)
    _Added(InProcessServer(target), low_level).register()


class _Added:
    """What answers requests for prompts: those that were added first, then the server's own."""

    def __init__(self, source: InProcessServer, server: Server[Any]) -> None:
        self._source = source
        self._server = server
        self._before = {
            method: entry.handler
            for method in ("prompts/list", "prompts/get", "completion/complete")
            if (entry := server.get_request_handler(method)) is not None
        }

    def register(self) -> None:
        """Answer in place of what answered before."""
        add = self._server.add_request_handler
        add("prompts/list", PaginatedRequestParams, self._list)
        add("prompts/get", GetPromptRequestParams, self._get)
        add("completion/complete", CompleteRequestParams, self._complete)

    async def _list(self, context: Any, params: PaginatedRequestParams) -> Any:
        """The server's own pages; what was added is on the last."""
        before = self._before.get("prompts/list")
        page: Any = await before(context, params) if before else ListPromptsResult(prompts=[])
        prompts = [prompt for prompt in page.prompts if prompt.name not in self._source.catalog]
        if page.next_cursor is None:
            prompts += self._source.listed()
        return page.model_copy(update={"prompts": prompts})

    async def _get(self, context: Any, params: GetPromptRequestParams) -> Any:
        if params.name in self._source.catalog or "prompts/get" not in self._before:
            return await self._source.get_prompt(params.name, params.arguments, context.session)
        return await self._before["prompts/get"](context, params)

    async def _complete(self, context: Any, params: CompleteRequestParams) -> Any:
        ref, before = params.ref, self._before.get("completion/complete")
        if isinstance(ref, PromptReference) and (ref.name in self._source.catalog or before is None):
            found = await self._source.complete(ref.name, params.argument, params.context)
            return CompleteResult(completion=found)
        return await before(context, params) if before else CompleteResult(completion=Completion(values=[]))
