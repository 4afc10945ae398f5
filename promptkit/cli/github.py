"""Diagnostics as annotations of GitHub Actions, which shows them beside the lines of a change."""

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import TextIO

from promptkit.errors.diagnostics import Diagnostic, Location
from promptkit.fragments.invisible import escape_invisible

__all__ = ["print_annotations"]


def print_annotations(diagnostics: Iterable[Diagnostic], stream: TextIO) -> None:
    """
    Print a workflow command for each of *diagnostics*.

    See Also:
        https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands
    """
    for one in diagnostics:
        place = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in _properties(one).items())
        text = escape_invisible(f"{one.message}\n{one.remedy}")
        print(f"::{one.severity.value} {place}::{_escaped(text)}", file=stream)


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
