"""`Exchange`, the client of these tests, answers every elicitation."""

from tests.faults.chance import SEED, Chance
from tests.faults.exchange import Exchange
from tests.wire import line, request

ELICITATION = {"jsonrpc": "2.0", "id": "promptkit-1", "method": "elicitation/create", "params": {}}


class ElicitingServer:
    """A server that sends an elicitation before a write returns, and replies once it is answered."""

    def __init__(self):
        self.lines, self.partial_line, self.ended = [], b"", True

    def write(self, data):
        """Handle the data of a client."""
        if b'"method"' in data:
            self.lines.append((0.0, line(ELICITATION)))
        elif data:
            self.lines.append((0.0, line({"jsonrpc": "2.0", "id": 1, "result": {}})))

    def wait(self, condition, _seconds=None):
        """Check the condition once, because no data arrives later."""
        if not condition():
            raise TimeoutError


class AllowAll:
    """Schemas that allow every line."""

    def allow(self, _text):
        """Return True."""
        return True


def test_elicitation_during_the_last_write_is_answered():
    """An elicitation during the last write is answered, although no later line would trigger the answer."""
    exchange = Exchange(ElicitingServer(), AllowAll(), Chance(SEED))
    exchange.send(line(request(1, "prompts/get", {"name": "asks"})).rstrip())

    exchange.settle()

    assert exchange.errors() == []
