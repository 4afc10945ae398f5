"""How often something may happen: requests, and reports of progress."""

import time
from collections.abc import Callable

from promptkit.protocol.jsonrpc import TooManyRequests

__all__ = ["TokenBucket"]


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

    def take(self) -> None:
        """
        Take a token.

        Raises:
            TooManyRequests: If there is none.
        """
        if not self.allows():
            msg = f"more than {self._rate:g} {self._what} a second: try again later"
            raise TooManyRequests(msg)
