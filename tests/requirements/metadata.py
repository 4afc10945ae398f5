"""Metadata: ``_meta``, icons, annotations and JSON Schemas."""

from typing import Final

from tests.requirements.requirement import MODERN, SINCE_2025_06, SINCE_2025_11, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "base/meta/reserved-values",
        "MUST NOT",
        SINCE_2025_06,
        "basic#meta",
        "Reserved keys of _meta without a meaning for servers are ignored, whatever their value.",
    ),
    Requirement(
        "base/meta/key-prefix",
        "MUST",
        SINCE_2025_06,
        "basic#meta",
        "The prefix of each _meta key that the server writes consists of well-formed labels.",
    ),
    Requirement(
        "base/meta/key-name",
        "MUST",
        SINCE_2025_06,
        "basic#meta",
        "The name of each _meta key that the server writes begins and ends with a letter or a digit.",
    ),
    Requirement(
        "base/meta/reserved-prefix",
        "MUST",
        SINCE_2025_06,
        "basic#meta",
        "The _meta keys of the server and of authors do not use prefixes that MCP reserves.",
    ),
    Requirement(
        "base/meta/reverse-dns",
        "SHOULD",
        SINCE_2025_11,
        "basic#meta",
        "The prefix of the server's own _meta keys is a reversed domain name.",
        exemption="the project has no domain, and another domain would be misleading",
    ),
    Requirement(
        "base/meta/trace-context",
        "MUST",
        MODERN,
        "basic#meta",
        "The server writes no trace context, and therefore no malformed one.",
    ),
    Requirement(
        "base/meta/required",
        "MUST",
        MODERN,
        "basic#meta",
        "A request without a required field of _meta is answered with -32602.",
    ),
    Requirement(
        "base/meta/client-info",
        "SHOULD NOT",
        MODERN,
        "basic#meta",
        "Replies do not depend on the name of the client.",
    ),
    Requirement(
        "base/meta/undeclared-capability",
        "MUST NOT",
        MODERN,
        "basic#meta",
        "A capability that a request does not declare is not used for it.",
    ),
    Requirement(
        "base/meta/missing-capability",
        "MUST",
        MODERN,
        "basic#meta",
        "A request that needs an undeclared capability is answered with -32021, which names it.",
    ),
    Requirement(
        "base/meta/server-info",
        "SHOULD",
        MODERN,
        "basic#meta",
        "Every result contains the name and version of the server.",
    ),
    Requirement(
        "base/schema/valid",
        "MUST",
        SINCE_2025_11,
        "basic#schema-validation",
        "A JSON Schema that the server sends is valid in the 2020-12 dialect.",
    ),
    Requirement(
        "base/schema/remote-refs",
        "MUST NOT",
        MODERN,
        "basic#json-schema-usage",
        "No $ref is resolved over the network, and schemas of the server contain no remote $ref.",
    ),
    Requirement(
        "base/schema/received",
        "MUST",
        SINCE_2025_11,
        "basic#implementation-requirements",
        "Schemas that a client sends are validated in their dialect.",
        exemption="clients send no schemas to a server of prompts and resources",
    ),
    Requirement(
        "base/schema/bounds",
        "SHOULD",
        MODERN,
        "basic#composition-keyword-resource-use",
        "Schema validation is limited in depth and time.",
        exemption="clients send no schemas to a server of prompts and resources",
    ),
    Requirement(
        "base/icons/sizes",
        "SHOULD",
        SINCE_2025_11,
        "schema#icon",
        'An icon\'s sizes are written like 48x48, or "any".',
    ),
    Requirement(
        "base/annotations/last-modified",
        "SHOULD",
        SINCE_2025_06,
        "schema#annotations",
        "A last-modified date is written as ISO 8601 with its offset.",
    ),
)
