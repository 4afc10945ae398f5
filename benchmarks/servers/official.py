"""The same prompt, served by the official Python SDK."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("benchmark")


@server.prompt()
def review(code: str, language: str = "python", depth: str = "1") -> str:
    """Review a piece of code."""
    return f"Review this {language} code, {int(depth)} deep.\n\n{code}"


server.run("stdio")
