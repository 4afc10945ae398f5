"""Streams of notifications: `subscriptions/listen`."""

from typing import Final

from tests.requirements.requirement import MODERN, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "subscriptions/unrequested",
        "MUST NOT",
        MODERN,
        "basic/patterns/subscriptions#opening-a-stream",
        "A stream gets only the kinds of notifications that it asked for.",
    ),
    Requirement(
        "subscriptions/acknowledged",
        "MUST",
        MODERN,
        "basic/patterns/subscriptions#acknowledgment",
        "A stream begins with an acknowledgement.",
    ),
    Requirement(
        "subscriptions/nothing-before",
        "MUST NOT",
        MODERN,
        "basic/patterns/subscriptions#acknowledgment",
        "Nothing is sent on a stream before its acknowledgement.",
    ),
    Requirement(
        "subscriptions/subset",
        "MUST",
        MODERN,
        "basic/patterns/subscriptions#acknowledgment",
        "The acknowledgement names what the server will tell, and leaves out what it cannot.",
    ),
    Requirement(
        "subscriptions/id",
        "MUST",
        MODERN,
        "basic#meta",
        "Whatever is sent on a stream bears the id of the request that opened it.",
    ),
    Requirement(
        "subscriptions/several",
        "MAY",
        MODERN,
        "basic/patterns/subscriptions#multiple-concurrent-subscriptions",
        "A client may have several streams, and each is told by itself.",
    ),
    Requirement(
        "subscriptions/resources",
        "MUST",
        MODERN,
        "basic/patterns/subscriptions#notification-filter",
        "A stream is told of updates of the resources that it names.",
    ),
    Requirement(
        "subscriptions/cancelled",
        "MUST NOT",
        MODERN,
        "basic/transports/stdio#cancellation",
        "A stream that its client has cancelled is told nothing more.",
    ),
    Requirement(
        "subscriptions/graceful",
        "SHOULD",
        MODERN,
        "basic/patterns/subscriptions#graceful-closure",
        "A stream that the server ends is ended by the result of its request.",
    ),
    Requirement(
        "subscriptions/torn-down",
        "MUST",
        MODERN,
        "basic/patterns/cancellation",
        "A stream that the server ends is also cancelled, after its result.",
    ),
)
