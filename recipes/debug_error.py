"""A conversation that narrows down the cause of an error."""

from collections.abc import Iterator
from typing import Annotated, Final

from promptkit import Arg, Image, Workflow, assistant, prompt, user
from promptkit.fragments import dedent, tag, truncate, untrusted

from ._text import require_text

STEPS: Final = dedent("""
    Follow these steps:

    1. State in one sentence what the error means, and quote the frame or message that shows it.
    2. List up to three possible causes, the most likely first, with the evidence for and against
       each. Exclude causes that my attempts have ruled out.
    3. Give me the cheapest check that distinguishes the first two: one command or one edit, and
       what each outcome would mean.
    4. Stop and wait for the result. Propose a fix only after a check has confirmed the cause, and
       include a test that would have caught the error.

    If you first need a version, a configuration or a piece of code, ask only for that.
    """)


@prompt(tags=["debugging"])
def debug_error(
    error: Annotated[
        str,
        Arg("The error message, with the stack trace if there is one", examples=["KeyError: 'user'"]),
    ],
    tried: Annotated[str | None, Arg("What you have tried already, and what happened")] = None,
    screenshot: Annotated[bytes | None, Arg("A picture of the error")] = None,
) -> Iterator[Workflow]:
    """Find the cause of an error, one step at a time."""
    picture = Image(screenshot) if screenshot else None
    yield user(
        f"Help me find the cause of this error.{' A screenshot follows.' if picture else ''}",
        untrusted(truncate(require_text(error, "error"), 20_000, keep="both"), "error"),
        picture,
    )
    yield assistant(
        "I will find the cause before I suggest a fix, and I will not assume anything that I have not seen. "
        "What have you tried so far, and what happened?"
    )
    yield user(tag("tried", tried) or "I have not tried anything yet.", STEPS)
