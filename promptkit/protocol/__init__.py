"""The Model Context Protocol, sans I/O: bytes in, bytes or work out."""
