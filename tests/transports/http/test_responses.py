"""How responses are written to a connection: heads together with bodies."""

from promptkit.transports.http.responses import CONTINUE, JOINED_BYTES, Responses


class Transport:
    """Keeps what is written."""

    def __init__(self):
        self.written = []

    def write(self, data):
        """Keep it."""
        self.written.append(data)

    def close(self):
        """Keep that, too."""
        self.written.append("close")

    def is_closing(self):
        """Whether it is closed."""
        return "close" in self.written


def written(*parts):
    """What comes of the parts of one response, and of the next one."""
    transport = Transport()
    responses = Responses(transport)
    for part in parts:
        responses.write(part)
    responses.end()
    first, transport.written = transport.written, []
    responses.write(b"head")
    responses.write(b"body")
    assert transport.written == [b"headbody"]
    return first


def test_a_head_is_written_together_with_its_body():
    """
    What follows is written as it comes.
    """
    assert written(b"head", b"one", b"two", b"") == [b"headone", b"two", b""]


def test_a_head_without_a_body_is_written():
    """
    Uvicorn writes an empty body after it.
    """
    assert written(b"head", b"") == [b"head"]


def test_a_long_body_is_not_copied():
    """
    The very bytes are written.
    """
    body = b"x" * (JOINED_BYTES + 1)

    head, same = written(b"head", body)

    assert head == b"head"
    assert same is body


def test_who_waits_to_send_a_body_is_told_at_once():
    """
    That is no response yet.
    """
    assert written(CONTINUE, b"head", b"body") == [CONTINUE, b"headbody"]


def test_what_has_begun_is_written_before_the_end():
    """
    An application may fail between a head and a body.
    """
    transport = Transport()
    responses = Responses(transport)
    responses.write(b"head")
    responses.close()

    assert transport.written == [b"head", "close"]
    assert responses.is_closing()
