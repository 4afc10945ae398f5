"""Pagination of lists."""

from typing import Final

from tests.requirements.requirement import ALL, MODERN, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "pagination/operations",
        "MUST",
        ALL,
        "server/utilities/pagination#operations-supporting-pagination",
        "Prompts, resources and resource templates are listed in pages.",
    ),
    Requirement(
        "pagination/next-cursor",
        "MUST",
        ALL,
        "server/utilities/pagination#response-format",
        "Every page except the last has a cursor for the next page.",
    ),
    Requirement(
        "pagination/continues",
        "SHOULD",
        ALL,
        "schema",
        "A page continues after the page whose cursor is sent.",
    ),
    Requirement(
        "pagination/stable",
        "SHOULD",
        ALL,
        "server/utilities/pagination#implementation-guidelines",
        "A cursor always leads to the same page.",
    ),
    Requirement(
        "pagination/graceful",
        "SHOULD",
        ALL,
        "server/utilities/pagination#implementation-guidelines",
        "An invalid cursor is harmless.",
    ),
    Requirement(
        "pagination/invalid-cursor",
        "SHOULD",
        ALL,
        "server/utilities/pagination#error-handling",
        "An unknown cursor is answered with -32602.",
    ),
    Requirement(
        "pagination/empty-cursor",
        "MUST NOT",
        MODERN,
        "server/utilities/pagination#implementation-guidelines",
        "An empty cursor is not treated as a missing one.",
    ),
)
