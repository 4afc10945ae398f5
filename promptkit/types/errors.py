"""Conversion errors, which report invalid values and invalid parts of values."""

from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

Part = TypeVar("Part")
Value = TypeVar("Value")

#: A marker for a missing value.
ABSENT: Final = object()

#: The maximum number of errors to report for each value, because a client could cause millions of errors.
MAX_ERRORS: Final = 100


class ConversionError(ValueError):
    """
    Raised if a value, or a part of a value, is invalid for its type.

    Args:
        expected:
            A short description of valid values; None to use the reader's description.

        got:
            The invalid part, or `ABSENT` if the part is missing; None if the whole value is invalid.

        nearest:
            The valid value that is most similar to the invalid one, or a function that finds it on demand
            (searching for every member of a union would take too long).

        path:
            The path to the invalid part, in Python syntax: ``.points[2].x``.

        reason:
            The problem, if the message "is ..., not *expected*" would not describe it.

        inner:
            The errors of the individual parts, if several parts are invalid.
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
        """The valid value that is most similar to the invalid one; None if no valid value is similar."""
        return self._nearest() if callable(self._nearest) else self._nearest

    @property
    def parts(self) -> "tuple[ConversionError, ...]":
        """The errors of all invalid parts, or only this error if it is about a single part."""
        return self.inner or (self,)

    def at(self, path: str) -> "ConversionError":
        """Return a copy of this error for a larger value that contains the invalid value at *path*."""
        return self.replaced(path=path + self.path)

    def replaced(self, **changes: Any) -> "ConversionError":
        """Return a copy of this error with the given parameters changed."""
        parameters = {name: getattr(self, name) for name in ("expected", "got", "path", "reason", "inner")}
        return ConversionError(**{**parameters, "nearest": self._nearest, **changes})


TOO_DEEP: Final = "is nested too deeply"


def conversion_errors_of(error: Exception) -> tuple[ConversionError, ...]:
    """Return the conversion errors that *error* contains. Convert any other exception to a single one."""
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
    Convert several parts and return the results, or raise the errors of all parts together.

    Args:
        parts:
            Pairs of a key and a part.

        convert:
            Converts one part.

        step:
            Returns the step that a key adds to the path of an error.

    Raises:
        ConversionError: If any part is invalid. It contains the errors of all parts, or the first ones if
            there are more than `MAX_ERRORS`.
    """
    results: list[Value] = []
    errors: list[ConversionError] = []
    for key, part in parts:
        try:
            results.append(convert(part))
        except Exception as error:  # noqa: BLE001 (an author's class can raise anything)
            errors += (inner.at(step(key)) for inner in conversion_errors_of(error))
            if len(errors) >= MAX_ERRORS:
                break
    if errors:
        raise ConversionError(inner=tuple(errors))
    return results


def union_error(errors: list[ConversionError]) -> ConversionError | None:
    """
    Return the error for the union member that the client probably meant; None if that is unclear.

    Each of *errors* is for one member of the union.
    """
    # Members that do not match at all have errors without a path or reason. Of the other members, the client
    # probably meant the one with the fewest errors. If several have equally few, their errors must be the
    # same, as with invalid JSON.
    candidates = [error for error in errors if all(part.path or part.reason for part in error.parts)]
    fewest = min((len(error.parts) for error in candidates), default=0)
    best = [error for error in candidates if len(error.parts) == fewest]
    distinct = {tuple((part.expected, part.path, part.reason) for part in error.parts) for error in best}
    return best[0] if len(distinct) == 1 else None
