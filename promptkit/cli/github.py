"""Diagnostics as annotations of GitHub Actions, which shows them beside the lines of a change."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, TextIO

from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.fragments.invisible import escape_invisible

__all__ = ["print_annotation", "print_annotations"]

#: What an annotation is called that belongs to no line.
_TITLE: Final = MappingProxyType({"title": "promptkit"})


def print_annotations(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """
    Print a workflow command for each of *diagnostics*.

    See Also:
        https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    for one in diagnostics:
        print_annotation(one.severity.value, f"{one.message}\n{one.remedy}", stream, _properties(one))


def print_annotation(level: str, text: str, stream: TextIO, properties: Mapping[str, str] = _TITLE) -> None:
    """
    Print one workflow command.

    Args:
        level:
            How serious it is: ``error``, ``warning`` or ``notice``.

        text:
            What is said.

        stream:
            Where to print.

        properties:
            Where it belongs, and its title.
    """
    place = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in properties.items())
    print(f"::{level} {place}::{_escaped(escape_invisible(text))}", file=stream)


def _properties(diagnostic: Diagnostic) -> dict[str, str]:
    """Where it is, without what is unknown, and its title."""
    place = diagnostic.location
    columns = {"col": place.column, "endColumn": place.end - 1} if place.column else {}
    known = {
        "file": _path(place),
        "line": place.line,
        **columns,
        "title": f"promptkit {diagnostic.rule.value}",
    }
    return {name: str(value) for name, value in known.items() if value}


def _path(place: Location) -> str:
    """The path from the root of the repository, which GitHub wants, else from the current folder."""
    for root in filter(None, (os.environ.get("GITHUB_WORKSPACE"), os.curdir)):
        with suppress(OSError, ValueError):  # it is not below
            return Path(place.file).relative_to(Path(root).absolute()).as_posix()
    return place.file


def _escaped(text: str, more: str = "") -> str:
    """*text* without the characters that mean something in a command; *more* is what does in a property."""
    for character in f"%\r\n{more}":
        text = text.replace(character, f"%{ord(character):02X}")
    return text
