"""
Read skills with other libraries. This runs in a separate process, because importing these libraries changes
warnings and event loops.

The arguments are ``fastmcp`` and a folder of recipes, or ``validator`` and folders of skills. The result is
printed as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any


async def fastmcp(recipes: str) -> dict[str, Any]:
    """Return the files of each skill that FastMCP's client lists, by URI. The client verifies the files."""
    from fastmcp import Client
    from fastmcp.client.transports import StdioTransport
    from fastmcp.skills.client import SkillsClientExtension

    transport = StdioTransport(sys.executable, ["-m", "promptkit", "serve", recipes])
    async with Client(transport, extensions=[SkillsClientExtension()]) as client:
        listed = await client.list_skills()
        return {str(skill.uri): sorted((await client.read_skill(str(skill.uri))).files) for skill in listed}


def validator(*folders: str) -> list[list[str]]:
    """Return the errors that the format's reference library reports for each skill."""
    from skills_ref.validator import validate

    return [validate(Path(folder)) for folder in folders]


if __name__ == "__main__":
    reader, *arguments = sys.argv[1:]
    result = asyncio.run(fastmcp(*arguments)) if reader == "fastmcp" else validator(*arguments)
    print(json.dumps(result))  # noqa: T201 (it is a script)
