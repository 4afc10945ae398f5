"""Versions in requests, both eras in one process, and discovery."""

from typing import Final

from tests.requirements.requirement import MODERN, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "versioning/unsupported",
        "MUST",
        MODERN,
        "basic/versioning#protocol-version-negotiation",
        "A request with an unsupported version is answered with -32022 and the supported versions.",
    ),
    Requirement(
        "versioning/extension-ids",
        "MUST",
        MODERN,
        "basic/versioning#extension-negotiation",
        "Every extension that the server advertises has an id with a prefix.",
    ),
    Requirement(
        "versioning/dual-era",
        "MAY",
        MODERN,
        "basic/versioning#backward-compatibility-with-initialization-based-versions",
        "Clients with and without a handshake are served.",
    ),
    Requirement(
        "versioning/one-process",
        "MAY",
        MODERN,
        "basic/versioning#compatibility-matrix",
        "One process serves both eras at the same time.",
    ),
    Requirement(
        "versioning/modern-requests",
        "MUST",
        MODERN,
        "basic/versioning#compatibility-matrix",
        "A request with a version in its metadata is independent of earlier requests.",
    ),
    Requirement(
        "versioning/handshake-scope",
        "MUST",
        MODERN,
        "basic/versioning#compatibility-matrix",
        "A handshake applies to the requests without a version, until the process ends.",
    ),
    Requirement(
        "versioning/only-modern",
        "SHOULD",
        MODERN,
        "basic/versioning#backward-compatibility-with-initialization-based-versions",
        "The error for a handshake lists the supported versions.",
        exemption="handshakes are supported, so none is rejected for its era",
    ),
    Requirement(
        "discover/implemented",
        "MUST",
        MODERN,
        "server/discover",
        "Discovery is answered, as the first request or at any time.",
    ),
    Requirement(
        "discover/result",
        "MUST",
        MODERN,
        "server/discover#discoverresult",
        "Discovery returns the versions and the capabilities.",
    ),
    Requirement(
        "discover/versions-served",
        "MUST",
        MODERN,
        "server/discover#discoverresult",
        "Every version that discovery lists is served.",
    ),
    Requirement(
        "discover/server-info",
        "SHOULD",
        MODERN,
        "server/discover#discoverresult",
        "Discovery returns the name and the version of the server.",
    ),
)
