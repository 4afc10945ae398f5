"""MCP clients: their limitations, configuration files, skill folders and slash commands."""
