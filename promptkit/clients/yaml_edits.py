"""
Line-based edits that change one entry in a YAML file, and preserve every other line.

A line inside a long string can look like a key. Therefore, callers must parse and verify the result.
"""

import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from textwrap import indent
from typing import Any, Final

from promptkit.files.edits import FileEditError, check, insert_lines, newline_of

#: Maximum length of a file, in characters. Parsing a file of this length takes about a second.
_MAX_CHARACTERS: Final = 1 << 17

#: Maximum nesting depth of collections. The parser needs a second for a thousand brackets.
_MAX_DEPTH: Final = 50
_TOO_DEEP: Final = "it is nested too deeply"

#: A line width that no line reaches, so that lines are not wrapped.
_WIDTH: Final = 1 << 20


def read(text: str) -> dict[str, Any]:
    """
    Parse *text*, or return an empty mapping if it is empty.

    Raises:
        FileEditError: If *text* is not a YAML mapping, is too long or nested too deeply, or contains aliases,
            whose targets an edit could change.
    """
    from ruamel.yaml import YAML  # slow to import

    check(
        len(text) <= _MAX_CHARACTERS,
        f"it has more than {_MAX_CHARACTERS:,} characters, the limit for YAML files",
    )
    reader = YAML(typ="safe", pure=True)
    try:
        _check_events(reader.parse(StringIO(text)))
        with warnings.catch_warnings(action="ignore"):  # the warning about a duplicate anchor quotes the text
            data = reader.load(text)
    except FileEditError:
        raise
    except RecursionError:
        raise FileEditError(_TOO_DEEP) from None
    except Exception as error:  # noqa: BLE001 (the parser raises many types, such as KeyError for '!!bool x')
        mark = getattr(error, "problem_mark", None)
        location = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        msg = f"it is not valid YAML: {getattr(error, 'problem', None) or str(error) or type(error).__name__}"
        raise FileEditError(msg, *location) from None
    check(data is None or isinstance(data, dict), "it is not a mapping, so a server cannot be added")
    return data or {}


def _check_events(events: Iterable[Any]) -> None:
    """Raise FileEditError for aliases and deep nesting, before anything is loaded."""
    depth = 0
    for event in events:
        name = type(event).__name__
        depth += name.endswith("StartEvent") - name.endswith("EndEvent")
        check(name != "AliasEvent", "it contains aliases, whose targets would also change")
        check(depth <= _MAX_DEPTH, _TOO_DEEP)


def set_entry(text: str, path: Sequence[str], value: Mapping[str, Any] | None) -> str:
    """
    Return *text* with an entry changed in place, appended or removed.

    Args:
        text:
            Text that `read` accepts.

        path:
            The key of the mapping that contains the entries, and the key of the entry.

        value:
            The new value, or None to remove the entry.
    """
    (parent, name), lines, newline = path, text.splitlines(keepends=True), newline_of(text)
    container = _find(lines, parent, 0, len(lines))
    if container is None:
        return insert_lines(text, _dump({parent: {name: value}}, 0, newline), "")
    end = _find_end(lines, container)
    index = _find(lines, name, container + 1, end)
    first, last = (end, end) if index is None else (index, _find_end(lines, index))
    siblings = [line for line in (*lines[container + 1 : first], *lines[last:end]) if _has_content(line)]
    depth = _indent(lines[container]) + 2
    if value is None and not siblings:
        lines[container] = lines[container].replace(":", ": {}", 1)
    elif not siblings:
        lines[container] = re.sub(r":[ \t]*\{\}", ":", lines[container], count=1)
    else:
        depth = _indent(siblings[0])
    entry = "" if value is None else _dump({name: value}, depth, newline)
    return insert_lines("".join(lines[:first]), entry, "".join(lines[last:]))


def _find(lines: Sequence[str], key: str, start: int, end: int) -> int | None:
    """Return the index of a key's line in the mapping between two lines, or None if the key is missing."""
    inside = [index for index in range(start, end) if _has_content(lines[index])]
    pattern = re.compile(rf"[ ]*([\"']?){re.escape(key)}\1[ \t]*:\s")
    candidates = (index for index in inside if _indent(lines[index]) == _indent(lines[inside[0]]))
    return next((index for index in candidates if pattern.match(f"{lines[index]}\n")), None)


def _find_end(lines: Sequence[str], index: int) -> int:
    """Return the index of the line after a key's value, which does not include trailing comments."""
    end, depth = index + 1, _indent(lines[index])
    for below in range(index + 1, len(lines)):
        if not _has_content(lines[below]):
            continue
        is_item = lines[below].split()[0] == "-"  # list items can have the indentation of their key
        if _indent(lines[below]) < depth + (not is_item):
            break
        end = below + 1
    return end


def _has_content(line: str) -> bool:
    return line.strip()[:1] not in {"", "#"}


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _dump(value: Mapping[str, Any], depth: int, newline: str) -> str:
    """Format a mapping as YAML, indented by *depth* spaces."""
    from ruamel.yaml import YAML

    writer, output = YAML(pure=True), StringIO()
    writer.width = _WIDTH
    writer.dump(value, output)
    return indent(output.getvalue(), " " * depth).replace("\n", newline)
