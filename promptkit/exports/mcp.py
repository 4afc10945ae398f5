"""Prompts for an existing server of the official Python SDK. Requires mcp 2.3 or later."""

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
    Add prompts and their completions to a server of the official Python SDK.

    To clients, the prompts and their error messages are the same as on a promptkit server. The server
    continues to answer all other requests. Its own prompts with the same names are replaced. Call this
    function after registering the server's own prompts and its ``completion`` handler.

    Args:
        server:
            An `MCPServer`, or a low-level `Server`.

        target:
            A folder, a file, a module, a `Catalog`, or one or more prompts.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt does not compile; a `Catalog` serves the valid ones.
    """
    source = InProcessServer(target)
    low_level = server._lowlevel_server if isinstance(server, MCPServer) else server  # noqa: SLF001 (its own decorators do the same)
    # The previous handlers receive the requests that are not about the added prompts.
    previous = {
        method: entry.handler
        for method in ("prompts/list", "prompts/get", "completion/complete")
        if (entry := low_level.get_request_handler(method)) is not None
    }

    async def list_prompts(context: Any, params: PaginatedRequestParams) -> Any:
        """Return a page of the server's own prompts; the last page also has the added prompts."""
        page: Any = ListPromptsResult(prompts=[])
        if "prompts/list" in previous:
            page = await previous["prompts/list"](context, params)
        prompts = [prompt for prompt in page.prompts if prompt.name not in source.catalog]
        if page.next_cursor is None:
            prompts += source.listed()
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
