"""Limits: how much a client may send, and how much it is sent."""

from math import inf
from typing import Any

import attrs

__all__ = ["Limits"]


def _positive(_: object, attribute: "attrs.Attribute[Any]", value: float) -> None:
    """
    Raise ValueError unless *value* lets anything through.
    """
    if not value > 0:
        msg = f"{attribute.name} is {value!r}: a limit is a number above zero"
        raise ValueError(msg)


@attrs.frozen(kw_only=True)
class Limits:
    """
    What is refused, with a clear error and without harm to the next request.

    Args:
        line:
            How long a line may be, in bytes.

        depth:
            How deep the JSON on a line may be nested.

        arguments:
            How many arguments a request may have.

        argument:
            How long one of them may be, in characters.

        renders:
            How many prompts may be rendered beside each other.

        seconds:
            How long a rendering may take if its prompt does not say otherwise.

        rate:
            How many requests a second are answered, after as many at once.

        completions:
            How many of them may ask for completion.

        reply:
            How long a reply may be, in bytes.
    """

    line: int = attrs.field(default=64 * 1024 * 1024, validator=_positive)
    depth: int = attrs.field(default=100, validator=_positive)
    arguments: int = attrs.field(default=1000, validator=_positive)
    argument: int = attrs.field(default=16 * 1024 * 1024, validator=_positive)
    renders: int = attrs.field(default=64, validator=_positive)
    seconds: float = attrs.field(default=30.0, validator=_positive)
    rate: float = attrs.field(default=inf, validator=_positive)
    completions: float = attrs.field(default=500.0, validator=_positive)
    reply: int = attrs.field(default=64 * 1024 * 1024, validator=_positive)
