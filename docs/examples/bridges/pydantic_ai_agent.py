"""A prompt for an agent of Pydantic AI."""

from pydantic_ai import Agent
from pydantic_ai.models import Model
from tickets import Triage, triage


def ask(model: Model | str, ticket: str) -> Triage:
    """Have a model triage a ticket."""
    asked = triage.render(ticket)
    agent = Agent(model, instructions=str(asked.system), output_type=Triage)
    return agent.run_sync(asked[0].text).output
