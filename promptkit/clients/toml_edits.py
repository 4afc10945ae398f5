"""
Changing one table of a TOML text by its lines, with every other line left as it is.

Lines may deceive, as those of a long string: whatever calls this reads the new text, and compares.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from promptkit.files.toml import parse_toml
from promptkit.files.writing import FileRefusedError, joined, newline_of

#: A line that begins a table.
_HEADING: Final = re.compile(r"[ \t]*\[\[?[^\[\]\r\n]+\]\]?[ \t]*(?:#.*)?\r?$")


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says.

    Raises:
        FileRefusedError: If it is not TOML, has a key of too many parts, or is nested too deeply.
    """
    try:
        return parse_toml(text.encode())
    except ValueError as error:
        msg = f"this is not TOML: {error}"
        raise FileRefusedError(msg) from None


def put(text: str, path: Sequence[str], table: Mapping[str, Any] | None) -> str:
    """
    Return a text with a table changed where it stands, added behind all others, or taken out.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the table.

        table:
            What it holds; None if it is taken out.

    Raises:
        TypeError: If it holds what only TOML has, as dates.
    """
    end, lines = newline_of(text), text.splitlines(keepends=True)
    first, last = _find(lines, path) or (len(lines), len(lines))
    shown = ""
    if table is not None:
        settings = [f"{_key(key)} = {_shown(value)}" for key, value in table.items()]
        blank = [""] if first == len(lines) > 0 else []
        heading = f"[{'.'.join(map(_key, path))}]"
        shown = "".join(f"{line}{end}" for line in (*blank, heading, *settings))
    elif first and not lines[first - 1].strip():
        first -= 1
    return joined("".join(lines[:first]), shown, "".join(lines[last:]))


def _find(lines: Sequence[str], path: Sequence[str]) -> tuple[int, int] | None:
    """From the heading of a table to the end of those below it; None if it has no heading."""
    keys = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in path)
    own = re.compile(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]")
    headings = [at for at, line in enumerate(lines) if _HEADING.match(line)]
    start = next((at for at in headings if own.match(lines[at])), None)
    if start is None:
        return None
    end = next((at for at in headings if at > start and not own.match(lines[at])), len(lines))
    # The comments before the next table are of that one.
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return start, end


def _shown(value: Any) -> str:
    """A value: TOML writes texts, numbers and lists as JSON does."""
    if not isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return f"{{ {', '.join(f'{_key(key)} = {_shown(one)}' for key, one in value.items())} }}"


def _key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else _shown(text)
