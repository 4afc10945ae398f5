"""A server in the process of another one, which passes on what its clients ask."""

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
    Answers from a catalog, with the time limits, the errors and the threads of a server of its own.

    Its threads start with the first request, so that a process may be forked before. What needs scopes is
    left out, as nobody says here who has them.

    Args:
        target:
            A folder, a file, a module, or a `Catalog`; or one prompt or resource, or several.

    Raises:
        LoadError: If there is nothing at *target*.

        CompileError: If something there cannot be served. Of a `Catalog`, all else is served.
    """

    def __init__(self, target: Target) -> None:
        catalog = target if isinstance(target, Catalog) else sound(compiler.compile(target))
        self.catalog = catalog.visible_to(NO_SCOPES)
        self._lines: SimpleQueue[bytes] = SimpleQueue()
        self._waiting: dict[int, Future[dict[str, Any]]] = {}
        self._ids = count(1)

    def listed(self) -> list[Prompt]:
        """Return the prompts as clients list them."""
        lowering = lowering_for(LATEST_HANDSHAKE)
        made = msgspec.to_builtins([lowering.prompt(prompt) for prompt in self.catalog.prompts])
        return [Prompt.model_validate(one) for one in made]

    async def get_prompt(
        self, name: str, arguments: Mapping[str, Any] | None, session: "ServerSession | None"
    ) -> GetPromptResult:
        """
        Render a prompt.

        Args:
            name:
                The prompt.

            arguments:
                What the client has sent.

            session:
                The client; None if it is unknown.

        Raises:
            MCPError: With the code, the message and the data that a server of its own would send.
        """
        params = {"name": name, "arguments": dict(arguments or {})}
        result = await self._request("prompts/get", params, session)
        found = {"description": result.get("description"), "messages": result["messages"]}
        return GetPromptResult.model_validate(found)

    async def complete(
        self, name: str, argument: CompletionArgument, context: CompletionContext | None
    ) -> Completion:
        """
        Complete the value of an argument.

        Args:
            name:
                The prompt.

            argument:
                The argument, and what was typed of it so far.

            context:
                Has the arguments that were chosen before.

        Raises:
            MCPError: As for `get_prompt`.
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
        number, reply = next(self._ids), Future[dict[str, Any]]()
        self._waiting[number] = reply
        self._send({"id": number, "method": method, "params": {**params, "_meta": _meta(session)}})
        try:
            message = await to_thread.run_sync(reply.result, abandon_on_cancel=True)
        finally:
            if self._waiting.pop(number, None) is not None:  # the client does not want it any more
                reply.cancel()
                self._send({"method": "notifications/cancelled", "params": {"requestId": number}})
        if "error" in message:
            raise MCPError(**message["error"])
        return message["result"]

    def _send(self, message: dict[str, Any]) -> None:
        self._started.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")

    @cached_property
    def _started(self) -> SimpleQueue[bytes]:
        """Where lines are put for a server that reads them."""
        server = Server(self.catalog, self._receive, limits=Limits(completions=inf))
        server.read_from(self._lines.get, bool)  # the input never ends
        return self._lines

    def _receive(self, data: bytes) -> None:
        for message in map(msgspec.json.decode, data.splitlines()):
            if (reply := self._waiting.pop(message.get("id"), None)) is not None:
                reply.set_result(message)


def _meta(session: "ServerSession | None") -> dict[str, Any]:
    """What is said in every request: the client has no form to ask the person with."""
    (revision,) = MODERN
    known = session.client_params if session is not None else None
    name, version = (known.client_info.name, known.client_info.version) if known else ("unknown", VERSION)
    return {
        wire.PROTOCOL_VERSION: revision,
        wire.CLIENT_INFO: {"name": name, "version": version},
        wire.CLIENT_CAPABILITIES: {},
    }
