"""A prompt for a chat model of LangChain."""

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from tickets import triage

from promptkit.bridges.langchain import messages


def ask(model: BaseChatModel, ticket: str) -> BaseMessage:
    """Have a model triage a ticket."""
    return model.invoke(messages(triage.render(ticket)))
