"""A stream of lines to a server, cut anywhere, and the account of what comes back."""

from itertools import count

from tests.faults.ledger import Ledger
from tests.faults.serving import PATIENCE
from tests.wire import HANDSHAKES, initialize, line, notification

#: How much is written at once, at most.
PIECE = 20_000

ANSWERS = [
    {"result": {"action": "accept", "content": {"name": "Ada", "count": 3}}},
    {"result": {"action": "accept", "content": {"count": "many"}}},
    {"result": {"action": "decline"}},
    {"result": 5},
    {"error": {"code": -1, "message": "no"}},
]


def numbers():
    """Yield ids that no other request has, of both types."""
    for number in count(1_000_000):
        yield number
        yield f"r{number}"


class Exchange:
    """
    Sends lines, answers what the server asks, and waits until every request is answered.

    Args:
        serving:
            The server.

        schemas:
            What allows a line of the server's.

        random:
            Where the stream is cut, and how questions are answered.
    """

    def __init__(self, serving, schemas, random):
        self.ledger = Ledger()
        self.invalid = []
        self.numbers = numbers()
        self._serving = serving
        self._schemas = schemas
        self._random = random
        self._seen = 0
        self._pending = b""
        self._listening = []

    def send(self, text):
        """Take one line to be sent, which a mutation may have made several."""
        for part in text.split(b"\n"):
            self._open_batches(part)
            self._note(part)
            self._pending += part + b"\n"
        while len(self._pending) > PIECE:
            self._flush(self._random.randrange(1, PIECE))

    def flush(self):
        """Write what is left of what was sent, and the answers to what is asked meanwhile."""
        while self._pending:
            self._flush(len(self._pending))

    def settle(self):
        """Wait until everything that was sent is answered, but for streams, which are cancelled."""
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
        """End the input; return the exit code."""
        _, code = self._serving.end()
        self._serving.wait(lambda: self._serving.ended)
        self._absorb()
        return code

    def faults(self):
        """Return everything that is wrong: lines that are no messages, and ids with a wrong count."""
        rest = [self._serving.rest] if self._serving.rest else []
        return self.invalid[:5] + rest + list(self.ledger.faults().items())[:5]

    def _open_batches(self, part):
        """Arrays are only taken in sessions of one revision: open one."""
        if part.lstrip().startswith(b"["):
            self._send_own(initialize(HANDSHAKES[1], next(self.numbers), {"elicitation": {}}))

    def _send_own(self, message):
        text = line(message)
        self.ledger.sent(text)
        self._pending += text

    def _note(self, part):
        message = self.ledger.sent(part)
        for one in message if isinstance(message, list) else [message]:
            if isinstance(one, dict) and one.get("method") == "subscriptions/listen" and "id" in one:
                self._listening.append(one["id"])

    def _flush(self, size):
        self._serving.write(self._pending[:size])
        self._pending = self._pending[size:]
        self._absorb()

    def _absorb(self):
        """Look at what has come since."""
        until = len(self._serving.lines)
        for _, text in self._serving.lines[self._seen : until]:
            if self._schemas.allow(text):
                self.ledger.came(text)
            else:
                self.invalid.append(text)
        self._seen = until
        for question in self.ledger.asked:
            self._send_own({"jsonrpc": "2.0", "id": question["id"], **self._random.choice(ANSWERS)})
        self.ledger.asked.clear()
