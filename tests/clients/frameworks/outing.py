"""
Get the prompt `outing` with fast-agent, and answer its forms: `outing.py COMMAND... < ENTERED`.

Print the forms' schemas and the text of the prompt as JSON.
"""

import asyncio
import json
import sys
from pathlib import Path

from fast_agent import FastAgent
from mcp.types import ElicitResult

entered, forms = json.load(sys.stdin), []
program, *arguments = sys.argv[1:]
server = {"command": program, "args": arguments}
settings = Path("fast-agent.yaml")
settings.write_text(json.dumps({"mcp": {"servers": {"team": server}}}))
fast = FastAgent("outing", config_path=str(settings), parse_cli_args=False, quiet=True)


async def answer(_context, params):
    """Record a form, and fill it in."""
    forms.append(params.requested_schema)
    return ElicitResult(action="accept", content=entered)


@fast.agent(servers=["team"], model="passthrough", elicitation_handler=answer)
async def main():
    """Get the prompt without arguments."""
    async with fast.run() as agents:
        result = await agents.default.get_prompt("outing")
    (message,) = result.messages
    sys.stdout.write(json.dumps({"forms": forms, "text": message.content.text}) + "\n")


asyncio.run(main())
