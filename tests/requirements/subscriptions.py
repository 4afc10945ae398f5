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
        "A stream gets only the kinds of notifications that it requested.",
    ),
    Requirement(
        "subscriptions/acknowledged",
        "MUST",
        MODERN,
        "basic/patterns/subscriptions#acknowledgment",
        "The first message of a stream is an acknowledgement.",
    ),
    Requirement(
        "subscriptions/nothing-before",
        "MUST NOT",
        MODERN,
        "basic/patterns/subscriptions#acknowledgment",
        "No message is sent on a stream before its acknowledgement.",
    ),
    Requirement(
        "subscriptions/subset",
        "MUST",
        MODERN,
        "basic/patterns/subscriptions#acknowledgment",
        "The acknowledgement lists only the notifications that the server will send.",
    ),
    Requirement(
        "subscriptions/id",
        "MUST",
        MODERN,
        "basic#meta",
        "Every message on a stream has the id of the request that opened it.",
    ),
    Requirement(
        "subscriptions/several",
        "MAY",
        MODERN,
        "basic/patterns/subscriptions#multiple-concurrent-subscriptions",
        "A client can have several streams with separate notifications.",
    ),
    Requirement(
        "subscriptions/resources",
        "MUST",
        MODERN,
        "basic/patterns/subscriptions#notification-filter",
        "A stream is notified of updates of the resources that it names.",
    ),
    Requirement(
        "subscriptions/cancelled",
        "MUST NOT",
        MODERN,
        "basic/transports/stdio#cancellation",
        "A stream that its client has cancelled gets no further message.",
    ),
    Requirement(
        "subscriptions/graceful",
        "SHOULD",
        MODERN,
        "basic/patterns/subscriptions#graceful-closure",
        "When the server ends a stream, it sends the result of its request.",
    ),
    Requirement(
        "subscriptions/torn-down",
        "MUST",
        MODERN,
        "basic/patterns/cancellation",
        "A stream that the server ends is also cancelled, after its result.",
    ),
)
