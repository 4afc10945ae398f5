"""Streamable HTTP, sans I/O: heads and bodies in; statuses, headers and bodies, or requests, out."""
