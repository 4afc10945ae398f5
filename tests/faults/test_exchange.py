"""The test client behaves as the protocol wants: it leaves no question unanswered."""

from tests.faults.chance import SEED, Chance
from tests.faults.exchange import Exchange
from tests.wire import line, request

QUESTION = {"jsonrpc": "2.0", "id": "promptkit-1", "method": "elicitation/create", "params": {}}


class Asking:
    """A server that asks before a write returns, and replies once it is answered."""

    def __init__(self):
        self.lines, self.rest, self.ended = [], b"", True

    def write(self, data):
        """Take what a client writes."""
        if b'"method"' in data:
            self.lines.append((0.0, line(QUESTION)))
        elif data:
            self.lines.append((0.0, line({"jsonrpc": "2.0", "id": 1, "result": {}})))

    def wait(self, condition, _seconds=None):
        """Nothing comes by itself."""
        if not condition():
            raise TimeoutError


class Everything:
    """Schemas that allow every line."""

    def allow(self, _text):
        """Whether a line is allowed."""
        return True


def test_a_question_that_comes_while_the_last_line_is_written():
    """It is answered: nothing else will come that could remind the client of it."""
    exchange = Exchange(Asking(), Everything(), Chance(SEED))
    exchange.send(line(request(1, "prompts/get", {"name": "asks"})).rstrip())

    exchange.settle()

    assert exchange.faults() == []
