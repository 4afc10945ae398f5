import json
from itertools import pairwise
from typing import Annotated, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Arg, Context, assistant, prompt, resource, user
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.server import Server
from tests.wire import MODERN, initialize, line, modern, notification, request


@prompt
def review(
    code: Annotated[str, Arg("The code")], language: Literal["python", "rust"] = "python", *, context: Context
):
    """Review a piece of code."""
    context.report_progress(1, 2, "reading")
    return user(f"{language}: {code}") + assistant("It looks fine.")


@resource("logs://{level}{?day}")
def logs(level: Literal["info", "error"], day: str = "today") -> str:
    return f"{level} ü {day}"


CATALOG = compile(Recipes(prompts=(review,), resources=(logs,)))

#: Requests that are valid in either era, with their params.
REQUESTS = [
    ("prompts/list", {}),
    ("prompts/list", {"cursor": "nowhere"}),
    ("prompts/get", {"name": "review", "arguments": {"code": "ß\n\u2028", "language": "rust"}}),
    ("prompts/get", {"name": "review", "arguments": {"language": "cobol"}}),
    ("prompts/get", {"name": "reviw"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "language", "value": "r"}},
    ),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "logs://info?day=m%C3%BC"}),
    ("resources/read", {"uri": "logs://nowhere/at/all"}),
    ("no/such", {}),
]

NOISE = b'\r\nno json\n{"jsonrpc":"2.0","id":1.5,"method":"ping"}\n\xff\n[]\n'

SESSION = (
    line(initialize("2025-06-18"))
    + line(notification("notifications/initialized"))
    + b"".join(
        line(request(i, method, {**params, "_meta": {"progressToken": f"t{i}"}}))
        for i, (method, params) in enumerate(REQUESTS)
    )
    + NOISE
    + line(request("sub", "resources/subscribe", {"uri": "logs://info"}))
    + json.dumps(request("last", "ping"), ensure_ascii=False).encode()
)

STATELESS = (
    line(modern("d", "server/discover"))
    + line(modern("s", "subscriptions/listen", {"notifications": {"promptsListChanged": True}}))
    + b"".join(
        line(modern(i, method, params, progressToken=i)) for i, (method, params) in enumerate(REQUESTS)
    )
    + NOISE
    + line(notification("notifications/cancelled", {"requestId": "s"}))
    + line(modern("last", "ping"))
)

#: A client that probes with server/discover and then opens a session, with requests in both eras.
BOTH_ERAS = (
    line(modern("d", "server/discover"))
    + line(initialize("2025-03-26", "i"))
    + b"".join(
        line(request(f"a{i}", method, params)) + line(modern(f"b{i}", method, params))
        for i, (method, params) in enumerate(REQUESTS)
    )
    + line([request("x", "ping"), request("y", "prompts/list")])
)


def collect_replies(chunks):
    """Return all messages, sorted, that a server sends for a stream that arrives in *chunks*."""
    sent = []
    server = Server(CATALOG, sent.append, changes=True)
    for chunk in chunks:
        if chunk:  # an empty chunk means the end of the input
            server.receive_data(chunk)
    server.receive_data(b"")
    server.close(0)
    return sorted(b"".join(sent).splitlines())


@pytest.mark.parametrize("stream", [SESSION, STATELESS, BOTH_ERAS], ids=["session", "stateless", "both"])
def test_one_byte_at_a_time(stream):
    """A stream that arrives byte by byte gives the same replies as one that arrives whole."""
    assert collect_replies([bytes([byte]) for byte in stream]) == collect_replies([stream])


@given(stream=st.sampled_from([SESSION, STATELESS, BOTH_ERAS]), data=st.data())
def test_any_chunks(stream, data):
    """The replies are the same wherever the stream is split into chunks."""
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=30))
    edges = [0, *sorted(cuts), len(stream)]

    assert collect_replies([stream[a:b] for a, b in pairwise(edges)]) == collect_replies([stream])


def test_both_eras_on_one_stream():
    """
    A client that probes with server/discover and then opens a session is served in both eras, and each
    request gets the reply of its own era.
    """
    replies_by_id = {}
    for text in collect_replies([BOTH_ERAS]):
        reply = json.loads(text)
        for part in reply if isinstance(reply, list) else [reply]:
            if "id" in part:
                replies_by_id[part["id"]] = part

    assert replies_by_id["d"]["result"]["supportedVersions"] == [MODERN]
    assert replies_by_id["i"]["result"]["protocolVersion"] == "2025-03-26"
    assert len(replies_by_id) == 2 + 2 * len(REQUESTS) + 2
    for i in range(len(REQUESTS)):
        session, stateless = replies_by_id[f"a{i}"], replies_by_id[f"b{i}"]
        assert ("result" in session) == ("result" in stateless)
        assert "resultType" not in session.get("result", {})
        assert stateless.get("result", {"resultType": "complete"})["resultType"] == "complete"


@pytest.mark.parametrize("stream", [SESSION, STATELESS], ids=["session", "stateless"])
def test_every_request_gets_one_reply(stream):
    """Each request with a readable id gets exactly one reply, unless it is cancelled."""
    ids = [json.loads(text).get("id") for text in collect_replies([stream]) if b'"method"' not in text]

    expected = [*range(len(REQUESTS)), "last", *([0, "sub"] if stream == SESSION else ["d"])]
    assert sorted(map(str, (reply_id for reply_id in ids if reply_id is not None))) == sorted(
        map(str, expected)
    )
