"""Authors' functions become a catalog: `compile` is what programs and tests call."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promptkit.compiler.compilation import compile

__all__ = ["compile"]


def __getattr__(name: str) -> Any:
    """Import `compile` when it is first used: a recipe that imports a decorator needs no compiler."""
    if name != "compile":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from promptkit.compiler import compilation

    return compilation.compile
