"""
Other MCP servers, in any language: their prompts, resources and skills as a catalog.

`promptkit.foreign.catalog.open_server` connects to one. Everything that a server sends is untrusted. Tools
are never called.
"""
