"""
Let an agent of a framework call a prompt as a tool, in a separate environment.

The arguments are the framework and the server's URL. The agent's model is scripted: it calls the tool first
with an invalid argument, then with a valid one, and repeats the results in its answer. The output is JSON:
the tools that the model was given, and its answer.
"""

import asyncio
import json
import sys
from typing import Any

#: The model's calls, in this order.
CALLS = [("typed", {"count": "three"}), ("typed", {"count": 3, "language": "rust", "model": "ferris"})]


async def langchain(url: str) -> dict[str, Any]:
    """Run a LangChain agent."""
    from langchain.agents import create_agent
    from langchain_core.language_models import BaseChatModel
    from langchain_core.messages import AIMessage, ToolMessage
    from langchain_core.outputs import ChatGeneration, ChatResult
    from langchain_mcp_adapters.client import MultiServerMCPClient

    tool_names: list[str] = []

    class Scripted(BaseChatModel):
        """A model that replies according to the script."""

        _llm_type = "scripted"

        def bind_tools(self, tools: Any, **_: Any) -> "Scripted":
            tool_names[:] = [tool.name for tool in tools]
            return self

        def _generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatResult:
            results = [message.text for message in messages if isinstance(message, ToolMessage)]
            if len(results) < len(CALLS):
                name, arguments = CALLS[len(results)]
                call = {"name": name, "args": arguments, "id": str(len(results))}
                answer = AIMessage(content="", tool_calls=[call])
            else:
                answer = AIMessage(content=json.dumps(results))
            return ChatResult(generations=[ChatGeneration(message=answer)])

    client = MultiServerMCPClient({"prompts": {"url": url, "transport": "streamable_http"}})
    agent = create_agent(Scripted(), await client.get_tools())
    result = await agent.ainvoke({"messages": [("user", "Write functions.")]})
    return {"tools": tool_names, "results": json.loads(result["messages"][-1].text)}


async def pydantic_ai(url: str) -> dict[str, Any]:
    """Run a Pydantic AI agent."""
    from pydantic_ai import Agent
    from pydantic_ai.mcp import MCPToolset
    from pydantic_ai.messages import ModelResponse, RetryPromptPart, TextPart, ToolCallPart, ToolReturnPart
    from pydantic_ai.models.function import FunctionModel

    tool_names: list[str] = []

    def scripted(messages: list[Any], info: Any) -> ModelResponse:
        tool_names[:] = [tool.name for tool in info.function_tools]
        parts = [part for message in messages for part in message.parts]
        results = [part.content for part in parts if isinstance(part, RetryPromptPart | ToolReturnPart)]
        if len(results) < len(CALLS):
            return ModelResponse(parts=[ToolCallPart(*CALLS[len(results)])])
        return ModelResponse(parts=[TextPart(json.dumps(results))])

    agent = Agent(FunctionModel(scripted), toolsets=[MCPToolset(url)])
    result = await agent.run("Write functions.")
    return {"tools": tool_names, "results": json.loads(result.output)}


FRAMEWORKS = {"langchain": langchain, "pydantic-ai": pydantic_ai}

if __name__ == "__main__":
    framework, url = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(FRAMEWORKS[framework](url))))
