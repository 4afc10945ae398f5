"""MCP clients: what each can do, its configuration files, skill folders and slash commands."""
