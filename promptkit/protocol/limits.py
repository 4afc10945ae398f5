"""Limits: how much a client may send, and how much it is sent."""

from math import inf
from typing import Annotated, Any, Final, get_args

from msgspec import Struct, structs

__all__ = [
    "GRACE_S",
    "LARGE_MESSAGE",
    "OPTIONS",
    "PAGE_SIZE",
    "PREFIX_BYTES",
    "Limits",
    "Option",
    "OutOfMemoryLine",
    "OverlongLine",
]

#: How many prompts or resources one page of a list holds.
PAGE_SIZE: Final = 100

#: Longer messages, in bytes, are decoded in parts.
LARGE_MESSAGE: Final = 1 << 16

#: How long running prompts are waited for when serving ends, in seconds.
GRACE_S: Final = 1.0


#: How much of a line that is too long is kept: enough to find the id of the request.
PREFIX_BYTES: Final = 4096


class OverlongLine(bytes):
    """
    The beginning of a line that is too long to be read.
    """

    __slots__ = ()


class OutOfMemoryLine(OverlongLine):
    """
    The beginning of a line that did not fit into memory.
    """

    __slots__ = ()


class Option(Struct, frozen=True):
    """
    How `promptkit serve` names a limit, and how its help describes it.
    """

    name: str
    help: str
    unit: str = "NUMBER"


class Limits(Struct, frozen=True, kw_only=True):
    """
    What a server refuses, with a clear error and without harm to the next request.

    This is the only place where a limit's type, default and option are written; the command line and
    its help are made from it.

    Raises:
        ValueError: If a limit is not above zero.
    """

    timeout: Annotated[
        float, Option("timeout", "how long a prompt may take unless its author sets a limit", "SECONDS")
    ] = 30.0
    renders: Annotated[int, Option("max-renders", "how many prompts may be rendered at the same time")] = 64
    line: Annotated[int, Option("max-line", "how many bytes a request may have")] = 64 * 1024 * 1024
    held: Annotated[
        int, Option("max-held", "how many bytes large requests without a reply may have together")
    ] = 256 * 1024 * 1024
    depth: Annotated[int, Option("max-depth", "how deep the JSON of a request may be nested")] = 100
    values: Annotated[
        int, Option("max-values", "how many JSON values a request, or an argument's text, may hold")
    ] = 50_000
    messages: Annotated[int, Option("max-messages", "how many messages a batch may have")] = 1000
    arguments: Annotated[int, Option("max-arguments", "how many arguments a request may have")] = 1000
    argument: Annotated[int, Option("max-argument", "how many characters one argument may have")] = (
        4 * 1024 * 1024
    )
    # A batch counts as one reply.
    reply: Annotated[int, Option("max-reply", "how many bytes a reply may have")] = 64 * 1024 * 1024
    rate: Annotated[
        float, Option("rate", "how many requests a second are answered, and how many at once")
    ] = inf
    completions: Annotated[float, Option("completion-rate", "the same for completion requests")] = 500.0

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if not value > 0:
                msg = f"{name} is {value!r}: a limit is a number above zero"
                raise ValueError(msg)


#: The type and the option of each limit, by its name in `Limits`.
OPTIONS: Final[dict[str, tuple[Any, Option]]] = {
    name: get_args(annotation) for name, annotation in Limits.__annotations__.items()
}
