"""
Other MCP servers, in any language: their prompts, resources and skills as a catalog.

`promptkit.foreign.catalog.open_server` connects to a server. Everything that a server sends is untrusted. Its
tools are never called.
"""
