"""Prompts for an existing FastMCP server. Requires fastmcp 4.1 or later."""

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from fastmcp.prompts import Message, Prompt, PromptResult
from fastmcp.prompts.base import PromptArgument
from fastmcp.server.dependencies import get_context
from mcp.types import CompletionArgument, CompletionContext, PromptReference
from mcp.types import Prompt as ListedPrompt
from pydantic import PrivateAttr

from promptkit.compiler.compilation import Target
from promptkit.exports.mcp import InProcessServer

if TYPE_CHECKING:
    from fastmcp import FastMCP
    from fastmcp.server.completions import CompletionHandler

__all__ = ["add_prompts"]


def add_prompts(server: "FastMCP[Any]", target: Target) -> None:
    """
    Add prompts and their completions to a FastMCP server.

    Clients receive the same prompts and error messages as from a promptkit server. The requests pass through
    the server's middleware. A server can have only one ``completion`` handler, so call this function after
    registering your own handler, which still receives all other completion requests.

    Args:
        server:
            The server.

        target:
            A folder, a file, a module, a `Catalog`, or one or more prompts.

    Raises:
        LoadError: If *target* does not exist.

        CompileError: If a prompt does not compile. If *target* is a `Catalog`, its valid prompts are served.
    """
    source = InProcessServer(target)
    for listed in source.list_prompts():
        server.add_prompt(_AddedPrompt.of(source, listed))
    server.add_completion_handler(_completion_handler(source, server._completion_handler))  # noqa: SLF001 (no public API)


class _AddedPrompt(Prompt):
    """A FastMCP prompt that promptkit renders."""

    _source: InProcessServer = PrivateAttr()
    _listed: ListedPrompt = PrivateAttr()

    @classmethod
    def of(cls, source: InProcessServer, listed: ListedPrompt) -> "_AddedPrompt":
        """Create a FastMCP prompt from its entry in the list of prompts."""
        arguments = [
            PromptArgument(
                name=argument.name, description=argument.description, required=bool(argument.required)
            )
            for argument in listed.arguments or ()
        ]
        fields = listed.model_dump(include={"name", "title", "description", "icons"})
        prompt = cls(**fields, meta=dict(listed.meta or {}), arguments=arguments)
        prompt._source, prompt._listed = source, listed
        return prompt

    def to_mcp_prompt(self, **overrides: Any) -> ListedPrompt:
        """Return the prompt's entry for the list, with the argument titles that FastMCP does not support."""
        prompt = super().to_mcp_prompt(**overrides)
        return prompt.model_copy(update={"arguments": self._listed.arguments})

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        """Render the prompt. Raises `MCPError` with the error that a promptkit server would send."""
        session = None
        with suppress(RuntimeError):  # outside a request
            session = get_context().session
        rendering = await self._source.get_prompt(self._listed.name, arguments, session)
        # The constructor of FastMCP's Message rejects resource links, although clients accept them.
        messages = [
            Message.model_construct(role=message.role, content=message.content)
            for message in rendering.messages
        ]
        return PromptResult.model_construct(messages=messages, description=rendering.description, meta=None)


def _completion_handler(source: InProcessServer, fallback: "CompletionHandler | None") -> "CompletionHandler":
    """Return a completion handler for the prompts of *source*. It passes all other requests to *fallback*."""

    async def complete(ref: Any, argument: CompletionArgument, context: CompletionContext | None) -> Any:
        if isinstance(ref, PromptReference) and ref.name in source.catalog:
            return await source.complete(ref.name, argument, context)
        if fallback is None:
            return None
        completion = await to_thread.run_sync(fallback, ref, argument, context)  # because it can block
        return await completion if inspect.isawaitable(completion) else completion

    return complete
