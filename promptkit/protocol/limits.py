"""Limits: how much a client may send, and how much it is sent."""

from math import inf
from typing import Final

from msgspec import Struct, structs

#: How many prompts or resources one page of a list holds. Many frameworks read the first page alone.
PAGE_SIZE: Final = 1000

#: Longer messages, in bytes, count against `Limits.held` until they are answered.
LARGE_MESSAGE: Final = 1 << 16

#: The limit of the params of a request without arguments, in bytes: names, ``_meta`` and so on.
MAX_PARAMS: Final = 1 << 20

#: How many bytes the params of all requests may have that wait until fewer prompts run.
WAITING_BYTES: Final = 64 * 1024 * 1024

#: How long running prompts are waited for when serving ends, in seconds: over stdio, and over HTTP, where
#: balancers expect more.
GRACE_S: Final = 1.0
HTTP_GRACE_S: Final = 10.0


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


class CutOff(bytes):
    """
    No bytes, as at the end of a stream, but it is not read to its end: a line that has begun is dropped.
    """

    __slots__ = ()


class LimitOption(Struct, frozen=True):
    """
    How `promptkit serve` names a limit, and how its help describes it.
    """

    name: str
    help: str
    unit: str = "NUMBER"


class Limits(Struct, frozen=True, kw_only=True):
    """
    What a server refuses, with a clear error and without harm to the next request.

    The command line and its help are made from these types and defaults, and from `OPTIONS`.

    Raises:
        ValueError: If a limit is not above zero.
    """

    timeout: float = 30.0
    renders: int = 64
    waiting: int = 1000
    line: int = 64 * 1024 * 1024
    held: int = 256 * 1024 * 1024
    depth: int = 100
    values: int = 50_000
    messages: int = 1000
    arguments: int = 1000
    argument: int = 4 * 1024 * 1024
    reply: int = 64 * 1024 * 1024  # a batch counts as one
    rate: float = inf
    completions: float = 500.0

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if not value > 0:
                msg = f"{name} is {value!r}: a limit is a number above zero"
                raise ValueError(msg)


#: The option of each limit, by its name in `Limits`.
OPTIONS: Final[dict[str, LimitOption]] = {
    "timeout": LimitOption("timeout", "time for one request, unless the prompt has a limit", "SECONDS"),
    "renders": LimitOption("max-renders", "prompts rendered at the same time"),
    "waiting": LimitOption("max-waiting", "requests that wait while --max-renders run"),
    "line": LimitOption("max-line", "bytes of a request"),
    "held": LimitOption("max-held", "bytes of all large pending requests, and of unread replies over HTTP"),
    "depth": LimitOption("max-depth", "nesting depth of JSON in a request"),
    "values": LimitOption("max-values", "JSON values in a request or in the text of an argument"),
    "messages": LimitOption("max-messages", "messages in a JSON-RPC batch"),
    "arguments": LimitOption("max-arguments", "arguments of a request"),
    "argument": LimitOption("max-argument", "characters of JSON in one argument"),
    "reply": LimitOption("max-reply", "bytes of a reply"),
    "rate": LimitOption("rate", "requests per second, and in one burst"),
    "completions": LimitOption("completion-rate", "completion requests per second, and in one burst"),
}
