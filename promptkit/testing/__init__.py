"""
Tools for testing prompts: an in-process client, and Hypothesis strategies for arguments.

Public names are imported on first use, so that each name requires only its own dependencies.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promptkit.testing.client import Client, ProtocolError, SkillMismatchError
    from promptkit.testing.strategies import call_arguments, wire_arguments

__all__ = ["Client", "ProtocolError", "SkillMismatchError", "call_arguments", "wire_arguments"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use."""
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    module = "strategies" if name.endswith("_arguments") else "client"
    value = getattr(import_module(f"promptkit.testing.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
