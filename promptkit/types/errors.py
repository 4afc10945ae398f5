"""Errors of conversion: invalid values and invalid parts of values."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

Part = TypeVar("Part")
Value = TypeVar("Value")

#: A marker for a missing value.
ABSENT: Final = object()

#: The maximum number of errors reported per value, because a client can cause millions.
MAX_ERRORS: Final = 100


class ConversionError(ValueError):
    """
    A value, or a part of one, is invalid for its type.

    Args:
        expected:
            A short description of valid values; None means the reader's description.

        got:
            The invalid part, or `ABSENT` if it is missing; None means the whole value.

        nearest:
            The most similar valid value, or a function that finds it on demand, because searching takes too
            long for each member of a union.

        path:
            The path to the part, in the syntax of code: ``.points[2].x``.

        reason:
            The problem, if *expected* does not describe it.

        inner:
            The errors of the parts, if there are several.
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
        """The most similar valid value, if any."""
        return self._nearest() if callable(self._nearest) else self._nearest

    @property
    def parts(self) -> "tuple[ConversionError, ...]":
        """The errors of all invalid parts."""
        return self.inner or (self,)

    def at(self, path: str) -> "ConversionError":
        """Return this error for a larger value, in which the invalid value is at *path*."""
        return self.replaced(path=path + self.path)

    def replaced(self, **changes: Any) -> "ConversionError":
        """Return a copy of this error with some parameters changed."""
        parameters = {name: getattr(self, name) for name in ("expected", "got", "path", "reason", "inner")}
        return ConversionError(**{**parameters, "nearest": self._nearest, **changes})


TOO_DEEP: Final = "is nested too deeply"


def parts_of(error: Exception) -> tuple[ConversionError, ...]:
    """Return the conversion errors in an exception; any other exception is converted to one."""
    if isinstance(error, ConversionError):
        return error.parts
    is_deep = isinstance(error, RecursionError)
    return (ConversionError(reason=TOO_DEEP if is_deep else f"is invalid: {error}"),)


def collect(
    parts: Iterable[tuple[Any, Part]],
    convert: Callable[[Part], Value],
    step: Callable[[Any], str] = "[{}]".format,
) -> list[Value]:
    """
    Convert several parts, and raise their errors together.

    Args:
        parts:
            The parts, each with its key.

        convert:
            Converts one part.

        step:
            Returns the path step for a key.

    Raises:
        ConversionError: If any part is invalid.
    """
    results: list[Value] = []
    errors: list[ConversionError] = []
    for key, part in parts:
        try:
            results.append(convert(part))
        except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
            errors += (inner.at(step(key)) for inner in parts_of(error))
            if len(errors) >= MAX_ERRORS:
                break
    if errors:
        raise ConversionError(inner=tuple(errors))
    return results


def error_of_union(errors: list[ConversionError]) -> ConversionError | None:
    """Return the error of the union member that was probably meant; None if that is ambiguous."""
    # Members that do not match at all have errors without a path or reason. Of the other members, the one
    # with the fewest errors is meant. If there are several, their errors must be equal, as with invalid JSON.
    candidates = [error for error in errors if all(part.path or part.reason for part in error.parts)]
    fewest = min((len(error.parts) for error in candidates), default=0)
    best = [error for error in candidates if len(error.parts) == fewest]
    distinct = {tuple((part.expected, part.path, part.reason) for part in error.parts) for error in best}
    return best[0] if len(distinct) == 1 else None
