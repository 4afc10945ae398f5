"""
What goes over the wire, as structs: one for each object of the published schemas.

A member that a revision lacks, or that nobody set, is `UNSET` and is not sent. The structs of content, and of
other results, are made when the first of them is used: a list that was made before needs none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from promptkit.protocol.wire.params import *  # noqa: F403 (its `__all__` says which)

if TYPE_CHECKING:
    from promptkit.protocol.wire.content import *  # noqa: F403
    from promptkit.protocol.wire.results import *  # noqa: F403


def __getattr__(name: str) -> Any:
    """Return a struct that is used for the first time."""
    homes = ("content", "results") if name[0].isupper() else ()
    for home in homes:
        if (struct := getattr(import_module(f"{__name__}.{home}"), name, None)) is not None:
            globals()[name] = struct
            return struct
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
