"""The Model Context Protocol, without I/O: bytes go in; replies, and requests to handle, come out."""
