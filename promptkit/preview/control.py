"""What a form shows for an argument, and whether a browser sends that back as it is."""

import re
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import attrs

from promptkit.catalog.arguments import Argument
from promptkit.conversion.errors import ConversionError

__all__ = ["Control", "Kind", "Option", "Show", "is_same", "typeable", "value_of"]

Kind: TypeAlias = Literal["line", "area", "radios", "select", "moment", "file", "kept"]

#: What browsers change: they send each carriage return as part of a line end, and pages hold no NUL.
_UNTYPEABLE: Final = re.compile("[\r\0\ud800-\udfff]")


@attrs.frozen
class Option:
    """
    One of several values to choose from.

    Args:
        value:
            What is sent; ``""`` for nothing.

        label:
            What people see.

        chosen:
            Whether it is the value.
    """

    value: str
    label: str
    chosen: bool = False


@attrs.frozen
class Control:
    """
    What a form shows for an argument.

    Args:
        kind:
            The macro of ``fields.html`` that draws it.

        value:
            The text in it.

        attributes:
            More attributes of the element.

        options:
            What to choose from.

        offset:
            The offset from UTC of a moment; None if it has no field for that.
    """

    kind: Kind
    value: str = ""
    attributes: Mapping[str, str] = MappingProxyType({})
    options: tuple[Option, ...] = ()
    offset: str | None = None


#: Takes an argument and its value, ``""`` for none. Returns None if the control cannot show that value.
Show: TypeAlias = Callable[[Argument, str], Control | None]


def typeable(text: str) -> bool:
    """
    Tell whether browsers send a text unchanged.
    """
    return _UNTYPEABLE.search(text) is None


def value_of(argument: Argument, given: str) -> Any:
    """
    Return the value that an argument reads; None if it refuses the text.
    """
    try:
        return argument.reader.read(given)
    except ConversionError:
        return None


def is_same(value: Any, other: Any) -> bool:
    """
    Tell whether two values are equal, and of one type.
    """
    return type(value) is type(other) and bool(value == other)
