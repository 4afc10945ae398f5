"""The requirements of the released protocol revisions for a server over stdio."""

from typing import Final

from tests.requirements import (
    base,
    caching,
    cancellation_progress,
    completion,
    elicitation_mrtr,
    lifecycle,
    metadata,
    pagination,
    prompts,
    resources,
    stdio,
    subscriptions,
    tools,
    versioning,
)
from tests.requirements.requirement import Requirement

__all__ = ["REQUIREMENTS", "Requirement"]

#: All requirements, by group.
REQUIREMENTS: Final[tuple[Requirement, ...]] = (
    *base.REQUIREMENTS,
    *metadata.REQUIREMENTS,
    *lifecycle.REQUIREMENTS,
    *versioning.REQUIREMENTS,
    *stdio.REQUIREMENTS,
    *prompts.REQUIREMENTS,
    *completion.REQUIREMENTS,
    *pagination.REQUIREMENTS,
    *resources.REQUIREMENTS,
    *tools.REQUIREMENTS,
    *subscriptions.REQUIREMENTS,
    *cancellation_progress.REQUIREMENTS,
    *elicitation_mrtr.REQUIREMENTS,
    *caching.REQUIREMENTS,
)
