"""Limits on requests: the rate per client, and the number that wait for a free slot."""

import time
from collections import OrderedDict, deque
from collections.abc import Callable
from functools import lru_cache
from math import ceil
from threading import Lock
from typing import Final

import msgspec

from promptkit.protocol.jsonrpc import TooManyRequests
from promptkit.protocol.limits import WAITING_BYTES
from promptkit.server.pending import PendingRequest

#: The maximum number of clients that are counted. The least recently seen client is evicted.
MAX_SUBJECTS: Final = 10_000

#: The rate limit of progress notifications per request. Users cannot read faster. If a notification is
#: dropped, they see the next one, or the reply.
REPORTS_PER_S: Final = 20.0


class TokenBucket:
    """
    A rate limit that allows bursts of one second's tokens.

    Args:
        rate:
            The number of tokens per second.

        noun:
            The plural noun for the error message.

        clock:
            A function that returns the time, in seconds.

    See Also:
        https://en.wikipedia.org/wiki/Token_bucket
    """

    def __init__(self, rate: float, noun: str, clock: Callable[[], float] | None = None) -> None:
        self._rate = rate
        self._noun = noun
        self._clock = clock or time.monotonic
        self._capacity = max(1.0, rate)
        self._tokens = self._capacity
        self._updated = self._clock()

    def allows(self) -> bool:
        """Take a token if there is one. Return whether there was."""
        now = self._clock()
        self._tokens = min(self._capacity, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def error(self) -> TooManyRequests:
        """Return the error for a client that has exceeded the rate."""
        msg = f"more than {self._rate:g} {self._noun} per second: try again later"
        seconds = ceil((1 - self._tokens) / self._rate)
        # If the error contains no delay, clients wait for a second.
        return TooManyRequests(msg, seconds if seconds > 1 else None)


class TokenBuckets:
    """
    Token buckets per subject, such as a client's address, so that clients do not use up each other's tokens.

    Args:
        rate:
            The number of tokens per second for each subject.

        noun:
            The plural noun for the error message.
    """

    def __init__(self, rate: float, noun: str) -> None:
        self._bucket = lru_cache(MAX_SUBJECTS)(lambda _subject: TokenBucket(rate, noun))
        self._lock = Lock()

    def take(self, subject: str) -> None:
        """Take a token of a subject, or raise TooManyRequests if there is none."""
        with self._lock:
            bucket = self._bucket(subject)
            if not bucket.allows():
                raise bucket.error()


def queue_full_error(waiting: int) -> TooManyRequests:
    """Return the error for a request that can neither run nor wait."""
    return TooManyRequests(f"{waiting:,} requests are already waiting, which is the limit: try again later")


class WaitingQueue:
    """
    A queue of requests that is fair to principals: they take turns, each with its oldest request first.

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
        self._entries: dict[PendingRequest, tuple[str, int]] = {}  # the principal, and the size
        self._by_subject: OrderedDict[str, deque[PendingRequest]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def add(self, pending: PendingRequest) -> PendingRequest | None:
        """
        Add a request.

        If the queue is full, the newest request of the principal with the most requests is evicted, unless
        the new request's own principal would then have at least as many.

        Returns:
            The evicted request, which must be rejected; None if no request was evicted.

        Raises:
            TooManyRequests: If the queue is full and no request was evicted.
        """
        subject, size = pending.request.subject, len(msgspec.json.encode(pending.request.params))
        evicted, available = None, self._byte_limit - self._bytes
        if len(self) >= self._limit or size > available:
            evicted = self._find_evictable(subject)
            if evicted is None or size > available + self._entries[evicted][1]:
                raise queue_full_error(len(self))
            self.remove(evicted)
        self._entries[pending] = subject, size
        self._bytes += size
        self._by_subject.setdefault(subject, deque()).append(pending)
        return evicted

    def pop(self) -> PendingRequest | None:
        """Remove and return the request that runs next, or None if the queue is empty."""
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

    def _find_evictable(self, subject: str) -> PendingRequest | None:
        """
        Return the newest request of the principal with the most requests, if *subject* would have fewer.
        """
        requests = max(self._by_subject.values(), key=len, default=deque[PendingRequest]())
        return requests[-1] if len(requests) > len(self._by_subject.get(subject, ())) + 1 else None
