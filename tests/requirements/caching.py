"""What clients may keep: `ttlMs` and `cacheScope`."""

from typing import Final

from tests.requirements.requirement import MODERN, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "caching/hints",
        "MUST",
        MODERN,
        "server/utilities/caching#cacheable-results",
        "Discovery, lists and contents of resources say how long they may be kept, and by whom.",
    ),
    Requirement(
        "caching/not-when-asking",
        "MUST NOT",
        MODERN,
        "server/utilities/caching#cacheable-results",
        "A result that asks says nothing of being kept.",
    ),
    Requirement(
        "caching/retries",
        "MUST NOT",
        MODERN,
        "server/utilities/caching#cache-key",
        "A result that a retry brought about is kept nowhere.",
    ),
    Requirement(
        "caching/lifetime",
        "MUST",
        MODERN,
        "server/utilities/caching#time-to-live-ttl-field",
        "A lifetime is a whole number of milliseconds, zero or more.",
    ),
    Requirement(
        "caching/with-notifications",
        "MAY",
        MODERN,
        "server/utilities/caching#interaction-with-notifications",
        "Lists have a lifetime though their changes are told.",
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
        "Nothing that is one person's own is declared public.",
    ),
    Requirement(
        "caching/access",
        "MUST",
        MODERN,
        "server/utilities/caching#security-considerations",
        "Access to each thing that is served is controlled.",
        left_out="over stdio the client is the user's own, and everything that is served is for it",
    ),
    Requirement(
        "caching/scope-is-no-guard",
        "MUST NOT",
        MODERN,
        "server/utilities/caching#security-considerations",
        "Nothing is protected by its scope alone.",
        left_out="over stdio the client is the user's own, and everything that is served is for it",
    ),
)
