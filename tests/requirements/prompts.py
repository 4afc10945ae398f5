"""Listing, rendering and changing prompts."""

from typing import Final

from tests.requirements.requirement import ALL, HANDSHAKE, MODERN, SINCE_2025_03, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "prompts/capability",
        "MUST",
        ALL,
        "server/prompts#capabilities",
        "The server declares prompts.",
    ),
    Requirement(
        "prompts/list/answered",
        "MUST",
        MODERN,
        "server/prompts#capabilities",
        "The list contains all available prompts.",
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
        "The list depends neither on the connection nor on earlier requests.",
    ),
    Requirement(
        "prompts/list-changed/session",
        "SHOULD",
        HANDSHAKE,
        "server/prompts#list-changed-notification",
        "A session is notified of changes to the list of prompts.",
    ),
    Requirement(
        "prompts/list-changed/stream",
        "SHOULD",
        MODERN,
        "server/prompts#list-changed-notification",
        "A stream that requests it is notified of changes to the list of prompts.",
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
        "A message can be a link to a resource.",
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
        "An embedded resource has an appropriate MIME type.",
    ),
    Requirement(
        "prompts/get/embedded-contents",
        "MUST",
        ALL,
        "server/prompts#embedded-resources",
        "An embedded resource contains either text or base64-encoded bytes.",
    ),
    Requirement(
        "prompts/get/input-required",
        "MAY",
        MODERN,
        "server/prompts#getting-a-prompt",
        "A prompt with `elicit` requests missing arguments instead of failing.",
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
        "A failing prompt is answered with -32603.",
    ),
    Requirement(
        "prompts/get/arguments-first",
        "SHOULD",
        ALL,
        "server/prompts#implementation-considerations",
        "Arguments are validated before the author's function is called.",
    ),
    Requirement(
        "prompts/capabilities-respected",
        "SHOULD",
        ALL,
        "server/prompts#implementation-considerations",
        "Undeclared capabilities are not used for prompts.",
    ),
    Requirement(
        "prompts/security/inputs",
        "MUST",
        ALL,
        "server/prompts#security",
        "Arguments cannot inject messages or access data that the prompt does not offer.",
    ),
    Requirement(
        "prompts/security/outputs",
        "MUST",
        ALL,
        "server/prompts#security",
        "The output of a prompt is validated before it is sent.",
    ),
)
