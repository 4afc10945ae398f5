"""
Testing prompts: a client in the same process, and arguments made from types.

Each public name is imported when it is first used, and needs no more than it uses.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promptkit.testing.client import Client
    from promptkit.testing.received import ProtocolError
    from promptkit.testing.skills import SkillMismatchError
    from promptkit.testing.strategies import call_arguments, wire_arguments

__all__ = ["Client", "ProtocolError", "SkillMismatchError", "call_arguments", "wire_arguments"]


def __getattr__(name: str) -> Any:
    """
    Return a public name that is used for the first time. Raises AttributeError if there is none.
    """
    if name not in __all__:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    homes = {"Client": "client", "ProtocolError": "received", "SkillMismatchError": "skills"}
    home = homes.get(name, "strategies")
    found = getattr(import_module(f"promptkit.testing.{home}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
