"""
Line-based edits that change one table in a TOML file, and preserve every other line.

A line inside a long string can look like a heading. Therefore, callers must parse and verify the result.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from promptkit.files.edits import FileEditError, insert_lines, newline_of
from promptkit.files.toml import parse_toml

#: The heading of a table.
_HEADING: Final = re.compile(r"[ \t]*\[\[?[^\[\]\r\n]+\]\]?[ \t]*(?:#.*)?\r?$")


def read(text: str) -> dict[str, Any]:
    """
    Parse *text*.

    Raises:
        FileEditError: If *text* is not TOML, contains a key with too many parts, or is nested too deeply.
    """
    try:
        return parse_toml(text.encode())
    except ValueError as error:
        msg = f"it is not valid TOML: {error}"
        raise FileEditError(msg) from None


def set_entry(text: str, path: Sequence[str], table: Mapping[str, Any] | None) -> str:
    """
    Return *text* with a table changed in place, appended or removed.

    Args:
        text:
            Text that `read` accepts.

        path:
            The keys that lead to the table.

        table:
            The new contents of the table, or None to remove the table.

    Raises:
        TypeError: If *table* contains a value that is not JSON, such as a date.
    """
    end, lines = newline_of(text), text.splitlines(keepends=True)
    first, last = _find(lines, path) or (len(lines), len(lines))
    section = ""
    if table is not None:
        settings = [f"{_format_key(key)} = {_format_value(value)}" for key, value in table.items()]
        blank = [""] if first == len(lines) > 0 else []
        heading = f"[{'.'.join(map(_format_key, path))}]"
        section = "".join(f"{line}{end}" for line in (*blank, heading, *settings))
    elif first and not lines[first - 1].strip():
        first -= 1
    return insert_lines("".join(lines[:first]), section, "".join(lines[last:]))


def _find(lines: Sequence[str], path: Sequence[str]) -> tuple[int, int] | None:
    """Return the range of a table's lines, including subtables, or None if the table has no heading."""
    keys = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in path)
    pattern = re.compile(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]")
    headings = [index for index, line in enumerate(lines) if _HEADING.match(line)]
    start = next((index for index in headings if pattern.match(lines[index])), None)
    if start is None:
        return None
    end = next((index for index in headings if index > start and not pattern.match(lines[index])), len(lines))
    # The comments before the next table belong to that table.
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return start, end


def _format_value(value: Any) -> str:
    """Format a value. Strings, numbers and lists have the same syntax as in JSON."""
    if not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return f"{{ {', '.join(f'{_format_key(key)} = {_format_value(item)}' for key, item in value.items())} }}"


def _format_key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _format_value(text)
