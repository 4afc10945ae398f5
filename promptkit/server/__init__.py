"""The server: requests of one client meet a catalog, and replies leave. It does no I/O."""

from promptkit.server.server import Server

__all__ = ["Server"]
