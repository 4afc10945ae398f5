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
    source = InProcessServer(target)
    low_level = server._lowlevel_server if isinstance(server, MCPServer) else server  # noqa: SLF001 (its own decorators do the same)
    # What answers until now: requests for prompts that were added go first to the functions here.
    before = {
        method: entry.handler
        for method in ("prompts/list", "prompts/get", "completion/complete")
        if (entry := low_level.get_request_handler(method)) is not None
    }

    async def list_prompts(context: Any, params: PaginatedRequestParams) -> Any:
        """The server's own pages; what was added is on the last."""
        page: Any = ListPromptsResult(prompts=[])
        if "prompts/list" in before:
            page = await before["prompts/list"](context, params)
        prompts = [prompt for prompt in page.prompts if prompt.name not in source.catalog]
        if page.next_cursor is None:
            prompts += source.listed()
        return page.model_copy(update={"prompts": prompts})

    async def get_prompt(context: Any, params: GetPromptRequestParams) -> Any:
        if params.name in source.catalog or "prompts/get" not in before:
            return await source.get_prompt(params.name, params.arguments, context.session)
        return await before["prompts/get"](context, params)

    async def complete(context: Any, params: CompleteRequestParams) -> Any:
        ref, own = params.ref, before.get("completion/complete")
        if isinstance(ref, PromptReference) and (ref.name in source.catalog or own is None):
            found = await source.complete(ref.name, params.argument, params.context)
            return CompleteResult(completion=found)
        return await own(context, params) if own else CompleteResult(completion=Completion(values=[]))

    low_level.add_request_handler("prompts/list", PaginatedRequestParams, list_prompts)
    low_level.add_request_handler("prompts/get", GetPromptRequestParams, get_prompt)
    low_level.add_request_handler("completion/complete", CompleteRequestParams, complete)
