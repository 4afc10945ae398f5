"""A change, put before the person who has to approve it."""

from typing import Annotated, Final, Literal

from promptkit import Arg, Workflow, prompt, user
from promptkit.fragments import dedent, section, tag

from ._text import given
from .code_review import code_review

FORM: Final = dedent("""
    1. **Summary**: what changes, for whom and why, in at most three sentences.
    2. **Risks**: each with its likelihood, its damage, who is affected, and how one would notice.
       Include what happens if the change stops half-way.
    3. **Rollback**: the exact steps back, how long they take, and the point after which there is no
       way back. If there is none at all, write `IRREVERSIBLE` above the summary.
    4. **Checks**: what has been tested, and what will show within an hour that it worked.
    5. **Unknown**: what you were not told, and I should know before I decide.
    """)

CHOICE: Final = dedent("""
    End with exactly these three lines, their brackets filled in, and wait for my reply:

    - `approve`: go ahead with [the first step]
    - `reject`: change nothing, because of [the risk that weighs most]
    - `ask`: answer first [the question that would most change the decision]

    Take nothing else for consent. To any other reply, repeat the three lines.
    """)


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
    request = user(
        f"Write a request for my approval of a change to {environment}. Until I have answered `approve`, "
        "do nothing that alters anything.",
        tag("change", given(change, "change")),
        section("Form of the request", FORM),
        section("My choice", CHOICE),
    )
    if not diff:
        return request + "There is no diff. List under Unknown what it would have to show."
    return (
        request
        + "First do the following review, without printing it. Its problems belong under Risks."
        + code_review(diff, language="diff", intent=change)
        + "Now write the request for approval."
    )
