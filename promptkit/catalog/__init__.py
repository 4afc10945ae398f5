"""Compiled prompts, resources and skills: immutable, ready to render, and independent of MCP."""
