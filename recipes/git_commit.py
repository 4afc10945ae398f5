"""A commit message for the staged change."""

from typing import Annotated, Final, Literal

from promptkit import Arg, Workflow, prompt, user
from promptkit.fragments import bullets, section, tag, truncate, untrusted
from promptkit.workspace import run

from ._text import require_text

SUBJECTS: Final = {
    "conventional": "`type(scope): summary`, where type is feat, fix, perf, refactor, docs, test or chore",
    "plain": "a capitalized sentence in the imperative (`Fix`, not `Fixed`), without a final period",
}

#: An example of a diff, which changes one line.
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
        Arg("The output of `git diff --staged`; read from the workspace if omitted", examples=[DIFF]),
    ] = None,
    style: Annotated[Literal["conventional", "plain"], Arg("How to write the subject")] = "conventional",
    issue: Annotated[str | None, Arg("The issue that the change belongs to", examples=["#42"])] = None,
    *,
    body: Annotated[bool, Arg("Whether to add a body that explains why the change was made")] = True,
) -> Workflow:
    """Write the commit message for a staged change."""
    staged = run("git", "diff", "--staged", limit=60_000) if diff is None else diff
    rules = bullets(
        [
            f"Subject: {SUBJECTS[style]}; at most 72 characters.",
            "Body: why the change was made, and how it affects others." if body else "No body.",
            "Footer: `Refs:` and the issue below." if issue else None,
            "Footer, only if callers or stored data break: `BREAKING CHANGE:` and how to adapt to it.",
            "Give only reasons that the diff shows. If it shows none, describe the change without a reason.",
        ]
    )
    return user(
        "Write the commit message for the staged change below.",
        section("Rules", rules),
        section(
            "Change",
            tag("issue", issue),
            untrusted(truncate(require_text(staged, "diff"), 60_000), "diff"),
        ),
        "Answer with the message alone, in one code block. If the change does several unrelated things, "
        "suggest below the block how to split it into several commits.",
    )
