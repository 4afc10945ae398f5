"""The line of requests that wait until fewer prompts run, fair between principals."""

from collections import OrderedDict, deque

import msgspec

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.protocol.limits import WAITING_BYTES
from promptkit.server.pending import PendingRequest

__all__ = ["WaitingLine"]


class WaitingLine:
    """
    Requests in the order in which they will run: principals in turn, and each one's oldest first.

    Args:
        most:
            How many requests may wait.

        most_bytes:
            How many bytes their params may have together.
    """

    def __init__(self, most: int, most_bytes: int = WAITING_BYTES) -> None:
        self._most = most
        self._most_bytes = most_bytes
        self._bytes = 0
        self._places: dict[PendingRequest, tuple[str, int]] = {}  # the principal, and the size
        self._by_subject: OrderedDict[str, deque[PendingRequest]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, pending: PendingRequest) -> PendingRequest | None:
        """
        Add a request.

        A full line takes a request of a principal with fewer requests than another one: the newest request
        of the principal with the most requests leaves the line.

        Returns:
            The request that left the line, which has to be refused; None if none did.

        Raises:
            TooManyRequests: If there is no room.
        """
        subject, size = pending.request.subject, len(msgspec.json.encode(pending.request.params))
        evicted, room = None, self._most_bytes - self._bytes
        if len(self) >= self._most or size > room:
            evicted = self._newest_of_longest(subject)
            if evicted is None or size > room + self._places[evicted][1]:
                msg = f"{len(self):,} requests wait already, which is the limit: try again later"
                raise TooManyRequests(msg)
            self.remove(evicted)
        self._places[pending] = subject, size
        self._bytes += size
        self._by_subject.setdefault(subject, deque()).append(pending)
        return evicted

    def pop(self) -> PendingRequest | None:
        """Take the request that runs next out of the line; None if none waits."""
        if not self._by_subject:
            return None
        subject, requests = next(iter(self._by_subject.items()))
        self.remove(pending := requests[0])
        if requests:
            self._by_subject.move_to_end(subject)
        return pending

    def remove(self, pending: PendingRequest) -> None:
        """Take a request out of the line, if it is in it."""
        if pending not in self._places:
            return
        subject, size = self._places.pop(pending)
        self._bytes -= size
        self._by_subject[subject].remove(pending)
        if not self._by_subject[subject]:
            del self._by_subject[subject]

    def _newest_of_longest(self, subject: str) -> PendingRequest | None:
        """The newest request of the principal with the most, if these are more than *subject* would have."""
        requests = max(self._by_subject.values(), key=len, default=deque[PendingRequest]())
        return requests[-1] if len(requests) > len(self._by_subject.get(subject, ())) + 1 else None
