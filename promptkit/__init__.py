"""Prompts as typed Python functions, compiled and served to every MCP client."""
