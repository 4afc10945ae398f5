"""From a staged change to its commit message."""

from typing import Annotated, Final, Literal

from promptkit import Arg, Workflow, prompt, user
from promptkit.fragments import bullets, section, tag, truncate, untrusted
from promptkit.workspace import run

from ._text import given

SUBJECTS: Final = {
    "conventional": "`type(scope): summary`, where type is feat, fix, perf, refactor, docs, test or chore",
    "plain": "a capitalised sentence in the imperative (`Fix`, not `Fixed`), without a full stop",
}

#: What an example shows: one line, changed.
DIFF: Final = """\
--- a/app.py
+++ b/app.py
@@ -1 +1 @@
-retries = 3
+retries = 5
"""


@prompt(tags=["git", "writing"], version="1.0")
def git_commit(
    diff: Annotated[
        str | None,
        Arg("What `git diff --staged` prints; read from the workspace if left out", examples=[DIFF]),
    ] = None,
    style: Annotated[Literal["conventional", "plain"], Arg("How to write the subject")] = "conventional",
    issue: Annotated[str | None, Arg("The issue that the change belongs to", examples=["#42"])] = None,
    *,
    body: Annotated[bool, Arg("Whether to say below the subject why the change was made")] = True,
) -> Workflow:
    """Write the commit message for a staged change."""
    staged = run("git", "diff", "--staged", limit=60_000) if diff is None else diff
    rules = bullets(
        [
            f"Subject: {SUBJECTS[style]}; at most 72 characters.",
            "Body: why the change was made and what it alters for others." if body else "No body.",
            "Footer: `Refs:` and the issue that is named below." if issue else None,
            "Footer: `BREAKING CHANGE:` and what to do about it, if callers or stored data break.",
            "Give no reason that the diff does not show. If it shows none, say what changed and not why.",
        ]
    )
    return user(
        "Write the commit message for the staged change below.",
        section("Rules", rules),
        section(
            "Change",
            tag("issue", issue) if issue else None,
            untrusted(truncate(given(staged, "diff"), 60_000), "diff"),
        ),
        "Answer with the message alone, in one code block. Only if the change does several unrelated things, "
        "add below the block which commits you would split it into.",
    )
