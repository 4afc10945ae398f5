"""How often something may happen: requests, and reports of progress."""

import time
from collections.abc import Callable
from functools import lru_cache
from math import ceil
from threading import Lock
from typing import Final

from promptkit.protocol.jsonrpc import TooManyRequests

__all__ = ["MOST_SUBJECTS", "REPORTS_PER_S", "TokenBucket", "TokenBuckets"]

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
