"""Packages: recipes as an installable wheel, with a ``server.json`` for the MCP registry."""
