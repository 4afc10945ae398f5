"""What the examples beside this file use: a prompt with a system part, and the form of its answer."""

from dataclasses import dataclass
from typing import Literal

from promptkit import Workflow, prompt, system, user


@dataclass
class Triage:
    """How a ticket is sorted."""

    severity: Literal["low", "high"]
    why: str


@prompt(answer=Triage, tags=["support"])
def triage(ticket: str, product: str = "a shop") -> Workflow:
    """Triage a ticket."""
    return system(f"You sort the tickets of {product}.") + user(f"How severe is this ticket?\n\n{ticket}")
