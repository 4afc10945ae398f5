"""Send prompts to the test models of LangChain, Pydantic AI and LiteLLM."""

import json

from langchain_core.language_models import FakeListChatModel
from langchain_messages import ask as ask_langchain
from litellm_completion import ask as ask_litellm
from pydantic_ai.messages import ModelMessage, ModelResponse, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai_agent import ask as ask_pydantic
from sample_workflow import WORKFLOW

from promptkit import Audio, Image, Text, Workflow
from promptkit.bridges.langchain import messages

TICKET = "Nobody can pay."


def answer(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answer as a Pydantic AI model, with the received messages as the reason."""
    (request,) = messages
    why = [info.instructions, *(part.content for part in request.parts)]
    (tool,) = info.output_tools
    return ModelResponse([ToolCallPart(tool.name, {"severity": "high", "why": json.dumps(why)})])


def main() -> None:
    """Print the models' replies, and LangChain's classes and content blocks, as JSON."""
    triaged = ask_pydantic(FunctionModel(answer), TICKET)
    kinds = [
        [type(message).__name__, message.content, message.content_blocks] for message in messages(WORKFLOW)
    ]
    kept = [message for message in WORKFLOW if isinstance(message.content, Text | Image | Audio)]
    held = Workflow(kept, WORKFLOW.system)
    replies = {
        "langchain": ask_langchain(FakeListChatModel(responses=["high"]), TICKET).content,
        "litellm": ask_litellm("gpt-5", TICKET, mock_response="high"),
        "pydantic_ai": [triaged.severity, json.loads(triaged.why)],
        "kinds": kinds,
        "is_restored": Workflow.from_messages(messages(held)) == held,
    }
    print(json.dumps(replies))  # noqa: T201 (the test reads it)


if __name__ == "__main__":
    main()
