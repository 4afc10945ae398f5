"""
The workspace: the folder that the user works in, and commands that run in this folder.

A server imports this package only if its recipes use it.
"""

from promptkit.workspace.commands import run, run_async
from promptkit.workspace.paths import files, workspace

__all__ = ["files", "run", "run_async", "workspace"]
