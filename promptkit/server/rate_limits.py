"""Rate limits, per client and per request."""

import time
from collections.abc import Callable
from functools import lru_cache
from threading import Lock
from typing import Final

from promptkit.protocol.jsonrpc import TooManyRequests

#: The maximum number of clients that have a token bucket. The least recently seen client is evicted.
MAX_SUBJECTS: Final = 10_000

#: The rate limit of progress notifications for each request, per second. Users cannot read any faster. If a
#: notification is dropped, they see the next one, or the reply.
REPORTS_PER_S: Final = 20.0


class TokenBucket:
    """
    A rate limit that allows bursts of as many tokens as are added in one second.

    Args:
        rate:
            The number of tokens per second.

        clock:
            A function that returns the time, in seconds.

    See Also:
        https://en.wikipedia.org/wiki/Token_bucket
    """

    def __init__(self, rate: float, clock: Callable[[], float] | None = None) -> None:
        self._rate = rate
        self._clock = clock or time.monotonic
        self._capacity = max(1.0, rate)
        self._tokens = self._capacity
        self._updated = self._clock()

    def try_take(self) -> bool:
        """Take a token, if one is available. Return whether a token was taken."""
        now = self._clock()
        self._tokens = min(self._capacity, self._tokens + (now - self._updated) * self._rate)
        self._updated = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


class TokenBuckets:
    """
    A token bucket for each subject, such as a client's address. Clients cannot use up each other's tokens.

    Args:
        rate:
            The number of tokens per second for each subject.

        noun:
            What each token is for, as a plural noun for the error message.
    """

    def __init__(self, rate: float, noun: str) -> None:
        self._message = f"the limit is {rate:g} {noun} per second: try again later"
        self._bucket = lru_cache(MAX_SUBJECTS)(lambda _subject: TokenBucket(rate))
        self._lock = Lock()

    def take(self, subject: str) -> None:
        """Take one of the subject's tokens, or raise TooManyRequests if none is available."""
        with self._lock:
            if not self._bucket(subject).try_take():
                raise TooManyRequests(self._message)
