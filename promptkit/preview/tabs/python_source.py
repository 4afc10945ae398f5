"""Python source for values: the expression that makes one, and the imports that it needs."""

import dataclasses
import datetime as dt
import inspect
import json
import math
import uuid
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs
import msgspec

from promptkit.fragments.invisible import escape_invisible

__all__ = ["Source", "UnwritableError", "text_source"]


_STARRED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class UnwritableError(ValueError):
    """There is no expression for a value."""


@attrs.define
class Source:
    """
    Writes values, and collects the imports that they need.

    Attributes:
        imports:
            The lines to import each name, by the name.
    """

    imports: dict[str, str] = attrs.field(factory=dict)

    def of(self, value: Any) -> str:
        """
        Return the expression that makes *value*.

        Raises:
            UnwritableError: If there is none that is sure to.
        """
        write = _WRITERS.get(type(value)) or _of_class(type(value))
        if write is None:
            raise UnwritableError
        return write(self, value)

    def add(self, name: str, line: str) -> str:
        """
        Add an import, and return the name.

        Raises:
            UnwritableError: If the name stands for something else already.
        """
        if self.imports.setdefault(name, line) != line:
            raise UnwritableError
        return name

    def named(self, kind: type) -> str:
        """
        Return the name of a class of the project's, imported.

        Raises:
            UnwritableError: If no other module can import it.
        """
        outermost, *_ = kind.__qualname__.split(".")
        if "<" in kind.__qualname__ or not all(map(str.isidentifier, kind.__module__.split("."))):
            raise UnwritableError
        self.add(outermost, f"from {kind.__module__} import {outermost}")
        return kind.__qualname__


def text_source(text: str) -> str:
    """
    Return the literal of a text. What nobody would see is escaped in it.
    """
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _float(_: Source, value: float) -> str:
    if not math.isfinite(value):
        raise UnwritableError
    return repr(value)


def _of_module(module: str, expression: Callable[[Any], str]) -> Callable[[Source, Any], str]:
    """Write what `repr` shows of a value of the standard library."""

    def write(source: Source, value: Any) -> str:
        source.add(module, f"import {module}")
        return expression(value)

    return write


def _moment(source: Source, value: dt.datetime | dt.time) -> str:
    source.add("datetime", "import datetime")
    if isinstance(value.tzinfo, ZoneInfo):
        source.add("zoneinfo", "import zoneinfo")
    elif value.tzinfo is not None and not isinstance(value.tzinfo, dt.timezone):
        raise UnwritableError
    return repr(value)


def _items(left: str, right: str) -> Callable[[Source, Any], str]:
    return lambda source, value: f"{left}{', '.join(map(source.of, value))}{right}"


def _tuple(source: Source, value: tuple[Any, ...]) -> str:
    items = ", ".join(map(source.of, value))
    return f"({items},)" if len(value) == 1 else f"({items})"


def _set(source: Source, value: set[Any] | frozenset[Any]) -> str:
    items = ", ".join(sorted(map(source.of, value)))
    name = type(value).__name__
    if not value:
        return f"{name}()"
    return f"{{{items}}}" if type(value) is set else f"{name}({{{items}}})"


def _dict(source: Source, value: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{source.of(key)}: {source.of(item)}" for key, item in value.items()) + "}"


def _member(source: Source, value: Enum) -> str:
    if value.name not in type(value).__members__:  # several flags
        raise UnwritableError
    return f"{source.named(type(value))}.{value.name}"


def _record(names: Callable[[type], list[tuple[str, str]]]) -> Callable[[Source, Any], str]:
    """Write the call of a class, with the names of parameters and those of the attributes for them."""

    def write(source: Source, value: Any) -> str:
        found = names(type(value))
        if not _takes(type(value), {parameter for parameter, _ in found}):
            raise UnwritableError
        members = ", ".join(f"{parameter}={source.of(getattr(value, name))}" for parameter, name in found)
        return f"{source.named(type(value))}({members})"

    return write


def _takes(kind: type, given: set[str]) -> bool:
    """Whether a class is made of these parameters: it may have a constructor of its own."""
    parameters = inspect.signature(kind).parameters.values()
    needed = {one.name for one in parameters if one.default is one.empty and one.kind not in _STARRED}
    return needed <= given <= {one.name for one in parameters}


def _struct_names(kind: Any) -> list[tuple[str, str]]:
    return [(name, name) for name in kind.__struct_fields__]


def _attrs_names(kind: Any) -> list[tuple[str, str]]:
    return [(field.alias, field.name) for field in attrs.fields(kind) if field.init]


def _dataclass_names(kind: Any) -> list[tuple[str, str]]:
    return [(field.name, field.name) for field in dataclasses.fields(kind) if field.init]


def _named_tuple_names(kind: Any) -> list[tuple[str, str]]:
    return [(name, name) for name in kind._fields]


def _of_class(kind: type) -> Callable[[Source, Any], str] | None:
    return next((write for recognises, write in _CLASSES if recognises(kind)), None)


#: What writes the values of classes that authors define; the first row that recognises a class counts.
_CLASSES: Final[tuple[tuple[Callable[[type], bool], Callable[[Source, Any], str]], ...]] = (
    (lambda kind: issubclass(kind, Enum), _member),
    (lambda kind: issubclass(kind, msgspec.Struct), _record(_struct_names)),
    (attrs.has, _record(_attrs_names)),
    (lambda kind: hasattr(kind, "__dataclass_fields__"), _record(_dataclass_names)),
    (lambda kind: issubclass(kind, tuple) and hasattr(kind, "_fields"), _record(_named_tuple_names)),
    (
        lambda kind: issubclass(kind, PurePath),
        _of_module("pathlib", lambda path: f"pathlib.Path({text_source(str(path))})"),
    ),
)

_WRITERS: Final[dict[type, Callable[[Source, Any], str]]] = {
    str: lambda _, value: text_source(value),
    **dict.fromkeys((bool, int, bytes, type(None)), lambda _, value: repr(value)),
    float: _float,
    list: _items("[", "]"),
    tuple: _tuple,
    **dict.fromkeys((set, frozenset), _set),
    dict: _dict,
    **dict.fromkeys((dt.date, dt.timedelta), _of_module("datetime", repr)),
    **dict.fromkeys((dt.datetime, dt.time), _moment),
    Decimal: _of_module("decimal", lambda value: f"decimal.{value!r}"),
    uuid.UUID: _of_module("uuid", lambda value: f"uuid.{value!r}"),
}
