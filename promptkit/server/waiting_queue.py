"""The queue of requests that wait for a free slot, or for the recipes to be imported."""

from collections import OrderedDict, deque

import msgspec

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.protocol.limits import WAITING_BYTES
from promptkit.server.pending import PendingRequest


def queue_full_error(waiting: int) -> TooManyRequests:
    """Return the error for a request that can neither run nor wait."""
    return TooManyRequests(f"{waiting:,} requests are already waiting, which is the limit: try again later")


class WaitingQueue:
    """
    A queue of requests that is fair to callers: they take turns, and each caller's oldest request runs first.

    Args:
        limit:
            The maximum number of requests.

        byte_limit:
            The maximum total size of the params of these requests, in bytes.
    """

    def __init__(self, limit: int, byte_limit: int = WAITING_BYTES) -> None:
        self._limit = limit
        self._byte_limit = byte_limit
        self._bytes = 0
        self._entries: dict[PendingRequest, tuple[str, int]] = {}  # the caller, and the size
        self._by_subject: OrderedDict[str, deque[PendingRequest]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, pending: PendingRequest) -> PendingRequest | None:
        """
        Add a request.

        If the queue is full, the newest request of the caller with the most requests is evicted. If the
        caller of the new request would then have at least as many requests, no request is evicted.

        Returns:
            The evicted request, which must be rejected; None if no request was evicted.

        Raises:
            TooManyRequests: If the queue is full and no request was evicted.
        """
        subject, size = pending.request.subject, len(msgspec.json.encode(pending.request.params))
        evicted, available = None, self._byte_limit - self._bytes
        if len(self) >= self._limit or size > available:
            evicted = self._find_evictable_request(subject)
            if evicted is None or size > available + self._entries[evicted][1]:
                raise queue_full_error(len(self))
            self.remove(evicted)
        self._entries[pending] = subject, size
        self._bytes += size
        self._by_subject.setdefault(subject, deque()).append(pending)
        return evicted

    def pop(self) -> PendingRequest | None:
        """Remove the next request to run, and return it; return None if the queue is empty."""
        if not self._by_subject:
            return None
        subject, requests = next(iter(self._by_subject.items()))
        self.remove(pending := requests[0])
        if requests:
            self._by_subject.move_to_end(subject)
        return pending

    def remove(self, pending: PendingRequest) -> None:
        """Remove a request from the queue, if it is there."""
        if pending not in self._entries:
            return
        subject, size = self._entries.pop(pending)
        self._bytes -= size
        self._by_subject[subject].remove(pending)
        if not self._by_subject[subject]:
            del self._by_subject[subject]

    def _find_evictable_request(self, subject: str) -> PendingRequest | None:
        """
        Return the newest request of the caller with the most requests.

        Return None if the caller *subject*, with one more request, would have at least as many requests as
        that caller.
        """
        requests = max(self._by_subject.values(), key=len, default=deque[PendingRequest]())
        return requests[-1] if len(requests) > len(self._by_subject.get(subject, ())) + 1 else None
