"""Limits: how much a client may send, and how much it is sent."""

from math import inf
from typing import Final

from msgspec import Struct, structs

__all__ = ["LARGE_MESSAGE", "Limits"]

#: Longer messages, in bytes, are decoded in parts.
LARGE_MESSAGE: Final = 1 << 16


class Limits(Struct, frozen=True, kw_only=True):
    """
    What goes beyond is refused with a clear error, and does not harm the next request.

    Args:
        line:
            The longest line, in bytes.

        held:
            How long all large requests that are not answered yet may be together, in bytes.

        depth:
            How deep the JSON on a line may be nested.

        values:
            How many values the JSON on a line may hold, in lists and objects.

        messages:
            How many messages one array may hold.

        arguments:
            How many arguments a request may have.

        argument:
            The longest argument, in characters.

        renders:
            How many prompts may be rendered at the same time.

        seconds:
            How long rendering may take if the prompt sets no limit of its own.

        rate:
            How many requests are answered per second, after a burst of the same number.

        completions:
            The same for requests for completion.

        reply:
            The longest reply, in bytes, and the longest line of replies to one array.

    Raises:
        ValueError: If a limit is not above zero.
    """

    line: int = 64 * 1024 * 1024
    held: int = 256 * 1024 * 1024
    depth: int = 100
    values: int = 50_000
    messages: int = 1000
    arguments: int = 1000
    argument: int = 4 * 1024 * 1024
    renders: int = 64
    seconds: float = 30.0
    rate: float = inf
    completions: float = 500.0
    reply: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if not value > 0:
                msg = f"{name} is {value!r}: a limit is a number above zero"
                raise ValueError(msg)
