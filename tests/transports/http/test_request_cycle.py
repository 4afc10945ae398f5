"""The request cycle: reading a request, and writing the head of a response together with the body."""

import asyncio
from types import SimpleNamespace

import pytest

from promptkit.transports.http.connection import RequestCycle

SIZED = [(b"content-length", b"3")]


class WrittenResponse:
    """
    A response, as it is written to the transport.

    Args:
        bodies:
            The parts of the body; all but the last have `more_body`.

        headers:
            The headers from the application.
    """

    def __init__(
        self,
        *bodies,
        headers=(),
        status=200,
        method="POST",
        keep_alive=True,
        version="1.1",
        is_body_complete=True,
    ):
        self.parts, self.ended = [], False
        self.cycle = RequestCycle(
            connection(self.parts, self.end),
            {"method": method, "http_version": version},
            keep_alive=keep_alive,
            awaits_continue=False,
        )
        if is_body_complete:
            self.cycle.end_body()
        start = {"type": "http.response.start", "status": status, "headers": list(headers)}
        self.send(start)
        for left, body in zip(reversed(range(len(bodies))), bodies, strict=True):
            self.send({"type": "http.response.body", "body": body, "more_body": left > 0})

    def end(self, *, keep_alive):
        """Record whether the response is complete and *keep_alive* equals the cycle's."""
        self.ended = self.cycle.is_complete and self.cycle.keep_alive is keep_alive

    def send(self, message):
        """Send one ASGI message."""
        asyncio.run(self.cycle.send(message))


def connection(parts, end=lambda **_: None):
    """Return a connection that records written data."""
    transport = SimpleNamespace(
        write=parts.append,
        writelines=lambda pieces: parts.append(b"".join(pieces)),
        close=lambda: parts.append("close"),
        is_closing=lambda: False,
    )
    return SimpleNamespace(
        transport=transport,
        drained=None,
        connections=SimpleNamespace(date=b"date: now\r\n"),
        end_cycle=end,
        resume_reading=lambda: parts.append("read on"),
    )


def make_cycle(parts, *, awaits_continue=False):
    """Return a cycle on the running event loop."""
    recorder = connection(parts)
    recorder.loop = asyncio.get_running_loop()
    return RequestCycle(
        recorder, {"method": "POST", "http_version": "1.1"}, keep_alive=True, awaits_continue=awaits_continue
    )


def head(*lines):
    """Return a head with a status of 200."""
    return b"\r\n".join([b"HTTP/1.1 200 OK", b"date: now", *lines, b"", b""])


def test_head_is_written_together_with_the_body():
    """The head is written together with the body, so that a short response takes one system call."""
    response = WrittenResponse(b"one", headers=SIZED)

    assert response.parts == [head(b"content-length: 3") + b"one"]
    assert response.ended


def test_body_without_a_length_is_chunked():
    """
    The first chunk is written together with the head, later chunks are written as they arrive, and an empty
    chunk ends the body.
    """
    response = WrittenResponse(b"one", b"", b"three")

    assert response.parts == [
        head(b"transfer-encoding: chunked") + b"3\r\none\r\n",
        b"",
        b"5\r\nthree\r\n0\r\n\r\n",
    ]


def test_http_1_0_client_gets_no_chunks():
    """For an HTTP/1.0 client, a body without a length ends with the connection."""
    response = WrittenResponse(b"one", b"two", keep_alive=False, version="1.0")

    assert response.parts == [head(b"connection: close") + b"one", b"two"]


def test_responses_without_a_body():
    """A status without a body, and a reply to HEAD, consist of the head, which can name a length."""
    assert WrittenResponse(b"", status=204).parts == [head().replace(b"200 OK", b"204 No Content")]
    assert WrittenResponse(b"one", headers=SIZED, method="HEAD").parts == [head(b"content-length: 3")]


@pytest.mark.parametrize(
    ("headers", "keep_alive"), [(SIZED, False), ([*SIZED, (b"connection", b"close")], True)]
)
def test_last_response_closes_the_connection(headers, keep_alive):
    """`Connection: close` is sent once, whether the server or the application closes."""
    response = WrittenResponse(b"one", headers=headers, keep_alive=keep_alive)

    assert response.parts == [head(b"content-length: 3", b"connection: close") + b"one"]
    assert not response.cycle.keep_alive


def test_early_response_closes_the_connection():
    """The rest of the body is never read as another request."""
    response = WrittenResponse(b"one", headers=SIZED, is_body_complete=False)

    assert response.parts == [head(b"content-length: 3", b"connection: close") + b"one"]


@pytest.mark.parametrize("name", [b"x", b"content-length"])
@pytest.mark.parametrize("value", [b"1\r\nset-cookie: b", b"1\n", b"a\nb", b"a\rb"])
def test_line_break_in_a_header_is_rejected(name, value):
    """A header with a line break raises an error, and no part of the response is written."""
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a header contains a line break"):
            WrittenResponse(b"one", headers=[(name, value)])


def test_sending_after_the_end_is_an_error():
    """A complete response cannot be extended."""
    response = WrittenResponse(b"one", headers=SIZED)

    with pytest.raises(RuntimeError, match="the response has already been sent"):
        response.send({"type": "http.response.body", "body": b"two"})
    assert len(response.parts) == 1


def test_nothing_is_written_to_a_disconnected_client():
    """An application can still send to a disconnected client, but nothing is written."""
    response = WrittenResponse()
    response.cycle.disconnect()
    response.send({"type": "http.response.body", "body": b"one"})

    assert (response.parts, response.ended) == ([], False)


class TestReceiving:
    def test_buffered_pieces_are_received_together(self):
        """
        All data that has arrived is received in one message, with `more_body` unless the body is complete.
        """

        async def receive():
            cycle = make_cycle(parts := [])
            for piece in (b"a", b"b", b"c"):
                cycle.feed(piece)
            first = await cycle.receive()
            cycle.feed(b"d")
            cycle.end_body()
            return parts, first, await cycle.receive()

        parts, first, second = asyncio.run(receive())

        assert first == {"type": "http.request", "body": b"abc", "more_body": True}
        assert second == {"type": "http.request", "body": b"d", "more_body": False}
        assert parts == []

    def test_waiting_for_the_body_resumes_reading(self):
        """The connection is read while the application waits."""

        async def receive():
            cycle = make_cycle(parts := [])
            waiting = asyncio.create_task(cycle.receive())
            await asyncio.sleep(0)
            assert parts == ["read on"]
            cycle.feed(b"a")
            return await waiting

        assert asyncio.run(receive())["body"] == b"a"

    @pytest.mark.parametrize("end", [RequestCycle.disconnect, lambda cycle: cycle._write(b"", more=False)])
    def test_disconnect_is_received_at_the_end(self, end):
        """An application that waits is notified when the client disconnects or the response is complete."""

        async def receive():
            cycle = make_cycle([])
            cycle.end_body()
            await cycle.receive()
            waiting = asyncio.create_task(cycle.receive())
            await asyncio.sleep(0)
            end(cycle)
            return await waiting, await cycle.receive()

        assert asyncio.run(receive()) == ({"type": "http.disconnect"},) * 2

    def test_unread_body_is_dropped(self):
        """An unread body is dropped once the response is sent."""

        async def answer():
            cycle = make_cycle([])
            cycle.feed(b"a")
            cycle._write(b"", more=True)
            before = bytes(cycle.body)
            cycle._write(b"", more=False)
            return before, cycle.body

        assert asyncio.run(answer()) == (b"a", b"")

    def test_100_continue_is_sent_once(self):
        """The interim response is sent when the application receives the body."""

        async def receive():
            cycle = make_cycle(parts := [], awaits_continue=True)
            cycle.feed(b"a")
            assert parts == []
            await cycle.receive()
            cycle.end_body()
            await cycle.receive()
            return parts

        assert asyncio.run(receive()) == [b"HTTP/1.1 100 Continue\r\n\r\n"]

    def test_no_100_continue_after_a_rejection(self):
        """A request that was rejected before it started gets no interim response."""

        async def receive():
            cycle = make_cycle(parts := [], awaits_continue=True)
            cycle.disconnect()
            return await cycle.receive(), parts

        assert asyncio.run(receive()) == ({"type": "http.disconnect"}, [])


class TestApplications:
    def test_failing_application(self, capsys):
        """The client gets a 500 response, and the exception is logged."""

        async def fail(_scope, _receive, _send):
            raise ValueError("it broke")

        async def answer():
            cycle = make_cycle(parts := [])
            await cycle.run(fail)
            return parts, cycle.keep_alive

        (response,), keep_alive = asyncio.run(answer())

        assert response.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert response.endswith(b"\r\n\r\nInternal Server Error")
        assert not keep_alive
        assert "ValueError: it broke" in capsys.readouterr().err

    def test_application_that_fails_during_the_response(self, capsys):
        """The connection is closed because the response is incomplete."""

        async def fail(_scope, _receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            raise ValueError("it broke")

        async def answer():
            await make_cycle(parts := []).run(fail)
            return parts

        assert asyncio.run(answer())[1:] == ["close"]
        assert "ValueError: it broke" in capsys.readouterr().err

    def test_application_without_a_response(self):
        """The client gets a 500 response, unless it has disconnected."""

        async def silent(_scope, _receive, _send):
            pass

        async def answer(*, disconnects):
            cycle = make_cycle(parts := [])
            if disconnects:
                cycle.disconnect()
            await cycle.run(silent)
            return parts

        assert asyncio.run(answer(disconnects=False))[0].startswith(b"HTTP/1.1 500 ")
        assert asyncio.run(answer(disconnects=True)) == []
