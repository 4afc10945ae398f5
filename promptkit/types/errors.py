"""Errors of conversion: a value, or parts of one, that do not fit their type."""

from collections.abc import Callable
from typing import Any, Final

#: Stands for a value that is missing.
ABSENT: Final = object()

#: How many faults of one value are reported. A client may send millions.
MAX_FAULTS: Final = 100


class ConversionError(ValueError):
    """
    A value, or a part of one, that does not fit its type.

    Args:
        expected:
            What would fit, in a few words; None if the reader's own words hold.

        got:
            The part that does not fit, or `ABSENT` if it is missing; None for the whole value.

        nearest:
            The value that was probably meant, if one is similar; or a function that finds it, which takes too
            long to be called for each member of a union.

        path:
            The place of the part, as code would write it: ``.points[2].x``.

        reason:
            What is wrong, if there is more to say than what was expected.

        inner:
            The parts that do not fit, if there are several.
    """

    def __init__(  # noqa: PLR0913 (they are independent)
        self,
        expected: str | None = None,
        *,
        got: Any = None,
        nearest: str | Callable[[], str | None] | None = None,
        path: str = "",
        reason: str | None = None,
        inner: "tuple[ConversionError, ...]" = (),
    ) -> None:
        super().__init__()
        self.expected = expected
        self.got = got
        self._nearest = nearest
        self.path = path
        self.reason = reason
        self.inner = inner

    @property
    def nearest(self) -> str | None:
        """The value that was probably meant, if one is similar."""
        return self._nearest() if callable(self._nearest) else self._nearest

    @property
    def parts(self) -> "tuple[ConversionError, ...]":
        """Every part that does not fit."""
        return self.inner or (self,)

    def at(self, path: str) -> "ConversionError":
        """Return the same error for a value at *path* in a larger one."""
        return self.replaced(path=path + self.path)

    def replaced(self, **changes: Any) -> "ConversionError":
        """Return the same error, but for some of its parameters."""
        same = {name: getattr(self, name) for name in ("expected", "got", "path", "reason", "inner")}
        return ConversionError(**{**same, "nearest": self._nearest, **changes})


def error_of_union(errors: list[ConversionError]) -> ConversionError | None:
    """Return the error of the member of a union that was probably meant; None if that cannot be told."""
    # The others do not fit as a whole, and give no reason. Of those that fit in part, the one is meant that
    # fits best; where several fit as well, they have to say the same, as of text that is no JSON.
    meant = [error for error in errors if all(part.path or part.reason for part in error.parts)]
    fewest = min((len(error.parts) for error in meant), default=0)
    best = [error for error in meant if len(error.parts) == fewest]
    said = {tuple((part.expected, part.path, part.reason) for part in error.parts) for error in best}
    return best[0] if len(said) == 1 else None
