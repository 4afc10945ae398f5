"""
fastmcp, imported so that it changes nothing for what this process imports later.

Its dependencies put a finder and a path hook of their own before all others. Incremental reload then imports
everything anew, as it cannot know what they do, and tests of that run in the same process.
"""

import sys

_FINDERS, _HOOKS = list(sys.meta_path), list(sys.path_hooks)

import fastmcp  # noqa: E402 (what is there now has to be kept first)
import fastmcp.client  # noqa: E402
import fastmcp.server  # noqa: E402
from fastmcp.client.transports import StdioTransport  # noqa: E402

from promptkit.exports import fastmcp as for_fastmcp  # noqa: E402

sys.meta_path[:], sys.path_hooks[:] = _FINDERS, _HOOKS
sys.path_importer_cache.clear()

__all__ = ["StdioTransport", "fastmcp", "for_fastmcp"]
