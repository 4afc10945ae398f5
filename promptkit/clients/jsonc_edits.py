"""
Edits that change one member in a JSON file, and preserve every other byte.

The text can contain comments and trailing commas. They are replaced with spaces in a copy, so that the `json`
module can parse the copy and find where values end.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from promptkit.files.edits import FileEditError, check, newline_of

_WHITESPACE: Final = r"[ \t\r\n]*"
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_COMMENT: Final = r"//[^\r\n]*|/\*.*?\*/"

#: Strings, and the comments to blank out. An unterminated string or comment matches up to the end of the
#: text, so that no part is scanned twice.
_COMMENTS: Final = re.compile(rf'{_STRING}|(?P<blanked>{_COMMENT})|["/].*', re.DOTALL)

#: In text without comments: strings, and the trailing commas to blank out. A comma right after ``{``, ``[``
#: or another comma is not a trailing comma but an error, which `json` reports.
_TRAILING_COMMAS: Final = re.compile(
    rf'{_STRING}|[{{\[,]{_WHITESPACE},|(?P<blanked>,)(?={_WHITESPACE}[}}\]])|".*', re.DOTALL
)

#: The whitespace between two tokens, with a comma or a colon.
_GAP: Final = re.compile(rf"{_WHITESPACE}[,:]?{_WHITESPACE}")
_COMMA: Final = re.compile(rf"{_WHITESPACE},")

#: The comments after a position, with the whitespace before each: on the same line only, or all of them.
_COMMENTS_OF_LINE: Final = re.compile(rf"(?:[ \t]*(?:{_COMMENT}))*", re.DOTALL)
_COMMENTS_AFTER: Final = re.compile(rf"(?:{_WHITESPACE}(?:{_COMMENT}))*", re.DOTALL)

_decode: Final = json.JSONDecoder().raw_decode


class _Member(NamedTuple):
    """The start of a member, the start and end of its value, and the end of its comma (0 if it has none)."""

    start: int
    value: int
    end: int
    comma: int


class _Object(NamedTuple):
    """The positions of an object's braces, and its members by name."""

    start: int
    end: int
    members: Mapping[str, _Member]


def read(text: str) -> dict[str, Any]:
    """
    Parse *text*, or return an empty object if it is empty.

    Raises:
        FileEditError: If *text* is not a JSON object, apart from comments and trailing commas.
    """
    if not text.strip():
        return {}
    plain = _blank_out(_TRAILING_COMMAS, _blank_out(_COMMENTS, text))
    try:
        data: dict[str, Any] = json.loads(plain)
    except ValueError as error:  # also for an integer with more than 4,300 digits
        msg = f"it is not valid JSON: {getattr(error, 'msg', error)}"
        raise FileEditError(msg, getattr(error, "lineno", 0), getattr(error, "colno", 0)) from None
    except RecursionError:
        msg = "it is nested too deeply"
        raise FileEditError(msg) from None
    check(isinstance(data, dict), "it is not an object, so a server cannot be added")
    return data


def set_entry(text: str, path: Sequence[str], value: Any) -> str:
    """
    Return *text* with a member changed, appended or removed.

    Args:
        text:
            Text that `read` accepts.

        path:
            The names that lead to the member. Missing objects along the path are created.

        value:
            The new value, or None to remove the member.
    """
    if not text.strip():
        return f"{json.dumps(_nest(path, value), indent=2, ensure_ascii=False)}\n"
    bare = _blank_out(_COMMENTS, text)
    plain = _blank_out(_TRAILING_COMMAS, bare)
    container = _parse_object(plain, bare, plain.index("{"))
    unit = next(_indents(text, container), "") or "  "  # the indentation of the first member on its own line
    for depth, name in enumerate(path, 1):
        if name not in container.members:
            return _append_member(text, container, name, _nest(path[depth:], value), unit)
        member = container.members[name]
        if depth < len(path):
            container = _parse_object(plain, bare, member.value)
    if value is None:
        return _remove_member(text, bare, container, member)
    dumped = _dump(value, text, _indent_at(text, member.start), unit)
    return f"{text[: member.value]}{dumped}{text[member.end :]}"


def _nest(path: Sequence[str], value: Any) -> Any:
    """Wrap a value in nested objects, one for each name in a path."""
    for name in reversed(path):
        value = {name: value}
    return value


def _blank_out(pattern: re.Pattern[str], text: str) -> str:
    """Replace the ``blanked`` matches of a pattern with spaces, preserving all positions."""
    return pattern.sub(
        lambda match: re.sub(r"[^\r\n]", " ", match[0]) if match["blanked"] else match[0], text
    )


def _parse_object(plain: str, bare: str, start: int) -> _Object:
    """Parse the object at *start* in *plain*, which is *bare* without trailing commas."""
    members: dict[str, _Member] = {}
    position = _after_gap(plain, start + 1)
    while plain[position] != "}":
        name, end = _decode(plain, position)
        value = _after_gap(plain, end)
        _, end = _decode(plain, value)
        comma = _COMMA.match(bare, end)
        members[name] = _Member(position, value, end, comma.end() if comma else 0)
        position = _after_gap(plain, end)
    return _Object(start, position, members)


def _match_end(pattern: re.Pattern[str], text: str, start: int) -> int:
    match = pattern.match(text, start)
    return match.end() if match else start


#: Return the position of the next token in text without comments, after whitespace and a comma or a colon.
_after_gap: Final = partial(_match_end, _GAP)


def _append_member(text: str, container: _Object, name: str, value: Any, unit: str) -> str:
    """Append a new member after the last one and the comments on its line."""
    newline, outer = newline_of(text), _indent_at(text, container.start)
    indent = [outer + unit, *_indents(text, container)][-1]
    comma = trailing_comma = ""
    if container.members:
        *_, last = container.members.values()
        end, position = last.end, _match_end(_COMMENTS_OF_LINE, text, last.comma or last.end)
        comma, trailing_comma = ("", ",") if last.comma else (",", "")
    else:
        end = position = _match_end(_COMMENTS_AFTER, text, container.start + 1)
    member = f"{newline}{indent}{json.dumps(name)}: {_dump(value, text, indent, unit)}{trailing_comma}"
    closing = "" if "\n" in text[position : container.end] else f"{newline}{outer}"
    return f"{text[:end]}{comma}{text[end:position]}{member}{closing}{text[position:]}"


def _remove_member(text: str, bare: str, container: _Object, member: _Member) -> str:
    """Remove a member, its comma, and the whitespace before it."""
    start, end = len(text[: member.start].rstrip()), member.comma or member.end
    before = [sibling for sibling in container.members.values() if sibling.start < member.start]
    if len(container.members) == 1 and not text[end : container.end].strip():
        end = container.end
    gap = text[end : len(text) - len(text[end:].lstrip())]
    if bare[start - 1].isspace() and "\n" in text[start : member.start] and "\n" not in gap:
        start = text.index("\n", start) + 1  # the following text must not become part of the comment
    head = text[:start]
    if before and not member.comma:  # the previous member is now the last one
        head = head[: before[-1].comma - 1] + head[before[-1].comma :]
    return head + text[end:]


def _dump(value: Any, text: str, indent: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline_of(text)}{indent}".join(lines)


def _indents(text: str, container: _Object) -> Iterator[str]:
    """Yield the indentation of each member that is the first on its line."""
    end = container.start + 1
    for member in container.members.values():
        _, newline, before = text[end : member.start].rpartition("\n")
        if newline and not before.strip():
            yield before
        end = member.end


def _indent_at(text: str, position: int) -> str:
    """Return the indentation of the line at a position."""
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]
