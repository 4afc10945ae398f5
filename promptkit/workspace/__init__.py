"""
The workspace: the folder in which the user works, and commands that run in this folder.

A server imports this package only if its recipes use it.
"""

from promptkit.workspace.commands import run, run_async
from promptkit.workspace.paths import files, workspace

__all__ = ["files", "run", "run_async", "workspace"]
