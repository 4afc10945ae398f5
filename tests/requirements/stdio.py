"""The stdio transport."""

from typing import Final

from tests.requirements.requirement import ALL, MODERN, SINCE_2025_03, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "stdio/utf-8",
        "MUST",
        SINCE_2025_03,
        "basic/transports",
        "Input and output are UTF-8.",
    ),
    Requirement(
        "stdio/one-line",
        "MUST NOT",
        ALL,
        "basic/transports/stdio",
        "No message contains a newline.",
    ),
    Requirement(
        "stdio/only-messages",
        "MUST NOT",
        ALL,
        "basic/transports/stdio",
        "Standard output contains only messages, whatever prompts print.",
    ),
    Requirement(
        "stdio/log",
        "MAY",
        ALL,
        "basic/transports/stdio",
        "Errors are logged on standard error.",
    ),
    Requirement(
        "stdio/no-requests",
        "MUST NOT",
        MODERN,
        "basic/transports/stdio#receiving-messages",
        "The server sends no requests to a modern client.",
    ),
    Requirement(
        "stdio/known-kinds",
        "MUST",
        MODERN,
        "basic/transports/stdio#receiving-messages",
        "A modern client gets only replies, and notifications for its requests and streams.",
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
        "The server can exit after closing its output.",
    ),
)
