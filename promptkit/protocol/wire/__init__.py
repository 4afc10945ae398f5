"""
What goes over the wire, as structs: one for each object of the published schemas.

A member that a revision lacks, or that nobody set, is `UNSET` and is not sent. The structs of content and of
lists are made when the first of them is used: a list that was made before needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from promptkit.protocol.wire.params import *  # noqa: F403 (its `__all__` says which)
from promptkit.protocol.wire.results import *  # noqa: F403

if TYPE_CHECKING:
    from promptkit.protocol.wire.content import *  # noqa: F403
    from promptkit.protocol.wire.lists import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a struct of content or of lists that is used for the first time."""
    for module in ("content", "lists") if name[0].isupper() else ():
        if (struct := vars(import_module(f"{__name__}.{module}")).get(name)) is not None:
            globals()[name] = struct
            return struct
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
