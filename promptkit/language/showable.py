"""Objects that can show themselves as PNG, as notebooks do: PIL images and matplotlib figures."""

from typing import Any, Protocol, TypeAlias

__all__ = ["Showable", "png_of"]


class _ShowsPng(Protocol):
    """The method that notebooks call; PIL images have it."""

    def _repr_png_(self) -> bytes | None: ...


class _SavesFigure(Protocol):
    """A figure of matplotlib, or of a library that is built on it."""

    def savefig(self, *args: Any, **kwargs: Any) -> Any: ...


#: Anything that can show itself as PNG.
Showable: TypeAlias = _ShowsPng | _SavesFigure


def png_of(value: Any) -> bytes | None:
    """
    Return *value* as PNG if it has ``_repr_png_`` or ``savefig``, else None.
    """
    if isinstance(value, type):
        return None
    if callable(show := getattr(value, "_repr_png_", None)):
        data = show()
        return data if isinstance(data, bytes) else None
    if callable(savefig := getattr(value, "savefig", None)):
        from io import BytesIO

        buffer = BytesIO()
        savefig(buffer, format="png")
        return buffer.getvalue()
    return None
