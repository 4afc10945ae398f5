"""
fastmcp, imported without side effects on later imports in this process.

The dependencies of fastmcp install a finder and a path hook before all others. Incremental reload, whose
tests run in the same process, cannot know what these do, so it would import everything again.
"""

import sys

_FINDERS, _HOOKS = list(sys.meta_path), list(sys.path_hooks)

import fastmcp  # noqa: E402 (the current finders must be saved first)
import fastmcp.client  # noqa: E402
import fastmcp.server  # noqa: E402
from fastmcp.client.transports import StdioTransport  # noqa: E402

from promptkit.exports import fastmcp as for_fastmcp  # noqa: E402

sys.meta_path[:], sys.path_hooks[:] = _FINDERS, _HOOKS
sys.path_importer_cache.clear()

__all__ = ["StdioTransport", "fastmcp", "for_fastmcp"]
