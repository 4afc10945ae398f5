"""How responses are written to a connection: heads together with bodies."""

import asyncio
from types import SimpleNamespace

import pytest

from promptkit.transports.http.responses import JOINED_BYTES, ResponseCycle

DATE = (b"date", b"now")
SIZED = [(b"content-length", b"3")]


class Written:
    """
    What is written for one response.

    Args:
        bodies:
            The parts of the body; all but the last one say that more comes.

        headers:
            What the application sends.
    """

    def __init__(self, *bodies, headers=(), status=200, method="POST", keep_alive=True):
        self.parts, self.ended = [], False
        transport = SimpleNamespace(write=self.parts.append, close=lambda: self.parts.append("close"))
        flow = SimpleNamespace(write_paused=False)
        self.cycle = ResponseCycle(
            scope={"method": method},
            transport=transport,
            flow=flow,
            logger=None,
            access_logger=None,
            access_log=False,
            default_headers=[DATE],
            message_event=asyncio.Event(),
            expect_100_continue=False,
            keep_alive=keep_alive,
            on_response=self.end,
        )
        start = {"type": "http.response.start", "status": status, "headers": list(headers)}
        self.send(start)
        for left, body in zip(reversed(range(len(bodies))), bodies, strict=True):
            self.send({"type": "http.response.body", "body": body, "more_body": left > 0})

    def end(self):
        """Note that the response is complete."""
        self.ended = True

    def send(self, message):
        """Send one message of ASGI."""
        asyncio.run(self.cycle.send(message))


def head(*lines):
    """The bytes of a head with a status of 200."""
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"date: now", *lines, b"", b""])


def test_a_head_is_written_together_with_its_body():
    """
    One piece is one call of the system.
    """
    written = Written(b"one", headers=SIZED)

    assert written.parts == [head(b"content-length: 3") + b"one"]
    assert written.ended


def test_what_has_no_length_is_written_in_chunks():
    """
    The first with the head, each other one as it comes, and then an empty one.
    """
    written = Written(b"one", b"", b"three")

    assert written.parts == [
        head(b"transfer-encoding: chunked") + b"3\r\none\r\n",
        b"",
        b"5\r\nthree\r\n0\r\n\r\n",
    ]


def test_a_long_body_is_not_copied():
    """
    The very bytes are written.
    """
    body = b"x" * (JOINED_BYTES + 1)

    _, same = Written(body, headers=[(b"content-length", b"%d" % len(body))]).parts

    assert same is body


def test_what_has_no_body_has_its_head_written():
    """
    A status that allows none, and the answer to HEAD, which names the length all the same.
    """
    assert Written(b"", status=204).parts == [head().replace(b"200 OK", b"204 No Content")]
    assert Written(b"one", headers=SIZED, method="HEAD").parts == [head(b"content-length: 3")]


@pytest.mark.parametrize(
    ("headers", "keep_alive"), [(SIZED, False), ([*SIZED, (b"connection", b"close")], True)]
)
def test_the_last_response_says_so(headers, keep_alive):
    """
    Once, whoever decides it; then the connection ends.
    """
    written = Written(b"one", headers=headers, keep_alive=keep_alive)

    assert written.parts == [head(b"content-length: 3", b"connection: close") + b"one", "close"]


@pytest.mark.parametrize("value", [b"a\r\nset-cookie: b", b"a\nb", b"a\rb"])
def test_no_header_becomes_two(value):
    """
    A value with a line break is an error, and nothing of the response is written.
    """
    with pytest.raises(RuntimeError, match="a header has a line break"):
        Written(b"one", headers=[(b"x", value)])


def test_nothing_follows_the_end():
    """
    To send more is an error.
    """
    written = Written(b"one", headers=SIZED)

    with pytest.raises(RuntimeError, match="the response is sent already"):
        written.send({"type": "http.response.body", "body": b"two"})
    assert len(written.parts) == 1


def test_nothing_is_written_to_a_client_that_is_gone():
    """
    The application may go on.
    """
    written = Written()
    written.cycle.disconnected = True
    written.send({"type": "http.response.body", "body": b"one"})

    assert (written.parts, written.ended) == ([], False)
