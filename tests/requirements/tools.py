"""Tools: prompts that models call, where they are served so."""

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
        "The server declares that it has tools.",
    ),
    Requirement(
        "tools/list-changed/session",
        "SHOULD",
        HANDSHAKE,
        "server/tools#list-changed-notification",
        "Once the tools have changed, a session is told.",
    ),
    Requirement(
        "tools/list-changed/stream",
        "SHOULD",
        MODERN,
        "server/tools#list-changed-notification",
        "Once the tools have changed, the streams that want to know are told.",
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
        "A call of an unknown tool is an error of the protocol.",
    ),
    Requirement(
        "tools/errors/execution",
        "SHOULD",
        ALL,
        "server/tools#error-handling",
        "What goes wrong in a tool, or with its arguments, is a result that says so.",
    ),
    Requirement(
        "tools/inputs",
        "MUST",
        ALL,
        "server/tools#security-considerations",
        "Arguments that do not fit are refused.",
    ),
    Requirement(
        "tools/annotations",
        "MAY",
        SINCE_2025_03,
        "server/tools#tool",
        "A tool says what may be expected of a call.",
    ),
)
