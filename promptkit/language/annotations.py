"""
What an author declares: of a parameter in its annotation, and of who may use a prompt.

Scopes are words for what a caller may do, as OAuth has them. See
https://www.rfc-editor.org/rfc/rfc6749#section-3.3.
"""

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any, Final

import attrs

from promptkit.language.validation import optional_text

#: The default of a parameter that has none. None itself is an ordinary default.
NO_DEFAULT: Final = inspect.Parameter.empty

_SCOPE: Final = r"[\x21\x23-\x5b\x5d-\x7e]+"

#: What is needed of callers unless an author says more.
NO_SCOPES: Final[frozenset[str]] = frozenset()


def _examples(values: Iterable[Any]) -> tuple[Any, ...]:
    """Return *values* as a tuple; a single string is one example."""
    return (values,) if isinstance(values, str) else tuple(values)


def _complete(source: Iterable[Any] | Callable[..., Any] | None) -> Any:
    """Return *source*; an iterator becomes a tuple, so that it can be read more than once."""
    return tuple(source) if isinstance(source, Iterator) else source


@attrs.frozen
class Arg:
    """
    Describes a parameter: ``code: Annotated[str, Arg("The code to review")]``.

    Args:
        description:
            Tells people what to enter. Left out, the function's docstring does.

        title:
            The argument's name for people. Clients show it in place of the name.

        examples:
            Values that are valid; one string, or several values of the parameter's type.

        complete:
            What to offer while the argument is typed: values, or a function of what was typed so
            far that returns them.

        secret:
            Whether the value must stay out of errors, logs and transcripts. Such values are never
            offered.

        timezone:
            The time zone of dates and times that a client writes without an offset: a name such as
            ``"Europe/Berlin"``, or a `tzinfo` such as a `zoneinfo.ZoneInfo`. Every `datetime`
            is then aware. Left out, those without an offset stay naive.

        env:
            The environment variable of the server that holds the default. It is looked up for each
            request, and read as if a client had sent it. If it is not set, the parameter's own default
            counts. Clients see the variable's name, never its value.

    Raises:
        TypeError: If *description*, *title* or *env* is not a string, or *examples* cannot be iterated
            over.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/server/prompts#prompt
    """

    description: str | None = attrs.field(default=None, validator=optional_text)
    title: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)
    examples: tuple[Any, ...] = attrs.field(default=(), kw_only=True, converter=_examples)
    complete: Iterable[Any] | Callable[..., Any] | None = attrs.field(
        default=None,
        kw_only=True,
        converter=_complete,
    )
    secret: bool = attrs.field(default=False, kw_only=True)
    timezone: str | tzinfo | None = attrs.field(default=None, kw_only=True)
    env: str | None = attrs.field(default=None, kw_only=True, validator=optional_text)


def is_scope(value: object) -> bool:
    """
    Return whether a value is one scope: ASCII without blanks, quotes and backslashes.
    """
    return isinstance(value, str) and re.fullmatch(_SCOPE, value) is not None


def scopes_of(scopes: str | Iterable[str]) -> frozenset[str]:
    """
    Return what somebody may do. One text with blanks between the scopes is taken apart.

    Raises:
        ValueError: If one is no scope.
    """
    found = scopes.split() if isinstance(scopes, str) else list(scopes)
    for scope in found:
        if not is_scope(scope):
            msg = f"{scope!r} is no scope: one has ASCII without blanks, quotes and backslashes"
            raise ValueError(msg)
    return frozenset(found)
