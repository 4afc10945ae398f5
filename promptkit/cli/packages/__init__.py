"""Packages: recipes as a wheel that others install, and what the registry of MCP is told of it."""
