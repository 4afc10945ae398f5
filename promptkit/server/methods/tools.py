"""``tools/call``: a prompt is rendered, as for ``prompts/get``, and its content is the result."""

from promptkit.catalog.tools import GET
from promptkit.errors.exceptions import UnknownPrompt, UnknownTool
from promptkit.protocol.tools import encode_called
from promptkit.server.exchange import Exchange
from promptkit.server.methods.prompts import PromptMethods

__all__ = ["ToolMethods"]


class ToolMethods(PromptMethods):
    """
    Answers ``tools/call``. It is made as `PromptMethods` are.
    """

    _encode = staticmethod(encode_called)

    def call(self, exchange: Exchange) -> bytes | None:
        """Return the result; None if it comes later."""
        tools, params = exchange.snapshot.tools, exchange.request.params
        exchange.about = tools[params.name]
        if exchange.about.name == GET and tools.is_search:
            self._unwrap(exchange)
        return self.get(exchange)

    def _unwrap(self, exchange: Exchange) -> None:
        """From now on, a call of the tool that gets a prompt is one of that prompt."""
        request = exchange.request
        params = request.params
        arguments = exchange.about.arguments
        if request.large:
            arguments.check_values(params.arguments or {}, self._limits.values)
        given = arguments.read(params.arguments)
        try:
            exchange.about = exchange.snapshot.tools.prompt(given["name"])
        except UnknownTool as error:
            raise UnknownPrompt(error.name, error.nearest) from None
        params.name, params.arguments = given["name"], given.get("arguments")
