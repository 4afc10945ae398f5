"""One request on its way to its reply."""

from typing import Any

from msgspec import Struct

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.errors.exceptions import PromptkitError
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import encode_error, encode_result
from promptkit.server.snapshot import Snapshot

__all__ = ["Exchange"]


class Exchange(Struct, gc=False, eq=False):
    """
    One request, what it is answered from, and what the scheduler knows of it.

    Args:
        request:
            What the client has asked.

        snapshot:
            What it is answered from, even if another catalog is served by now.

        about:
            The compiled prompt or resource, once it is found.

        held:
            Whether it is, or was, in flight: answered later than it was read. `InFlight` sets this.

        settled:
            Whether its reply is chosen: nothing else may answer it. `InFlight` sets this.
    """

    request: Request
    snapshot: Snapshot
    about: Any = None
    held: bool = False
    settled: bool = False

    @property
    def key(self) -> tuple[str, str | None]:
        """The method and the prompt, or resource, by which slow code is remembered."""
        about = self.about
        if about is None:
            return self.request.method, None
        return self.request.method, about.name if isinstance(about, CompiledPrompt) else about.uri_template

    def refuse(self, error: PromptkitError) -> bytes:
        """
        Return the line that answers with an error, which has to be one of `CLIENT_ERRORS`.

        What a tool finds wrong is a result: a model reads it, and mends its call.
        """
        request = self.request
        if request.method == "tools/call":
            from promptkit.protocol.tools import encode_failure  # few servers offer tools

            result = encode_failure(self.snapshot.lowering(request.revision), error)
            if result is not None:
                return encode_result(request.id, result)
        return encode_error(request.id, error)
