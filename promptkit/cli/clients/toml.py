"""
Changing one table of a TOML text by its lines, with every other line left as it is.

Lines may deceive, as those of a long string: whatever calls this reads the new text, and compares.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from promptkit.cli.clients.texts import DocumentError, as_json, cannot_be_changed, joined, newline_of

__all__ = ["put", "read", "take"]

#: A line that begins a table.
_HEADING: Final = re.compile(r"[ \t]*\[\[?[^\[\]\r\n]+\]\]?[ \t]*(?:#.*)?\r?$")


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says.

    Raises:
        DocumentError: If it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except ValueError as error:
        msg = f"this is not TOML: {error}"
        raise DocumentError(msg) from None


def put(text: str, path: tuple[str, ...], table: Mapping[str, Any]) -> str:
    """
    Return a text with a table in place of what its lines say, or behind all others if it is new.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the table.

        table:
            What it holds.

    Raises:
        DocumentError: If it holds what only TOML has.
    """
    end, lines = newline_of(text), text.splitlines(keepends=True)
    settings = [f"{_key(key)} = {_shown(value)}" for key, value in table.items()]
    shown = "".join(f"{line}{end}" for line in (f"[{'.'.join(map(_key, path))}]", *settings))
    found = _find(lines, path)
    if found is None:
        return joined(text, f"{end if text else ''}{shown}", "")
    first, last = found
    return joined("".join(lines[:first]), shown, "".join(lines[last:]))


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a table, and without the blank line before it.

    Args:
        text:
            What `read` takes.

        path:
            The keys that lead to the table, which exists.

    Raises:
        DocumentError: If it has no heading.
    """
    lines = text.splitlines(keepends=True)
    found = _find(lines, path)
    if found is None:
        raise cannot_be_changed()
    first, last = found
    if first and not lines[first - 1].strip():
        first -= 1
    return "".join(lines[:first] + lines[last:])


def _find(lines: Sequence[str], path: Sequence[str]) -> tuple[int, int] | None:
    """Where a table and those below it are, but for comments before the next one; None without a heading."""
    keys = r"[ \t]*\.[ \t]*".join(f"[\"']?{re.escape(key)}[\"']?" for key in path)
    own = re.compile(rf"[ \t]*\[[ \t]*{keys}[ \t]*[.\]]")
    headings = [at for at, line in enumerate(lines) if _HEADING.match(line)]
    start = next((at for at in headings if own.match(lines[at])), None)
    if start is None:
        return None
    end = next((at for at in headings if at > start and not own.match(lines[at])), len(lines))
    while not lines[end - 1].strip() or lines[end - 1].lstrip().startswith("#"):
        end -= 1
    return start, end


def _shown(value: Any) -> str:
    if not isinstance(value, Mapping):
        return as_json(value)
    return f"{{ {', '.join(f'{_key(key)} = {_shown(one)}' for key, one in value.items())} }}"


def _key(text: str) -> str:
    return text if re.fullmatch("[A-Za-z0-9_-]+", text) else as_json(text)
