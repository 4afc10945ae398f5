"""A prompt in Langfuse's store."""

from langfuse import Langfuse
from langfuse.model import ChatPromptClient
from tickets import triage

from promptkit.bridges.langfuse import template


def store(client: Langfuse) -> ChatPromptClient:
    """Store the prompt as a new version, and return what Langfuse has of it."""
    return client.create_prompt(**template(triage), labels=["production"])
