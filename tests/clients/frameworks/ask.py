"""
List and get prompts with the client of a framework, in a separate environment.

The arguments are the framework and the server's URL. The result is printed as JSON: the names of all prompts,
the messages of one, and the error for an unknown prompt.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from typing import Any

GOT = ("typed", {"count": "3", "language": "rust", "model": "ferris"})
MISSING = "txet"


async def fastmcp(url: str) -> dict[str, Any]:
    """List and get prompts with FastMCP."""
    from fastmcp import Client

    async with Client(url) as client:
        return {
            "listed": [prompt.name for prompt in await client.list_prompts()],
            "got": [
                {"role": message.role, "text": message.content.text}
                for message in (await client.get_prompt(*GOT)).messages
            ],
            "missing": await failure(client.get_prompt, MISSING),
        }


async def langchain(url: str) -> dict[str, Any]:
    """List and get prompts with LangChain."""
    from langchain_mcp_adapters.client import MultiServerMCPClient
    from langchain_mcp_adapters.prompts import load_mcp_prompt

    client = MultiServerMCPClient({"prompts": {"url": url, "transport": "streamable_http"}})
    async with client.session("prompts") as session:
        names, cursor = [], None
        while True:  # the adapters only get prompts; the session lists them
            page = await session.list_prompts(**({"cursor": cursor} if cursor else {}))
            names += [prompt.name for prompt in page.prompts]
            if not (cursor := page.nextCursor):
                break
        missing = await failure(load_mcp_prompt, session, MISSING)
    name, arguments = GOT
    roles = {"human": "user", "ai": "assistant"}
    messages = await client.get_prompt("prompts", name, arguments=arguments)
    got = [{"role": roles[message.type], "text": message.content} for message in messages]
    return {"listed": names, "got": got, "missing": missing}


async def pydantic_ai(url: str) -> dict[str, Any]:
    """List and get prompts with Pydantic AI."""
    from pydantic_ai.mcp import MCPToolset

    async with MCPToolset(url) as server:
        return {
            "listed": [prompt.name for prompt in await server.list_prompts()],
            "got": [
                {"role": message.role, "text": message.content.content}
                for message in (await server.get_prompt(*GOT)).messages
            ],
            "missing": await failure(server.get_prompt, MISSING),
        }


async def failure(ask: Callable[..., Awaitable[Any]], *arguments: Any) -> str:
    """Return the message of the exception that a call raises, or an empty string if it raises none."""
    try:
        await ask(*arguments)
    except Exception as error:  # noqa: BLE001 (each framework has its own)
        return str(error)
    return ""


FRAMEWORKS = {"fastmcp": fastmcp, "langchain": langchain, "pydantic-ai": pydantic_ai}

if __name__ == "__main__":
    framework, url = sys.argv[1:]
    sys.stdout.write(json.dumps(asyncio.run(FRAMEWORKS[framework](url))))
