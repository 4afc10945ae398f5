"""Benchmarks of servers over Streamable HTTP, with load from `wrk <https://github.com/wg/wrk>`_."""
