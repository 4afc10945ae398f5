"""Streamable HTTP, sans I/O: heads and bodies of requests in, statuses, headers and bodies out."""
