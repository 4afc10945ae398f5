"""Lines over standard input and output."""

from typing import Final

from tests.requirements.requirement import ALL, MODERN, SINCE_2025_03, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "stdio/utf-8",
        "MUST",
        SINCE_2025_03,
        "basic/transports",
        "What the server writes is UTF-8, and UTF-8 is read.",
    ),
    Requirement(
        "stdio/one-line",
        "MUST NOT",
        ALL,
        "basic/transports/stdio",
        "No message holds a newline.",
    ),
    Requirement(
        "stdio/only-messages",
        "MUST NOT",
        ALL,
        "basic/transports/stdio",
        "Nothing but messages comes out of standard output, whatever prompts print.",
    ),
    Requirement(
        "stdio/log",
        "MAY",
        ALL,
        "basic/transports/stdio",
        "What went wrong is told on standard error.",
    ),
    Requirement(
        "stdio/no-requests",
        "MUST NOT",
        MODERN,
        "basic/transports/stdio#receiving-messages",
        "A modern client is never sent a request.",
    ),
    Requirement(
        "stdio/known-kinds",
        "MUST",
        MODERN,
        "basic/transports/stdio#receiving-messages",
        "A modern client is sent replies, and notifications of its requests and streams, and nothing else.",
    ),
    Requirement(
        "stdio/end-of-input",
        "SHOULD",
        MODERN,
        "basic/transports/stdio#shutdown",
        "The server exits soon after its input ends.",
    ),
    Requirement(
        "stdio/server-ends",
        "MAY",
        MODERN,
        "basic/transports/stdio#shutdown",
        "The server may end by itself, by closing its output and exiting.",
    ),
)
