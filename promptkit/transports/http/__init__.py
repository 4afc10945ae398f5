"""Streamable HTTP: the ASGI application, and the processes that serve it."""
