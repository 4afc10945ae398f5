"""
Changing one entry of a YAML text by its lines, with every other line left as it is.

Lines may deceive, as those of a long string: whatever calls this reads the new text, and compares.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from textwrap import indent
from typing import Any, Final

from promptkit.files.writing import FileRefusedError, check, joined, newline_of

#: How long a text may be, as a second goes into that many characters.
_MAX_CHARACTERS: Final = 1 << 17

#: How deep collections may be nested. The parser takes a second for a thousand brackets.
_MAX_DEPTH: Final = 50
_TOO_DEEP: Final = "it is nested too deeply to be read"

#: What begins an alias or a collection on one line, wherever else it may be.
_SPECIAL: Final = re.compile(r"[*\[{]")

#: A line that is never as long is never broken.
_WIDTH: Final = 1 << 20


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says; an empty mapping for an empty text.

    Raises:
        FileRefusedError: If it is no YAML mapping, is too long, or has aliases, which may stand for anything.
    """
    from ruamel.yaml import YAML  # slow to import

    most = f"{_MAX_CHARACTERS:,} characters, which are too many to be read as YAML"
    check(len(text) <= _MAX_CHARACTERS, f"it has more than {most}")
    reader = YAML(typ="safe", pure=True)
    try:
        if _SPECIAL.search(text):
            _check_events(reader.parse(StringIO(text)))
        with warnings.catch_warnings(action="ignore"):  # an anchor twice: its warning shows the text as it is
            data = reader.load(text)
    except FileRefusedError:
        raise
    except RecursionError:
        raise FileRefusedError(_TOO_DEEP) from None
    except Exception as error:  # noqa: BLE001 (the parser raises errors of many types, as KeyError for '!!bool x')
        mark = getattr(error, "problem_mark", None)
        place = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        msg = f"this is not YAML: {getattr(error, 'problem', None) or str(error) or type(error).__name__}"
        raise FileRefusedError(msg, *place) from None
    check(data is None or isinstance(data, dict), "it holds no mapping, so that a server has no place in it")
    return data or {}


def _check_events(events: Iterable[Any]) -> None:
    """Raise FileRefusedError for aliases and deep nesting, before anything is made of them."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        check(name != "AliasEvent", "it has aliases, and what these stand for would be changed, too")
        check(depth <= _MAX_DEPTH, _TOO_DEEP)


def put(text: str, path: Sequence[str], value: Mapping[str, Any] | None) -> str:
    """
    Return a text with an entry changed where it stands, added behind the others, or taken out.

    Args:
        text:
            What `read` takes.

        path:
            The key of the mapping that holds the entries, and that of the entry.

        value:
            What the entry holds; None if it is taken out.
    """
    (above, name), lines, newline = path, text.splitlines(keepends=True), newline_of(text)
    holder = _find(lines, above, 0, len(lines))
    if holder is None:
        return joined(text, _dumped({above: {name: value}}, 0, newline), "")
    end = _end(lines, holder)
    at = _find(lines, name, holder + 1, end)
    first, last = (end, end) if at is None else (at, _end(lines, at))
    others = [line for line in (*lines[holder + 1 : first], *lines[last:end]) if _says_something(line)]
    depth = _indent(lines[holder]) + 2
    if value is None and not others:
        lines[holder] = lines[holder].replace(":", ": {}", 1)
    elif not others:
        lines[holder] = re.sub(r":[ \t]*\{\}", ":", lines[holder], count=1)
    else:
        depth = _indent(others[0])
    shown = "" if value is None else _dumped({name: value}, depth, newline)
    return joined("".join(lines[:first]), shown, "".join(lines[last:]))


def _find(lines: Sequence[str], key: str, start: int, end: int) -> int | None:
    """The line of a key among those of a mapping, which is between two lines."""
    inside = [at for at in range(start, end) if _says_something(lines[at])]
    named = re.compile(rf"[ ]*([\"']?){re.escape(key)}\1[ \t]*:\s")
    own = (at for at in inside if _indent(lines[at]) == _indent(lines[inside[0]]))
    return next((at for at in own if named.match(f"{lines[at]}\n")), None)


def _end(lines: Sequence[str], at: int) -> int:
    """Where the value of a key ends, without the comments and blank lines behind it."""
    end, depth = at + 1, _indent(lines[at])
    for below in range(at + 1, len(lines)):
        if not _says_something(lines[below]):
            continue
        is_item = lines[below].split()[0] == "-"  # those of a list may stand right below its key
        if _indent(lines[below]) < depth + (not is_item):
            break
        end = below + 1
    return end


def _says_something(line: str) -> bool:
    return line.strip()[:1] not in {"", "#"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _dumped(value: Mapping[str, Any], depth: int, newline: str) -> str:
    """The lines of a mapping."""
    from ruamel.yaml import YAML

    writer, written = YAML(pure=True), StringIO()
    writer.width = _WIDTH
    writer.dump(value, written)
    return indent(written.getvalue(), " " * depth).replace("\n", newline)
