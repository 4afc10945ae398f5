"""A prompt that elicits missing and invalid arguments."""

from typing import Annotated

from promptkit import Arg, prompt


@prompt(elicit=True)
def elicited(
    town: Annotated[str, Arg("Where to go")],
    days: Annotated[int, Arg("For how long")] = 2,
):
    """Plan a journey."""
    return f"Plan {days} days in {town}."
