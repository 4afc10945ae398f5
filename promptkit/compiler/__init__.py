"""The compiler: turns authors' functions into a catalog. `compile` is its public entry point."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from promptkit.compiler.compilation import compile

__all__ = ["compile"]


def __getattr__(name: str) -> Any:
    """Import `compile` on first use, because recipes that only import decorators do not need the compiler."""
    if name != "compile":
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    from promptkit.compiler import compilation

    return compilation.compile
