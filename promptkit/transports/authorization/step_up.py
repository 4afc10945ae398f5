"""
Step-up: who lacks scopes is told which, if its client can get a token that has them.

See https://modelcontextprotocol.io/specification/2026-07-28/basic/authorization#scope-challenge-handling.
"""

from collections.abc import Sequence

from msgspec import UNSET

from promptkit.protocol.events import Request
from promptkit.protocol.http.bearer import BearerScheme
from promptkit.protocol.http.messages import Response
from promptkit.server.shared_server import SharedServer

__all__ = ["StepUp"]


class StepUp:
    """
    Refuses requests whose senders lack scopes.

    Args:
        scheme:
            Says what tokens are needed.

        server:
            Knows what requests are about.
    """

    def __init__(self, scheme: BearerScheme, server: SharedServer) -> None:
        self._scheme = scheme
        self._server = server

    def refusal(self, requests: Sequence[Request]) -> Response | None:
        """
        Return the response that refuses requests, with all scopes that they need; None if none is lacking.

        Args:
            requests:
                Those of one message.
        """
        needed = frozenset().union(*map(self._server.scopes_lacking, requests))
        if not needed:
            return None
        response = self._scheme.refuse_scopes(needed, requests[0].id if len(requests) == 1 else UNSET)
        reply = response.body + b"\n"
        for request in requests:
            if self._server.observe is not None:
                self._server.observe(request, reply)
            request.discard(reply)
        return response
