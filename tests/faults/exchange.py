"""A stream of lines to a server, written in random pieces, and the record of its replies."""

from itertools import count

from tests.faults.ledger import Ledger
from tests.faults.serving import PATIENCE
from tests.wire import HANDSHAKES, initialize, line, notification

#: The maximum number of bytes per write.
PIECE = 20_000

ANSWERS = [
    {"result": {"action": "accept", "content": {"name": "Ada", "count": 3}}},
    {"result": {"action": "accept", "content": {"count": "many"}}},
    {"result": {"action": "decline"}},
    {"result": 5},
    {"error": {"code": -1, "message": "no"}},
]


def unique_ids():
    """Yield unique ids of both types."""
    for number in count(1_000_000):
        yield number
        yield f"r{number}"


class Exchange:
    """
    A client that sends lines, answers elicitations, and waits until every request is answered.

    Args:
        serving:
            The server.

        schemas:
            The validator of lines from the server.

        random:
            The source of the sizes of pieces and of answers to elicitations.
    """

    def __init__(self, serving, schemas, random):
        self.ledger = Ledger()
        self.invalid = []
        self.numbers = unique_ids()
        self._serving = serving
        self._schemas = schemas
        self._random = random
        self._seen = 0
        self._pending = b""
        self._listening = []

    def send(self, text):
        """Queue one line, which a mutation can have split into several."""
        for part in text.split(b"\n"):
            self._open_batches(part)
            self._record(part)
            self._pending += part + b"\n"
        while len(self._pending) > PIECE:
            self._flush(self._random.randrange(1, PIECE))

    def flush(self):
        """Write all queued lines, and answers to the elicitations that arrive in the meantime."""
        while self._pending:
            self._flush(len(self._pending))

    def settle(self):
        """Cancel all streams, and wait until all requests are answered."""
        for number in self._listening:
            self._send_own(notification("notifications/cancelled", {"requestId": number}))
        self._listening.clear()
        self.flush()
        while self.ledger.waiting:
            seen = self._seen
            try:
                self._serving.wait(lambda seen=seen: len(self._serving.lines) > seen, PATIENCE)
            except TimeoutError as error:
                missing = {
                    number: self.ledger.sent_by_id[number] for number in sorted(self.ledger.waiting)[:5]
                }
                msg = f"{len(self.ledger.waiting)} requests are not answered, such as {missing}"
                raise TimeoutError(msg) from error
            self._absorb()
            self.flush()

    def end(self):
        """Close the input, and return the exit code."""
        _, code = self._serving.end()
        self._serving.wait(lambda: self._serving.ended)
        self._absorb()
        return code

    def errors(self):
        """Return all errors: lines that are not messages, and ids with a wrong number of replies."""
        partial = [self._serving.partial_line] if self._serving.partial_line else []
        return self.invalid[:5] + partial + list(self.ledger.errors().items())[:5]

    def _open_batches(self, part):
        """Open a session of the only revision with batches before a batch is sent."""
        if part.lstrip().startswith(b"["):
            self._send_own(initialize(HANDSHAKES[1], next(self.numbers), {"elicitation": {}}))

    def _send_own(self, message):
        text = line(message)
        self.ledger.record_sent(text)
        self._pending += text

    def _record(self, part):
        message = self.ledger.record_sent(part)
        for each in message if isinstance(message, list) else [message]:
            if isinstance(each, dict) and each.get("method") == "subscriptions/listen" and "id" in each:
                self._listening.append(each["id"])

    def _flush(self, size):
        self._serving.write(self._pending[:size])
        self._pending = self._pending[size:]
        self._absorb()

    def _absorb(self):
        """Process the lines that have arrived."""
        end = len(self._serving.lines)
        for _, text in self._serving.lines[self._seen : end]:
            if self._schemas.allow(text):
                self.ledger.record_received(text)
            else:
                self.invalid.append(text)
        self._seen = end
        for elicitation in self.ledger.elicitations:
            self._send_own({"jsonrpc": "2.0", "id": elicitation["id"], **self._random.choice(ANSWERS)})
        self.ledger.elicitations.clear()
