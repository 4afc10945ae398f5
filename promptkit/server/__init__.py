"""The server: answers requests from a catalog, without doing I/O itself."""

from promptkit.server.server import Server

__all__ = ["Server"]
