"""Python source for values: the expression that makes one, and the imports that it needs."""

import dataclasses
import datetime as dt
import inspect
import json
import math
import uuid
from collections.abc import Callable, Iterable
from decimal import Decimal
from enum import Enum
from pathlib import PurePath
from typing import Any, Final
from zoneinfo import ZoneInfo

import attrs

from promptkit.fragments.invisible import escape_invisible
from promptkit.preview.uploads import Upload

__all__ = ["PythonSource", "UnwritableError", "text_source"]

_STARRED: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class UnwritableError(ValueError):
    """There is no expression for a value."""


@attrs.define
class PythonSource:
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
        kind = type(value)
        of_base = next((write for base, write in _OF_BASES if issubclass(kind, base)), _record)
        return _WRITERS.get(kind, of_base)(self, value)

    def of_upload(self, value: Any, upload: Upload | None) -> str:
        """
        Return the expression that reads a value from the files beside a test.

        Args:
            value:
                The value.

            upload:
                What it was read from; None if from none. Then it is written as it is.

        Raises:
            UnwritableError: If there is no expression that is sure to make it.
        """
        files = upload.files if upload else ()
        if type(value) is bytes and len(files) == 1:
            return self.data_of(files)[0]
        if files and type(value) is list and list(map(type, value)) == [bytes] * len(files):
            return f"[{', '.join(self.data_of(files))}]"
        if upload and len(files) == 1 and value == upload.value:
            return f'{self._path(files[0])}.read_text(encoding="utf-8")'
        return self.of(value)

    def data_of(self, files: Iterable[str]) -> list[str]:
        """Return an expression for the bytes of each file."""
        return [f"{self._path(name)}.read_bytes()" for name in files]

    def _path(self, name: str) -> str:
        self.add("pathlib", "import pathlib")
        return f"pathlib.Path(__file__).with_name({text_source(name)})"

    def add(self, name: str, line: str) -> None:
        """
        Add an import.

        Raises:
            UnwritableError: If the name stands for something else already.
        """
        if self.imports.setdefault(name, line) != line:
            raise UnwritableError

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
    """Return the literal of a text. What nobody would see is escaped in it."""
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _float(_: PythonSource, value: float) -> str:
    if not math.isfinite(value):
        raise UnwritableError
    return repr(value)


def _of_module(module: str, expression: Callable[[Any], str]) -> Callable[[PythonSource, Any], str]:
    """Write what `repr` shows of a value of the standard library."""

    def write(source: PythonSource, value: Any) -> str:
        source.add(module, f"import {module}")
        return expression(value)

    return write


def _moment(source: PythonSource, value: dt.datetime | dt.time) -> str:
    source.add("datetime", "import datetime")
    if isinstance(value.tzinfo, ZoneInfo):
        source.add("zoneinfo", "import zoneinfo")
    elif value.tzinfo is not None and not isinstance(value.tzinfo, dt.timezone):
        raise UnwritableError
    return repr(value)


def _list(source: PythonSource, value: list[Any]) -> str:
    return f"[{', '.join(map(source.of, value))}]"


def _tuple(source: PythonSource, value: tuple[Any, ...]) -> str:
    items = ", ".join(map(source.of, value))
    return f"({items},)" if len(value) == 1 else f"({items})"


def _set(source: PythonSource, value: set[Any] | frozenset[Any]) -> str:
    items = ", ".join(sorted(map(source.of, value)))
    name = type(value).__name__
    if not value:
        return f"{name}()"
    return f"{{{items}}}" if type(value) is set else f"{name}({{{items}}})"


def _dict(source: PythonSource, value: dict[Any, Any]) -> str:
    return "{" + ", ".join(f"{source.of(key)}: {source.of(item)}" for key, item in value.items()) + "}"


def _member(source: PythonSource, value: Enum) -> str:
    if value.name not in type(value).__members__:  # several flags
        raise UnwritableError
    return f"{source.named(type(value))}.{value.name}"


def _record(source: PythonSource, value: Any) -> str:
    """The call of a class of records, if it is made of their fields: it may have a constructor of its own."""
    kind, fields = type(value), _fields_of(type(value))
    if fields is None:
        raise UnwritableError
    parameters = inspect.signature(kind).parameters.values()
    needed = {one.name for one in parameters if one.default is one.empty and one.kind not in _STARRED}
    if not needed <= fields.keys() <= {one.name for one in parameters}:
        raise UnwritableError
    members = (f"{parameter}={source.of(getattr(value, name))}" for parameter, name in fields.items())
    return f"{source.named(kind)}({', '.join(members)})"


def _fields_of(kind: Any) -> dict[str, str] | None:
    """The parameters for the fields of a record, and their attributes; None for any other class."""
    if attrs.has(kind):
        return {field.alias: field.name for field in attrs.fields(kind) if field.init}
    if dataclasses.is_dataclass(kind):
        return {field.name: field.name for field in dataclasses.fields(kind) if field.init}
    is_tuple = issubclass(kind, tuple) and hasattr(kind, "_fields")
    names = kind._fields if is_tuple else getattr(kind, "__struct_fields__", None)
    return None if names is None else dict(zip(names, names, strict=True))


#: What writes the values of any class with such a base. Of no other class are they written, but of records.
_OF_BASES: Final[tuple[tuple[type, Callable[[PythonSource, Any], str]], ...]] = (
    (Enum, _member),
    (PurePath, _of_module("pathlib", lambda path: f"pathlib.Path({text_source(str(path))})")),
)

_WRITERS: Final[dict[type, Callable[[PythonSource, Any], str]]] = {
    str: lambda _, value: text_source(value),
    **dict.fromkeys((bool, int, bytes, type(None)), lambda _, value: repr(value)),
    float: _float,
    list: _list,
    tuple: _tuple,
    **dict.fromkeys((set, frozenset), _set),
    dict: _dict,
    **dict.fromkeys((dt.date, dt.timedelta), _of_module("datetime", repr)),
    **dict.fromkeys((dt.datetime, dt.time), _moment),
    Decimal: _of_module("decimal", lambda value: f"decimal.{value!r}"),
    uuid.UUID: _of_module("uuid", lambda value: f"uuid.{value!r}"),
}
