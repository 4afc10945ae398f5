"""Streamable HTTP: sockets, connections and processes around an ASGI application."""
