"""Streamable HTTP: the ASGI application, and the sockets and processes that serve it."""
