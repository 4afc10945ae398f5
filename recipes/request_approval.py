"""A change, put before the person who has to approve it."""

from typing import Annotated, Literal

from promptkit import Arg, Text, Workflow, prompt, user
from promptkit.fragments import tag

from ._text import given
from .code_review import code_review


@prompt(tags=["workflow", "review"], version="1.0")
def request_approval(
    change: Annotated[
        str, Arg("What is to be done, and what for", examples=["Drop the table of old logins, to free space"])
    ],
    environment: Annotated[
        Literal["development", "staging", "production"],
        Arg("Where the change takes effect"),
    ] = "production",
    diff: Annotated[str | None, Arg("The diff, if code or configuration changes")] = None,
) -> Workflow:
    """Ask for approval of a change: summary, risks, rollback, and an explicit choice."""
    what = tag("change", given(change, "change"))
    request = user(Text.from_path("request_approval.md", environment=environment, change=what))
    if not diff:
        return request + "There is no diff. List under Unknown what it would have to show."
    return (
        request
        + "First do the following review, without printing it. Its problems belong under Risks."
        + code_review(diff, language="diff", intent=change)
        + "Now write the request for approval."
    )
