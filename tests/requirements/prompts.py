"""Prompts: listed, rendered, changed."""

from typing import Final

from tests.requirements.requirement import ALL, HANDSHAKE, MODERN, SINCE_2025_03, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "prompts/capability",
        "MUST",
        ALL,
        "server/prompts#capabilities",
        "The server declares that it has prompts.",
    ),
    Requirement(
        "prompts/list/answered",
        "MUST",
        MODERN,
        "server/prompts#capabilities",
        "The list of prompts is answered with all that are available.",
    ),
    Requirement(
        "prompts/list/empty",
        "MAY",
        MODERN,
        "server/prompts#capabilities",
        "A catalog without prompts is served as an empty list.",
    ),
    Requirement(
        "prompts/list/same-for-all",
        "MUST NOT",
        MODERN,
        "server/prompts#capabilities",
        "What is listed depends neither on the connection nor on what was asked before.",
    ),
    Requirement(
        "prompts/list-changed/session",
        "SHOULD",
        HANDSHAKE,
        "server/prompts#list-changed-notification",
        "A session is told that the list of prompts has changed.",
    ),
    Requirement(
        "prompts/list-changed/stream",
        "SHOULD",
        MODERN,
        "server/prompts#list-changed-notification",
        "A stream that wants it is told that the list of prompts has changed.",
    ),
    Requirement(
        "prompts/get/image",
        "MUST",
        ALL,
        "server/prompts#image-content",
        "An image is sent as base64 with its MIME type.",
    ),
    Requirement(
        "prompts/get/audio",
        "MUST",
        SINCE_2025_03,
        "server/prompts#audio-content",
        "Audio is sent as base64 with its MIME type.",
    ),
    Requirement(
        "prompts/get/resource-link",
        "MAY",
        MODERN,
        "server/prompts#resource-links",
        "A message may be a link to a resource.",
    ),
    Requirement(
        "prompts/get/embedded-uri",
        "MUST",
        ALL,
        "server/prompts#embedded-resources",
        "An embedded resource has a valid URI.",
    ),
    Requirement(
        "prompts/get/embedded-mime-type",
        "MUST",
        ALL,
        "server/prompts#embedded-resources",
        "An embedded resource has a MIME type that fits it.",
    ),
    Requirement(
        "prompts/get/embedded-contents",
        "MUST",
        ALL,
        "server/prompts#embedded-resources",
        "An embedded resource holds either its text or its bytes as base64.",
    ),
    Requirement(
        "prompts/get/input-required",
        "MAY",
        MODERN,
        "server/prompts#getting-a-prompt",
        "A prompt that is declared so asks for what is missing instead of refusing.",
    ),
    Requirement(
        "prompts/get/unknown-name",
        "SHOULD",
        ALL,
        "server/prompts#error-handling",
        "An unknown name is answered with -32602.",
    ),
    Requirement(
        "prompts/get/missing-argument",
        "SHOULD",
        ALL,
        "server/prompts#error-handling",
        "A missing argument is answered with -32602.",
    ),
    Requirement(
        "prompts/get/internal-error",
        "SHOULD",
        ALL,
        "server/prompts#error-handling",
        "A prompt that fails is answered with -32603.",
    ),
    Requirement(
        "prompts/get/arguments-first",
        "SHOULD",
        ALL,
        "server/prompts#implementation-considerations",
        "Arguments are checked before the author's function is called.",
    ),
    Requirement(
        "prompts/capabilities-respected",
        "SHOULD",
        ALL,
        "server/prompts#implementation-considerations",
        "What was not declared is not used for prompts.",
    ),
    Requirement(
        "prompts/security/inputs",
        "MUST",
        ALL,
        "server/prompts#security",
        "Arguments cannot inject wire content or reach what their prompt does not offer.",
    ),
    Requirement(
        "prompts/security/outputs",
        "MUST",
        ALL,
        "server/prompts#security",
        "What a prompt makes is checked before it is sent.",
    ),
)
