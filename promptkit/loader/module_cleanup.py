"""
Old versions of recipes: how their memory is freed after a reload.

Their modules and functions hold each other, so only the garbage collector frees them. It looks at all objects
there are while nothing else runs: a few milliseconds for 20 files, and a third of a second for 2,000.
"""

import gc
import linecache
import sys
import typing
from collections.abc import Collection
from typing import Any, Final

from promptkit.memory import return_free_memory

__all__ = ["collect", "forget_modules", "forget_parts", "freeze"]

#: The caches of parts of recipes, if they are imported: the module, and its function that clears them.
_CACHES: Final = {
    "promptkit.types.pydantic": "forget_types",
    "promptkit.types.structuring": "forget_types",
    "promptkit.errors.sources": "forget_sources",
    "promptkit.fragments.filling": "forget_texts",
}

#: The same for registered types, which older versions may need.
_TYPES: Final = {"promptkit.types.scalars": "forget_replaced"}

#: The files, as `linecache` has them, of functions that libraries have generated for a class.
_GENERATED: Final = ("<attrs generated ", "<cattrs generated ")


def freeze() -> None:
    """Keep the collector from looking at anything that there is now, until the next `collect`."""
    gc.freeze()


def collect() -> None:
    """Free the versions that nothing needs any more. No other thread runs meanwhile."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
    return_free_memory()


def forget_parts(*, all_are_new: bool) -> None:
    """
    Clear the caches that hold parts of replaced recipes, after a reload.

    Args:
        all_are_new:
            Whether nothing is served of an older version of a file.
    """
    for module, function in (_CACHES | _TYPES if all_are_new else _CACHES).items():
        if (forget := getattr(sys.modules.get(module), function, None)) is not None:
            forget()
    # `Annotated[...]` and `Optional[...]` are kept by their arguments, with classes and functions of recipes.
    for clear in getattr(typing, "_cleanups", ()):
        clear()


def forget_modules(names: Collection[str]) -> None:
    """Drop what is kept of modules by their names, now that they are no longer imported."""
    for file in [file for file in list(linecache.cache) if file.startswith(_GENERATED)]:
        parts = file.rpartition(" ")[2].split(".")  # the module, and the class in it
        if any(".".join(parts[:end]) in names for end in range(1, len(parts))):
            linecache.cache.pop(file, None)
    overloads: dict[str, Any] = getattr(typing, "_overload_registry", {})
    for name in names:
        overloads.pop(name, None)
