"""A request for a person's approval of a change."""

from typing import Annotated, Literal

from promptkit import Arg, Text, Workflow, prompt, user
from promptkit.fragments import tag

from ._text import require_text
from .code_review import code_review


@prompt(tags=["workflow", "review"], version="1.0")
def request_approval(
    change: Annotated[
        str, Arg("The change and its purpose", examples=["Drop the table of old logins, to free space"])
    ],
    environment: Annotated[
        Literal["development", "staging", "production"],
        Arg("Where the change takes effect"),
    ] = "production",
    diff: Annotated[str | None, Arg("The diff, if code or configuration changes")] = None,
) -> Workflow:
    """Ask for approval of a change: summary, risks, rollback, and an explicit choice."""
    description = tag("change", require_text(change, "change"))
    request = user(Text.from_path("request_approval.md", environment=environment, change=description))
    if not diff:
        return request + "There is no diff. List under Unknown the questions that a diff would answer."
    return (
        request
        + "Do the following review first, without printing it. List the problems it finds under Risks."
        + code_review(diff, language="diff", intent=change)
        + "Now write the request for approval."
    )
