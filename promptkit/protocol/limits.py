"""Limits on requests and replies."""

from math import inf
from typing import Final

from msgspec import Struct, structs

#: Messages longer than this, in bytes, count against `Limits.held` until they are answered.
LARGE_MESSAGE: Final = 1 << 16

#: The maximum length of a request's params without the arguments (names, ``_meta`` and so on), in bytes.
MAX_PARAMS: Final = 1 << 20

#: The maximum total size of the params of all requests that wait for a free slot, in bytes.
WAITING_BYTES: Final = 64 * 1024 * 1024

#: How long shutdown waits for running prompts, in seconds: over stdio, and over HTTP, where load balancers
#: expect more.
GRACE_S: Final = 1.0
HTTP_GRACE_S: Final = 10.0

#: How many bytes of an overlong line are kept. They are enough to find the id of the request.
PREFIX_BYTES: Final = 4096


class OverlongLine(bytes):
    """The beginning of a line that exceeds the limit."""

    __slots__ = ()


class OutOfMemoryLine(OverlongLine):
    """The beginning of a line that did not fit into memory."""

    __slots__ = ()


class CutOff(bytes):
    """Empty bytes that mean the end of a stream that was cut off. An incomplete last line must be dropped."""

    __slots__ = ()


class LimitOption(Struct, frozen=True):
    """The option of `promptkit serve` that sets a limit, and its help."""

    name: str
    help: str
    unit: str = "NUMBER"


class Limits(Struct, frozen=True, kw_only=True):
    """
    The limits of a server. A request that exceeds a limit gets an error, and later requests are not affected.

    The command line and its help are generated from these types and defaults, and from `OPTIONS`.

    Raises:
        ValueError: If a limit is not greater than zero.
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
    reply: int = 64 * 1024 * 1024  # a batch counts as one reply
    rate: float = inf
    completions: float = 500.0

    def __post_init__(self) -> None:
        for name, value in structs.asdict(self).items():
            if not value > 0:
                msg = f"{name} is {value!r}: a limit must be greater than zero"
                raise ValueError(msg)


#: The option for each limit, keyed by the limit's name in `Limits`.
OPTIONS: Final[dict[str, LimitOption]] = {
    "timeout": LimitOption(
        "timeout", "seconds for one request, unless the prompt has its own limit", "SECONDS"
    ),
    "renders": LimitOption("max-renders", "prompts rendered at the same time"),
    "waiting": LimitOption("max-waiting", "requests that wait while --max-renders are running"),
    "line": LimitOption("max-line", "bytes of a message on standard input; over HTTP, see --max-body"),
    "held": LimitOption("max-held", "bytes of all large pending requests, and of unread replies over HTTP"),
    "depth": LimitOption("max-depth", "nesting depth of JSON in a request"),
    "values": LimitOption("max-values", "JSON values in a request or in the text of an argument"),
    "messages": LimitOption("max-messages", "messages in a JSON-RPC batch"),
    "arguments": LimitOption("max-arguments", "arguments of a request"),
    "argument": LimitOption("max-argument", "bytes of JSON in one argument"),
    "reply": LimitOption("max-reply", "bytes of a reply"),
    "rate": LimitOption("rate", "requests per second; also the largest burst"),
    "completions": LimitOption("completion-rate", "completion requests per second; also the largest burst"),
}
