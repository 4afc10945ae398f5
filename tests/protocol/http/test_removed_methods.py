"""What only sessions have, asked for by requests that name their revision."""

import msgspec
import pytest

from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.messages import read_head
from promptkit.protocol.http.sessions import Sessions
from promptkit.protocol.key_ring import KeyRing
from promptkit.protocol.limits import Limits
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, line, modern

REMOVED = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]


class Nowhere:
    """A channel that nobody listens to."""


@pytest.fixture
def post():
    """A function that posts one message, and returns the status and the reply."""
    endpoint = Endpoint(ServerInfo("promptkit", "1"), Sessions(KeyRing((), "promptkit")), Limits())

    def post(message, revision=MODERN):
        fields = [(b"mcp-protocol-version", revision.encode()), (b"mcp-method", message["method"].encode())]
        response = endpoint.receive(read_head("POST", "/mcp", fields), line(message), Nowhere())
        return response.status, msgspec.json.decode(response.body)

    return post


@pytest.mark.parametrize("method", REMOVED)
def test_they_are_not_found(post, method):
    """
    The status is 404, though the params are none that the method ever had.
    """
    status, reply = post(modern(1, method))

    assert (status, reply["id"], reply["error"]["code"]) == (404, 1, -32601)


def test_a_handshake_that_names_a_modern_revision_opens_nothing(post):
    """
    A request is of the revision that it names, whatever else it would be.
    """
    opening = initialize("2025-11-25")
    opening["params"]["_meta"] = envelope()

    status, reply = post(opening)

    assert (status, reply["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("revision", [*HANDSHAKES, "2027-01-15"])
def test_a_handshake_that_names_another_revision_is_told_which_there_are(post, revision):
    """
    Revisions that no request may name are refused before methods are.
    """
    opening = initialize("2025-11-25")
    opening["params"]["_meta"] = envelope(**{"io.modelcontextprotocol/protocolVersion": revision})

    status, reply = post(opening, revision)

    assert (status, reply["error"]["code"]) == (400, -32022)
    assert reply["error"]["data"] == {"supported": [MODERN], "requested": revision}
