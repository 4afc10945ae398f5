"""Streamable HTTP, sans I/O: heads and bodies in, responses or requests for the server out."""
