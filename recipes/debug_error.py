"""An error, hunted down in conversation."""

from collections.abc import Iterator
from typing import Annotated, Final

from promptkit import Arg, Image, Workflow, assistant, prompt, user
from promptkit.fragments import dedent, tag, truncate, untrusted

from ._text import given

STEPS: Final = dedent("""
    Go on like this:

    1. Say in one sentence what the error means, and which frame or message tells you so.
    2. List up to three causes, the most likely first, with what speaks for and against each.
       Leave out those that my attempts rule out.
    3. Give me the cheapest check that tells the first two apart: one command or one edit, and
       what each outcome would mean.
    4. Stop and wait for the result. Propose a fix only once a check has confirmed the cause,
       with a test that would have caught it.

    If you need a version, a configuration or a piece of code first, ask for that one thing instead.
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
        untrusted(truncate(given(error, "error"), 20_000, keep="both"), "error"),
        picture,
    )
    yield assistant(
        "I will look for the cause before I suggest a fix, and not assume what I have not seen. "
        "What have you tried so far, and what happened?"
    )
    yield user(tag("tried", tried) if tried else "I have tried nothing yet.", STEPS)
