"""Tools: prompts that models can call."""

from typing import Final

from tests.requirements.requirement import (
    ALL,
    HANDSHAKE,
    MODERN,
    SINCE_2025_03,
    SINCE_2025_11,
    Requirement,
)

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "tools/capability",
        "MUST",
        ALL,
        "server/tools#capabilities",
        "The server declares tools.",
    ),
    Requirement(
        "tools/list-changed/session",
        "SHOULD",
        HANDSHAKE,
        "server/tools#list-changed-notification",
        "A session is notified of changes to the list of tools.",
    ),
    Requirement(
        "tools/list-changed/stream",
        "SHOULD",
        MODERN,
        "server/tools#list-changed-notification",
        "A stream that requests it is notified of changes to the list of tools.",
    ),
    Requirement(
        "tools/list/order",
        "SHOULD",
        MODERN,
        "server/tools#capabilities",
        "Tools are listed in the same order each time.",
    ),
    Requirement(
        "tools/input-schema",
        "MUST",
        SINCE_2025_11,
        "server/tools#tool",
        "The schema of the arguments is a valid JSON Schema of an object.",
    ),
    Requirement(
        "tools/errors/unknown",
        "SHOULD",
        ALL,
        "server/tools#error-handling",
        "A call of an unknown tool is a protocol error.",
    ),
    Requirement(
        "tools/errors/execution",
        "SHOULD",
        ALL,
        "server/tools#error-handling",
        "Errors of a tool and invalid arguments are results with an error.",
    ),
    Requirement(
        "tools/inputs",
        "MUST",
        ALL,
        "server/tools#security-considerations",
        "Invalid arguments are rejected.",
    ),
    Requirement(
        "tools/annotations",
        "MAY",
        SINCE_2025_03,
        "server/tools#tool",
        "A tool has annotations that describe its behavior.",
    ),
)
