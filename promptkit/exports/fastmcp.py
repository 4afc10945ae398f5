"""Prompts in a server of fastmcp that exists already. It needs fastmcp 4.1 or later."""

import inspect
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar

from anyio import to_thread
from fastmcp.prompts import Message, Prompt, PromptResult
from fastmcp.prompts.base import PromptArgument
from fastmcp.server.dependencies import get_context
from mcp.types import CompletionArgument, CompletionContext, PromptReference
from mcp.types import Prompt as ListedPrompt
from pydantic import PrivateAttr

from promptkit.compiler.compilation import Target
from promptkit.exports.in_process import InProcessServer

if TYPE_CHECKING:
    from fastmcp import FastMCP
    from fastmcp.server.completions import CompletionHandler

__all__ = ["add_prompts"]


def add_prompts(server: "FastMCP[Any]", target: Target) -> None:
    """
    Add prompts to a server of fastmcp, with their completions.

    Clients list them, get them, and are told what is wrong with arguments, as promptkit serves them. They
    go through the server's middleware as its own prompts do. Call it after the server's own ``completion``
    is registered, as a server has one of them: it is asked for everything else.

    Args:
        server:
            The server.

        target:
            A folder, a file, a module, or a `Catalog`; or one prompt, or several.

    Raises:
        LoadError: If there is nothing at *target*.

        CompileError: If something there cannot be served. Of a `Catalog`, all else is served.
    """
    source = InProcessServer(target)
    for listed in source.listed():
        server.add_prompt(_AddedPrompt.of(source, listed))
    server.add_completion_handler(_completion_handler(source, server._completion_handler))  # noqa: SLF001 (there is no other way)


class _AddedPrompt(Prompt):
    """A prompt that promptkit renders."""

    KEY_PREFIX: ClassVar[str] = Prompt.KEY_PREFIX

    _source: InProcessServer = PrivateAttr()
    _listed: ListedPrompt = PrivateAttr()

    @classmethod
    def of(cls, source: InProcessServer, listed: ListedPrompt) -> "_AddedPrompt":
        """Make the prompt that is *listed*."""
        arguments = [
            PromptArgument(name=one.name, description=one.description, required=bool(one.required))
            for one in listed.arguments or ()
        ]
        same = listed.model_dump(include={"name", "title", "description", "icons"})
        made = cls(**same, meta=dict(listed.meta or {}), arguments=arguments)
        made._source, made._listed = source, listed
        return made

    def to_mcp_prompt(self, **overrides: Any) -> ListedPrompt:
        """As listed by promptkit: fastmcp's arguments have no titles."""
        made = super().to_mcp_prompt(**overrides)
        return made.model_copy(update={"arguments": self._listed.arguments})

    async def render(self, arguments: dict[str, Any] | None = None) -> PromptResult:
        """Return what promptkit renders. Raises `MCPError` as promptkit's own server would answer."""
        session = None
        with suppress(RuntimeError):  # outside of a request there is none
            session = get_context().session
        found = await self._source.get_prompt(self._listed.name, arguments, session)
        # A message of fastmcp's would not take a resource link. What clients receive does.
        messages = [Message.model_construct(role=one.role, content=one.content) for one in found.messages]
        return PromptResult.model_construct(messages=messages, description=found.description, meta=None)


def _completion_handler(source: InProcessServer, before: "CompletionHandler | None") -> "CompletionHandler":
    """What completes the arguments of the prompts of *source*, and leaves the rest to *before*."""

    async def complete(ref: Any, argument: CompletionArgument, context: CompletionContext | None) -> Any:
        if isinstance(ref, PromptReference) and ref.name in source.catalog:
            return await source.complete(ref.name, argument, context)
        if before is None:
            return None
        found = await to_thread.run_sync(before, ref, argument, context)  # it may take its time
        return await found if inspect.isawaitable(found) else found

    return complete
