"""The benchmark of Streamable HTTP: servers under the load of `wrk <https://github.com/wg/wrk>`_."""
