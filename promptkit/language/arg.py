"""Arg: what an author says about one parameter, inside of its annotation."""

import inspect
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from typing import Any, Final

import attrs

from promptkit.language.validation import optional_text

__all__ = ["NO_DEFAULT", "Arg"]


#: Says that a parameter has no default (None is a default like any other).
NO_DEFAULT: Final = inspect.Parameter.empty


def _examples(values: Iterable[Any]) -> tuple[Any, ...]:
    """
    Return *values* as a tuple; one string alone may be given bare.
    """
    return (values,) if isinstance(values, str) else tuple(values)


def _complete(source: Iterable[Any] | Callable[..., Any] | None) -> Any:
    """
    Return *source* so that it can be read more than once.
    """
    return tuple(source) if isinstance(source, Iterator) else source


@attrs.frozen
class Arg:
    """
    What an author says about a parameter, in ``Annotated[str, Arg("The code to review")]``.

    Args:
        description:
            What to enter, for people.

        title:
            The argument's name as people see it. Clients show it in place of the name.

        examples:
            Values that someone might enter.

        complete:
            What to offer while someone types: values, or a function of what was typed.

        secret:
            Whether values must stay out of errors, logs and transcripts, and are never offered.

        timezone:
            Where the dates and times hold that a client writes without an offset: the name of a zone,
            as in ``"Europe/Berlin"``, or a `tzinfo` such as a `zoneinfo.ZoneInfo`. Each `datetime` is
            aware then. Left out, each is read as it is written.
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
