"""Lists in pages."""

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
        "A page says where the next one begins, unless it is the last.",
    ),
    Requirement(
        "pagination/continues",
        "SHOULD",
        ALL,
        "schema",
        "A page begins right after the one whose cursor is sent.",
    ),
    Requirement(
        "pagination/stable",
        "SHOULD",
        ALL,
        "server/utilities/pagination#implementation-guidelines",
        "A cursor means the same whenever it is sent.",
    ),
    Requirement(
        "pagination/graceful",
        "SHOULD",
        ALL,
        "server/utilities/pagination#implementation-guidelines",
        "A cursor that makes no sense does no harm.",
    ),
    Requirement(
        "pagination/invalid-cursor",
        "SHOULD",
        ALL,
        "server/utilities/pagination#error-handling",
        "A cursor that the server did not give is answered with -32602.",
    ),
    Requirement(
        "pagination/empty-cursor",
        "MUST NOT",
        MODERN,
        "server/utilities/pagination#implementation-guidelines",
        "An empty cursor is not taken for none.",
    ),
)
