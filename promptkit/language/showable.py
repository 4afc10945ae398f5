"""Objects that can show themselves as PNG: PIL images, matplotlib figures, and what notebooks show."""

from typing import Any, Protocol, TypeAlias

__all__ = ["Showable", "png_of"]


class _ShowsPng(Protocol):
    """
    What notebooks ask of an object that shows itself: PIL images have it.
    """

    def _repr_png_(self) -> bytes | None: ...


class _SavesFigure(Protocol):
    """
    What matplotlib and its descendants call a figure.
    """

    def savefig(self, *args: Any, **kwargs: Any) -> Any: ...


#: Anything that can show itself as PNG.
Showable: TypeAlias = _ShowsPng | _SavesFigure


def png_of(value: Any) -> bytes | None:
    """
    Return *value* as PNG if it can show itself so (``_repr_png_``, ``savefig``), else None.

    Notebooks, PIL images and matplotlib figures agree on these two methods.
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
