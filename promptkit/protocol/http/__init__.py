"""Streamable HTTP, sans I/O: heads and bodies of requests in; responses, or requests for the server, out."""
