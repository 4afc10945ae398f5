"""Cache hints: `ttlMs` and `cacheScope`."""

from typing import Final

from tests.requirements.requirement import MODERN, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "caching/hints",
        "MUST",
        MODERN,
        "server/utilities/caching#cacheable-results",
        "Discovery, lists and resource contents have a lifetime and a cache scope.",
    ),
    Requirement(
        "caching/not-when-asking",
        "MUST NOT",
        MODERN,
        "server/utilities/caching#cacheable-results",
        "A result that asks for input has no cache hints.",
    ),
    Requirement(
        "caching/retries",
        "MUST NOT",
        MODERN,
        "server/utilities/caching#cache-key",
        "The result of a retry is not cached.",
    ),
    Requirement(
        "caching/lifetime",
        "MUST",
        MODERN,
        "server/utilities/caching#time-to-live-ttl-field",
        "A lifetime is a non-negative integer in milliseconds.",
    ),
    Requirement(
        "caching/with-notifications",
        "MAY",
        MODERN,
        "server/utilities/caching#interaction-with-notifications",
        "Lists have a lifetime even if clients are notified of changes.",
    ),
    Requirement(
        "caching/same-scope",
        "MUST",
        MODERN,
        "server/utilities/caching#interaction-with-pagination",
        "All pages of a list have the same scope.",
    ),
    Requirement(
        "caching/shared",
        "MUST",
        MODERN,
        "server/utilities/caching#security-considerations",
        "User-specific results are not declared public.",
    ),
    Requirement(
        "caching/access",
        "MUST",
        MODERN,
        "server/utilities/caching#security-considerations",
        "Access to every served item is controlled.",
        exemption="over stdio the client belongs to the user, and all items are served to it",
    ),
    Requirement(
        "caching/scope-is-no-guard",
        "MUST NOT",
        MODERN,
        "server/utilities/caching#security-considerations",
        "No item is protected by its cache scope alone.",
        exemption="over stdio the client belongs to the user, and all items are served to it",
    ),
)
