"""Benchmarks of servers over Streamable HTTP, with load that `wrk <https://github.com/wg/wrk>`_ generates."""
