"""A prompt for LiteLLM, which takes the requests of OpenAI's SDK, whatever model it is."""

from typing import Any

import litellm
from tickets import triage

from promptkit.exports import openai_chat_request


def ask(model: str, ticket: str, **options: Any) -> str:
    """Have a model triage a ticket."""
    request = openai_chat_request(triage.render(ticket), system_role="system", model=model)
    return litellm.completion(**request, **options).choices[0].message.content
