"""
The workspace: the folder that the person at the client works in, and what commands say of it.

A server whose recipes do not use it imports nothing of it.
"""

from promptkit.workspace.commands import run, run_async
from promptkit.workspace.paths import files, workspace

__all__ = ["files", "run", "run_async", "workspace"]
