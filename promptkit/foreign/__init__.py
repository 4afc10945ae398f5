"""
Other MCP servers, in any language: their prompts, resources and skills as a catalog.

`promptkit.foreign.catalog.open_server` connects to a server. All data from a server is untrusted, and its
tools are never called.
"""
