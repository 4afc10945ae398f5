"""Rates: how many requests a second are answered."""

import time
from collections.abc import Callable
from math import inf

from promptkit.protocol.jsonrpc import TooManyRequests

__all__ = ["TokenBucket"]


class TokenBucket:
    """
    Lets so many requests through at once, and so many a second from then on.

    Args:
        rate:
            How many; infinity for all of them.

        what:
            What is counted, for people.

        clock:
            Tells the time, in seconds.
    """

    def __init__(self, rate: float, what: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.unlimited = rate == inf
        self._rate = rate
        self._what = what
        self._clock = clock
        self._capacity = max(1.0, rate)
        self._left = self._capacity
        self._noted = clock()

    def take(self) -> None:
        """
        Count one request.

        Raises:
            TooManyRequests: If there have been too many.
        """
        now = self._clock()
        self._left = min(self._capacity, self._left + (now - self._noted) * self._rate)
        self._noted = now
        if self._left < 1:
            msg = f"more than {self._rate:g} {self._what} a second: try again later"
            raise TooManyRequests(msg)
        self._left -= 1
