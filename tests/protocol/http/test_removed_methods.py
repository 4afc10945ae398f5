"""Methods that exist only in sessions, in requests of the modern era."""

import msgspec
import pytest

from promptkit.protocol.capabilities import ServerInfo
from promptkit.protocol.http.endpoint import Endpoint
from promptkit.protocol.http.messages import read_head
from promptkit.protocol.key_ring import KeyRing, Sessions
from promptkit.protocol.limits import Limits
from tests.wire import HANDSHAKES, MODERN, envelope, initialize, line, modern

REMOVED = ["initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"]


class NullChannel:
    """A channel without a receiver."""


@pytest.fixture
def post():
    """Return a function that posts one message, and returns the status and the reply."""
    endpoint = Endpoint(ServerInfo("promptkit", "1"), Sessions(KeyRing((), "promptkit")), Limits())

    def post(message, revision=MODERN):
        fields = [(b"mcp-protocol-version", revision.encode()), (b"mcp-method", message["method"].encode())]
        response = endpoint.receive(read_head("POST", "/mcp", fields), line(message), NullChannel())
        return response.status, msgspec.json.decode(response.body)

    return post


@pytest.mark.parametrize("method", REMOVED)
def test_removed_method_is_not_found(post, method):
    """The status of a removed method is 404."""
    status, reply = post(modern(1, method))

    assert (status, reply["id"], reply["error"]["code"]) == (404, 1, -32601)


def test_handshake_with_a_modern_revision(post):
    """A handshake that names a modern revision is an unknown method, and opens no session."""
    opening = initialize("2025-11-25")
    opening["params"]["_meta"] = envelope()

    status, reply = post(opening)

    assert (status, reply["error"]["code"]) == (404, -32601)


@pytest.mark.parametrize("revision", [*HANDSHAKES, "2027-01-15"])
def test_handshake_with_an_unsupported_revision(post, revision):
    """The revision is checked before the method, and the error lists the supported revisions."""
    opening = initialize("2025-11-25")
    opening["params"]["_meta"] = envelope(**{"io.modelcontextprotocol/protocolVersion": revision})

    status, reply = post(opening, revision)

    assert (status, reply["error"]["code"]) == (400, -32022)
    assert reply["error"]["data"] == {"supported": [MODERN], "requested": revision}
