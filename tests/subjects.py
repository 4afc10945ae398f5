"""Callers with scopes that send requests to a server in this process."""

import json
from contextlib import suppress

from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.messages import HttpResponse
from promptkit.protocol.key_ring import KeyRing, RequestStateSigner, Sessions
from promptkit.protocol.limits import Limits
from promptkit.protocol.principals import Principal
from promptkit.server.server import SharedServer
from tests.posting import KEY, body_of, head, repeated_headers

LIMITS = Limits(completions=1e9)


class Channel:
    """The reply channel of one request."""

    gone = False
    address = None
    session_id = ""
    accepts_stream = True

    def __init__(self, principal=None):
        self.principal = principal
        self.subject = "" if principal is None else principal.subject
        self.said = []

    def add(self, reply):
        """Record the reply."""
        self.said.append(reply.line)
        return b""

    def sender(self, _send):
        """Return the function that records the lines sent before the reply."""
        return self.said.append


class Site:
    """A server for many clients, without a network, which answers on the thread that posts a message."""

    def __init__(self, catalog, **options):
        identity, ring = ServerInfo("tests", "1.0"), KeyRing([KEY], "tests")
        self.server = SharedServer(
            catalog,
            lambda _line: None,
            identity=identity,
            changes=True,
            limits=LIMITS,
            signer=RequestStateSigner(ring),
            **options,
        )
        self.endpoint = Endpoint(identity, Sessions(ring), LIMITS)
        self.offer()

    def offer(self):
        """Declare the current capabilities."""
        self.endpoint.declare_capabilities(self.server.capabilities, self.server.observe)

    def replace(self, catalog):
        """Serve another catalog, as an application does."""
        self.server.replace(catalog)
        self.offer()

    def post(self, message, principal=None, **fields):
        """Post a message, and return the channel that records all replies, including later ones."""
        channel = Channel(principal)
        repeated = {name.replace("-", "_"): value for name, value in repeated_headers(message).items()}
        outcome = self.endpoint.receive(head(**{**repeated, **fields}), body_of(message), channel)
        if isinstance(outcome, HttpResponse):
            channel.said.append(outcome.body)
        else:
            self.server._dispatcher.handle_events(outcome)
        return channel

    def ask(self, message, principal=None, **fields):
        """Post a request, and return the reply."""
        (reply,) = self.post(message, principal, **fields).said
        return json.loads(reply)


def caller(subject, *scopes):
    """Return the principal of a token with these scopes."""
    return Principal(subject, scopes)


def cursor_in(reply) -> str | None:
    """Return the cursor of the next page in a reply; None on the last page."""
    with suppress(ValueError, KeyError, TypeError):
        return json.loads(reply)["result"]["nextCursor"]
    return None
