"""Limits: how much a client may send, and how much it is sent."""

from math import inf

from msgspec import Struct, structs

__all__ = ["Limits"]


class Limits(Struct, frozen=True, kw_only=True):
    """
    What is refused, with a clear error and without harm to the next request.

    Args:
        line:
            How long a line may be, in bytes.

        held:
            How long the large ones among the requests that are not answered yet may be together, in
            bytes.

        depth:
            How deep the JSON on a line may be nested.

        values:
            How many values the JSON on a line may hold, in lists and objects.

        messages:
            How many messages may come as one array.

        arguments:
            How many arguments a request may have.

        argument:
            How long one of them may be, in characters.

        renders:
            How many prompts may be rendered beside each other.

        timeout:
            How many seconds a rendering may take if its prompt does not say otherwise.

        rate:
            How many requests a second are answered, after as many at once.

        completions:
            How many of them may ask for completion.

        reply:
            How long a reply may be, in bytes, and the replies to one array together.

    Raises:
        ValueError: If one of them would let nothing through.
    """

    line: int = 64 * 1024 * 1024
    held: int = 256 * 1024 * 1024
    depth: int = 100
    values: int = 50_000
    messages: int = 1000
    arguments: int = 1000
    argument: int = 4 * 1024 * 1024
    renders: int = 64
    timeout: float = 30.0
    rate: float = inf
    completions: float = 500.0
    reply: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if not value > 0:
                msg = f"{name} is {value!r}: a limit is a number above zero"
                raise ValueError(msg)
