"""Streamable HTTP, without I/O: heads and bodies go in; responses, and requests to handle, come out."""
