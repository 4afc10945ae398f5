"""How an application reads a request, and how its response is written: the head together with the body."""

import asyncio
from types import SimpleNamespace

import pytest

from promptkit.transports.http.request_cycle import JOINED_BYTES, RequestCycle

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

    def __init__(
        self, *bodies, headers=(), status=200, method="POST", keep_alive=True, version="1.1", whole=True
    ):
        self.parts, self.ended = [], False
        self.cycle = RequestCycle(
            connection(self.parts, self.end),
            {"method": method, "http_version": version},
            keep_alive=keep_alive,
            awaits_continue=False,
        )
        if whole:
            self.cycle.end_body()
        start = {"type": "http.response.start", "status": status, "headers": list(headers)}
        self.send(start)
        for left, body in zip(reversed(range(len(bodies))), bodies, strict=True):
            self.send({"type": "http.response.body", "body": body, "more_body": left > 0})

    def end(self, cycle):
        """Note that the response is complete."""
        self.ended = cycle.is_complete

    def send(self, message):
        """Send one message of ASGI."""
        asyncio.run(self.cycle.send(message))


def connection(parts, end=bool):
    """A connection that keeps what is written to it."""
    transport = SimpleNamespace(
        write=parts.append, close=lambda: parts.append("close"), is_closing=lambda: False
    )
    return SimpleNamespace(
        transport=transport,
        drained=None,
        date=b"date: now\r\n",
        end_cycle=end,
        resume_reading=lambda: parts.append("read on"),
    )


def cycle_of(parts, *, awaits_continue=False):
    """A cycle on the running event loop."""
    made = connection(parts)
    made.loop = asyncio.get_running_loop()
    return RequestCycle(
        made, {"method": "POST", "http_version": "1.1"}, keep_alive=True, awaits_continue=awaits_continue
    )


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


def test_a_client_that_knows_no_chunks():
    """
    The end of what has no length is that of the connection.
    """
    written = Written(b"one", b"two", keep_alive=False, version="1.0")

    assert written.parts == [head(b"connection: close") + b"one", b"two"]


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
    Once, by whatever decides it.
    """
    written = Written(b"one", headers=headers, keep_alive=keep_alive)

    assert written.parts == [head(b"content-length: 3", b"connection: close") + b"one"]
    assert not written.cycle.keep_alive


def test_a_response_that_comes_before_the_body_is_the_last():
    """
    What comes of the body later is never taken for another request.
    """
    written = Written(b"one", headers=SIZED, whole=False)

    assert written.parts == [head(b"content-length: 3", b"connection: close") + b"one"]


@pytest.mark.parametrize("name", [b"x", b"content-length"])
@pytest.mark.parametrize("value", [b"1\r\nset-cookie: b", b"1\n", b"a\nb", b"a\rb"])
def test_no_header_becomes_two(name, value):
    """
    A value with a line break is an error, and nothing of the response is written.
    """
    for _ in range(2):
        with pytest.raises(RuntimeError, match="a header has a line break"):
            Written(b"one", headers=[(name, value)])


def test_each_response_has_its_own_headers():
    """
    One name with another value, and another name with the same value, though lines are kept.
    """
    for field in ((b"x", b"1"), (b"x", b"2"), (b"y", b"1"), (b"x", b"1")):
        written = Written(b"one", headers=[*SIZED, field])
        assert written.parts == [head(b"content-length: 3", b": ".join(field)) + b"one"]


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
    written.cycle.disconnect()
    written.send({"type": "http.response.body", "body": b"one"})

    assert (written.parts, written.ended) == ([], False)


class TestReceiving:
    def test_pieces_that_came_together(self):
        """
        What has arrived is read at once, and said to be all of it, or not.
        """

        async def receive():
            cycle = cycle_of(parts := [])
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

    def test_waiting_reads_on(self):
        """
        An application that waits has the connection read.
        """

        async def receive():
            cycle = cycle_of(parts := [])
            waiting = asyncio.create_task(cycle.receive())
            await asyncio.sleep(0)
            assert parts == ["read on"]
            cycle.feed(b"a")
            return await waiting

        assert asyncio.run(receive())["body"] == b"a"

    @pytest.mark.parametrize("end", [RequestCycle.disconnect, lambda cycle: cycle._write(b"", more=False)])
    def test_who_waits_longer_learns_of_the_end(self, end):
        """
        That the client is gone, or has its response.
        """

        async def receive():
            cycle = cycle_of([])
            cycle.end_body()
            await cycle.receive()
            waiting = asyncio.create_task(cycle.receive())
            await asyncio.sleep(0)
            end(cycle)
            return await waiting, await cycle.receive()

        assert asyncio.run(receive()) == ({"type": "http.disconnect"},) * 2

    def test_a_body_that_is_not_read(self):
        """
        It is kept no longer than until the response is sent.
        """

        async def answer():
            cycle = cycle_of([])
            cycle.feed(b"a")
            cycle._write(b"", more=True)
            kept = cycle.body
            cycle._write(b"", more=False)
            return kept, cycle.body

        assert asyncio.run(answer()) == (b"a", b"")

    def test_a_client_that_asks_first(self):
        """
        It is told to send the body once the application wants it, and only once.
        """

        async def receive():
            cycle = cycle_of(parts := [], awaits_continue=True)
            cycle.feed(b"a")
            assert parts == []
            await cycle.receive()
            cycle.end_body()
            await cycle.receive()
            return parts

        assert asyncio.run(receive()) == [b"HTTP/1.1 100 Continue\r\n\r\n"]

    def test_nobody_is_told_to_go_on_after_a_refusal(self):
        """
        Of a request that was refused before it was begun, nothing more is wanted, and nothing can be written.
        """

        async def receive():
            cycle = cycle_of(parts := [], awaits_continue=True)
            cycle.disconnect()
            return await cycle.receive(), parts

        assert asyncio.run(receive()) == ({"type": "http.disconnect"}, [])


class TestApplications:
    def test_one_that_fails(self, capsys):
        """
        The client gets a response all the same, and the log what happened.
        """

        async def fail(_scope, _receive, _send):
            raise ValueError("it broke")

        async def answer():
            cycle = cycle_of(parts := [])
            await cycle.run(fail)
            return parts, cycle.keep_alive

        (written,), keep_alive = asyncio.run(answer())

        assert written.startswith(b"HTTP/1.1 500 Internal Server Error\r\n")
        assert written.endswith(b"\r\n\r\nInternal Server Error")
        assert not keep_alive
        assert "ValueError: it broke" in capsys.readouterr().err

    def test_one_that_fails_in_the_middle(self, capsys):
        """
        The connection ends, as the response cannot.
        """

        async def fail(_scope, _receive, send):
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"a", "more_body": True})
            raise ValueError("it broke")

        async def answer():
            await cycle_of(parts := []).run(fail)
            return parts

        assert asyncio.run(answer())[1:] == ["close"]
        assert "ValueError: it broke" in capsys.readouterr().err

    def test_one_that_says_nothing(self):
        """
        That is a failure, too, unless the client has left.
        """

        async def silent(_scope, _receive, _send):
            pass

        async def answer(*, leaves):
            cycle = cycle_of(parts := [])
            if leaves:
                cycle.disconnect()
            await cycle.run(silent)
            return parts

        assert asyncio.run(answer(leaves=False))[0].startswith(b"HTTP/1.1 500 ")
        assert asyncio.run(answer(leaves=True)) == []
