"""What the examples beside this file render: a prompt for one row of a table of tickets."""

from typing import Literal

from promptkit import prompt


@prompt
def triage(ticket: str, severity: Literal["low", "high"] = "low", votes: int = 0) -> str:
    """Triage a ticket."""
    return f"Triage this ticket. Its severity is {severity}, and {votes} people voted for it.\n\n{ticket}"
