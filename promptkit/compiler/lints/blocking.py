"""Lints of asynchronous functions: calls that hold up the event loop, on which all of them run."""

import ast
from collections.abc import Mapping
from typing import Final

from promptkit.compiler.lints.scopes import Scope
from promptkit.errors.diagnostics import Report, Rule

__all__ = ["lint_blocking_call"]

#: By module, functions that wait for something else, whatever they are called with.
_WAITING: Final[Mapping[str, tuple[str, ...]]] = {
    "builtins": ("input",),
    "httpx": ("delete", "get", "head", "options", "patch", "post", "put", "request", "stream"),
    "nt": ("system",),
    "posix": ("system",),
    "promptkit.workspace.commands": ("run",),
    "requests.api": ("delete", "get", "head", "options", "patch", "post", "put", "request"),
    "subprocess": ("call", "check_call", "check_output", "getoutput", "getstatusoutput", "run"),
    "time": ("sleep",),
    "urllib.request": ("urlopen", "urlretrieve"),
}

#: What to write in place of some of them.
_INSTEAD: Final = {
    "input": "make it a parameter: no person is at the terminal of a server",
    "run": "await run_async(...) of promptkit.workspace",
    "sleep": "await asyncio.sleep(...)",
}


def lint_blocking_call(node: ast.AST, scope: Scope, report: Report) -> None:
    """Report a call that waits, in an asynchronous function itself: one inside of it may run on a thread."""
    if not isinstance(node, ast.Call) or not isinstance(scope.syntax, ast.AsyncFunctionDef):
        return
    called = scope.value(node.func)
    module, name = getattr(called, "__module__", None), getattr(called, "__name__", None)
    if name in _WAITING.get(str(module), ()):
        shown = ast.unparse(node.func)
        remedy = f"await asyncio.to_thread({shown}, ...), or write def, not async def: it waits on a thread"
        if module != "subprocess":
            remedy = _INSTEAD.get(str(name), remedy)
        fault = f"{shown}(...) holds up the event loop, and with it every other async prompt"
        report.add(Rule.BLOCKING_CALL, fault, remedy, node)
