"""Limits of a server's requests: how often a caller may ask, and how many wait for a free thread."""

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

#: How many subjects are counted at the same time. The one that has not asked for longest is forgotten.
MOST_SUBJECTS: Final = 10_000

#: How many reports of progress of one request are sent at once, and how many a second from then on. People
#: can read no more. Of what is left out they see the next one, or the reply.
REPORTS_PER_S: Final = 20.0


class TokenBucket:
    """
    Lets so many through at once, and so many a second from then on.

    Args:
        rate:
            How many a second.

        what:
            What is counted, for the error that a client sees.

        clock:
            Tells the time, in seconds.

    See Also:
        https://en.wikipedia.org/wiki/Token_bucket
    """

    def __init__(self, rate: float, what: str, clock: Callable[[], float] | None = None) -> None:
        self._rate = rate
        self._what = what
        self._clock = clock or time.monotonic
        self._capacity = max(1.0, rate)
        self._tokens = self._capacity
        self._updated = self._clock()

    def allows(self) -> bool:
        """Take a token; return False if there is none."""
        now = self._clock()
        self._tokens = min(self._capacity, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True

    def refusal(self) -> TooManyRequests:
        """Return the error for a client that `allows` has not let through."""
        msg = f"more than {self._rate:g} {self._what} a second: try again later"
        seconds = ceil((1 - self._tokens) / self._rate)
        # Clients wait for a second unless the error says how long.
        return TooManyRequests(msg, seconds if seconds > 1 else None)


class TokenBuckets:
    """
    A bucket for each subject, such as the address of a client: nobody uses up what others may ask for.

    Args:
        rate:
            How many a second each of them may have.

        what:
            What is counted, for the error that a client sees.
    """

    def __init__(self, rate: float, what: str) -> None:
        self._bucket = lru_cache(MOST_SUBJECTS)(lambda _subject: TokenBucket(rate, what))
        self._lock = Lock()

    def take(self, subject: str) -> None:
        """
        Take a token of a subject.

        Raises:
            TooManyRequests: If there is none.
        """
        with self._lock:
            bucket = self._bucket(subject)
            if not bucket.allows():
                raise bucket.refusal()


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
