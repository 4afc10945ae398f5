"""Completion of arguments."""

from typing import Final

from tests.requirements.requirement import ALL, SINCE_2025_03, SINCE_2025_06, Requirement

__all__ = ["REQUIREMENTS"]

REQUIREMENTS: Final = (
    Requirement(
        "completion/capability",
        "MUST",
        SINCE_2025_03,
        "server/utilities/completion#capabilities",
        "The server declares completion.",
    ),
    Requirement(
        "completion/prompts",
        "MUST",
        ALL,
        "server/utilities/completion#reference-types",
        "Arguments of a prompt are completed by its name.",
    ),
    Requirement(
        "completion/resources",
        "MUST",
        ALL,
        "server/utilities/completion#reference-types",
        "Variables of a resource template are completed by its URI.",
    ),
    Requirement(
        "completion/at-most-100",
        "MUST NOT",
        ALL,
        "server/utilities/completion#completion-results",
        "No reply has more than 100 values.",
    ),
    Requirement(
        "completion/rest",
        "MAY",
        ALL,
        "server/utilities/completion#completion-results",
        "The reply contains the number of values, and whether more are available.",
    ),
    Requirement(
        "completion/context",
        "MAY",
        SINCE_2025_06,
        "server/utilities/completion#requesting-completions",
        "Completion can use the arguments that have already been chosen.",
    ),
    Requirement(
        "completion/unsupported",
        "SHOULD",
        SINCE_2025_03,
        "server/utilities/completion#error-handling",
        "Completion that is not supported is answered with -32601.",
        exemption="completion is always supported",
    ),
    Requirement(
        "completion/unknown-prompt",
        "SHOULD",
        SINCE_2025_03,
        "server/utilities/completion#error-handling",
        "Completion for an unknown prompt is answered with -32602.",
    ),
    Requirement(
        "completion/missing-arguments",
        "SHOULD",
        SINCE_2025_03,
        "server/utilities/completion#error-handling",
        "A request that does not name an argument is answered with -32602.",
    ),
    Requirement(
        "completion/internal-error",
        "SHOULD",
        SINCE_2025_03,
        "server/utilities/completion#error-handling",
        "A completion function that fails is answered with -32603.",
    ),
    Requirement(
        "completion/ranked",
        "SHOULD",
        ALL,
        "server/utilities/completion#implementation-considerations",
        "Suggestions are ranked by relevance.",
    ),
    Requirement(
        "completion/fuzzy",
        "SHOULD",
        ALL,
        "server/utilities/completion#implementation-considerations",
        "Suggestions match even if letters are missing.",
    ),
    Requirement(
        "completion/validated",
        "MUST",
        ALL,
        "server/utilities/completion#security",
        "All members of a completion request are validated.",
    ),
    Requirement(
        "completion/rate-limited",
        "MUST",
        ALL,
        "server/utilities/completion#security",
        "Completion requests are rate-limited.",
    ),
    Requirement(
        "completion/sensitive",
        "MUST",
        ALL,
        "server/utilities/completion#security",
        "No values are suggested for secret arguments.",
    ),
    Requirement(
        "completion/disclosure",
        "MUST",
        ALL,
        "server/utilities/completion#security",
        "Completion reveals only the suggestions of authors.",
    ),
)
