"""What does not fit its type, and where in a value it stands."""

from collections.abc import Callable
from typing import Any, Final

__all__ = ["ABSENT", "MAX_FAULTS", "ConversionError", "ConversionErrors"]

#: Stands for a value that is not there at all.
ABSENT: Final = object()

#: Of how many parts of a value it is told what is wrong with them. A client may send millions.
MAX_FAULTS: Final = 100


class ConversionError(ValueError):
    """
    A value, or a part of one, that is not what its type takes.

    Args:
        expected:
            What would fit, in a few words; None for what the whole type takes.

        got:
            The part at fault, or `ABSENT` if it is missing; None for the whole value.

        nearest:
            The value that was probably meant, if one is similar; or what finds it, which takes
            too long to be done for each member of a union that declines.

        path:
            Where the part stands, as code would have it: ``.points[2].x``.

        reason:
            What is wrong with it in the words of the author's own code, if it said.
    """

    def __init__(
        self,
        expected: str | None = None,
        *,
        got: Any = None,
        nearest: str | Callable[[], str | None] | None = None,
        path: str = "",
        reason: str | None = None,
    ) -> None:
        super().__init__()
        self.expected = expected
        self.got = got
        self.find_nearest = nearest
        self.path = path
        self.reason = reason

    @property
    def nearest(self) -> str | None:
        """
        The value that was probably meant, if one is similar.
        """
        return self.find_nearest() if callable(self.find_nearest) else self.find_nearest

    @property
    def parts(self) -> "tuple[ConversionError, ...]":
        """
        Every part that is at fault.
        """
        return (self,)

    def at(self, path: str) -> "ConversionError":
        """
        Return the same fault, of a value that stands at *path* in a larger one.
        """
        return ConversionError(
            self.expected,
            got=self.got,
            nearest=self.find_nearest,
            path=path + self.path,
            reason=self.reason,
        )


class ConversionErrors(ConversionError):
    """
    Several parts of one value that do not fit.
    """

    def __init__(self, parts: tuple[ConversionError, ...]) -> None:
        super().__init__()
        self._parts = parts

    @property
    def parts(self) -> tuple[ConversionError, ...]:
        """
        Every part that is at fault.
        """
        return self._parts
