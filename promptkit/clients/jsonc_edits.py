"""
Changing one member of a JSON text, with everything else left byte for byte.

Comments and last commas may be in it. `json` reads the text with those blanked, and tells where values end.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from promptkit.files.writing import FileRefusedError, check, newline_of

_BLANKS: Final = r"[ \t\r\n]*"
_STRING: Final = r'"(?:[^"\\]|\\.)*"'
_COMMENT: Final = r"//[^\r\n]*|/\*.*?\*/"

#: Strings, and comments, which are blanked. What has no end takes all that follows, so nothing is read twice.
_COMMENTS: Final = re.compile(rf'{_STRING}|(?P<blanked>{_COMMENT})|["/].*', re.DOTALL)

#: Strings, and last commas, which are blanked, in a text without comments. A comma right after ``{``, ``[``
#: or another comma is a mistake, not a last comma: `json` reports it.
_LAST_COMMAS: Final = re.compile(
    rf'{_STRING}|[{{\[,]{_BLANKS},|(?P<blanked>,)(?={_BLANKS}[}}\]])|".*', re.DOTALL
)

#: The blanks between two tokens, and a comma or a colon among them.
_GAP: Final = re.compile(rf"{_BLANKS}[,:]?{_BLANKS}")
_COMMA: Final = re.compile(rf"{_BLANKS},")

#: The comments behind a place, with the blanks before each: those that begin on its line, or all.
_COMMENTS_OF_LINE: Final = re.compile(rf"(?:[ \t]*(?:{_COMMENT}))*", re.DOTALL)
_COMMENTS_BEHIND: Final = re.compile(rf"(?:{_BLANKS}(?:{_COMMENT}))*", re.DOTALL)

_decode: Final = json.JSONDecoder().raw_decode


class _Member(NamedTuple):
    """Where a member begins, where its value is, and where the comma behind it ends; 0 if there is none."""

    start: int
    value: int
    end: int
    comma: int


class _Object(NamedTuple):
    """Where an object begins and ends, and its members by name."""

    start: int
    end: int
    members: Mapping[str, _Member]


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says; an empty object for an empty text.

    Raises:
        FileRefusedError: If it is no JSON object, also with comments and last commas.
    """
    if not text.strip():
        return {}
    plain = _blanked(_LAST_COMMAS, _blanked(_COMMENTS, text))
    try:
        data: dict[str, Any] = json.loads(
            plain, object_pairs_hook=_object_of, parse_constant=_refuse_constant
        )
    except json.JSONDecodeError as error:
        msg = f"this is not JSON: {error.msg}"
        raise FileRefusedError(msg, error.lineno, error.colno) from None
    except ValueError:  # Python converts no integer of more than 4,300 digits
        msg = "it has a number with too many digits to be read"
        raise FileRefusedError(msg) from None
    except RecursionError:
        msg = "it is nested too deeply to be read"
        raise FileRefusedError(msg) from None
    check(isinstance(data, dict), "it holds no object, so that a server has no place in it")
    return data


def put(text: str, path: Sequence[str], value: Any) -> str:
    """
    Return a text with a member changed, added behind the others, or taken out.

    Args:
        text:
            What `read` takes.

        path:
            The names that lead to the member. Objects on the way are made.

        value:
            What the member is set to; None if it is taken out.
    """
    if not text.strip():
        return f"{json.dumps(_nested(path, value), indent=2, ensure_ascii=False)}\n"
    bare = _blanked(_COMMENTS, text)
    plain = _blanked(_LAST_COMMAS, bare)
    holder = _object_at(plain, bare, plain.index("{"))
    unit = _unit(text, holder)
    for depth, name in enumerate(path, 1):
        if name not in holder.members:
            return _with_new(text, holder, name, _nested(path[depth:], value), unit)
        member = holder.members[name]
        if depth < len(path):
            holder = _object_at(plain, bare, member.value)
    if value is None:
        return _without(text, bare, holder, member)
    shown = _dumped(value, text, _indent_at(text, member.start), unit)
    return f"{text[: member.value]}{shown}{text[member.end :]}"


def _object_of(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. One with the same name twice says nothing that all programs agree on."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        msg = f"it has {twice!r} twice in one object: take one of them out"
        raise FileRefusedError(msg)
    return found


def _nested(path: Sequence[str], value: Any) -> Any:
    """A value in objects, one for each name of a path."""
    for name in reversed(path):
        value = {name: value}
    return value


def _refuse_constant(name: str) -> None:
    msg = f"this is not JSON: {name} is no value"
    raise FileRefusedError(msg)


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """A text with blanks in place of what a pattern finds, so that every place stays the same."""
    return pattern.sub(lambda it: re.sub(r"[^\r\n]", " ", it[0]) if it["blanked"] else it[0], text)


def _object_at(plain: str, bare: str, start: int) -> _Object:
    """The object that begins at a place, in a text without last commas; *bare* still has these."""
    members: dict[str, _Member] = {}
    at = _behind_gap(plain, start + 1)
    while plain[at] != "}":
        name, end = _decode(plain, at)
        value = _behind_gap(plain, end)
        _, end = _decode(plain, value)
        comma = _COMMA.match(bare, end)
        members[name] = _Member(at, value, end, comma.end() if comma else 0)
        at = _behind_gap(plain, end)
    return _Object(start, at, members)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    found = pattern.match(text, start)
    return found.end() if found else start


#: Where the next token is, in a text without comments, behind blanks and a comma or a colon.
_behind_gap: Final = partial(_end_of, _GAP)


def _with_new(text: str, holder: _Object, name: str, value: Any, unit: str) -> str:
    """Put a new member behind the others, and behind the comments on the line of the last one."""
    newline, outer = newline_of(text), _indent_at(text, holder.start)
    indent = [outer + unit, *_indents(text, holder)][-1]
    comma = last_comma = ""
    if holder.members:
        *_, last = holder.members.values()
        end, place = last.end, _end_of(_COMMENTS_OF_LINE, text, last.comma or last.end)
        comma, last_comma = ("", ",") if last.comma else (",", "")
    else:
        end = place = _end_of(_COMMENTS_BEHIND, text, holder.start + 1)
    shown = f"{newline}{indent}{json.dumps(name)}: {_dumped(value, text, indent, unit)}{last_comma}"
    closing = "" if "\n" in text[place : holder.end] else f"{newline}{outer}"
    return f"{text[:end]}{comma}{text[end:place]}{shown}{closing}{text[place:]}"


def _without(text: str, bare: str, holder: _Object, member: _Member) -> str:
    """Take a member out, with the blanks before it and its comma."""
    start, end = len(text[: member.start].rstrip()), member.comma or member.end
    before = [one for one in holder.members.values() if one.start < member.start]
    if len(holder.members) == 1 and not text[end : holder.end].strip():
        end = holder.end
    gap = text[end : len(text) - len(text[end:].lstrip())]
    if bare[start - 1].isspace() and "\n" in text[start : member.start] and "\n" not in gap:
        start = text.index("\n", start) + 1  # what follows is no part of the comment
    head = text[:start]
    if before and not member.comma:  # the one before is the last now
        head = head[: before[-1].comma - 1] + head[before[-1].comma :]
    return head + text[end:]


def _dumped(value: Any, text: str, indent: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline_of(text)}{indent}".join(lines)


def _unit(text: str, root: _Object) -> str:
    """How far one level is indented: as the first member of the outermost object on a line of its own."""
    return next(_indents(text, root), "") or "  "


def _indents(text: str, holder: _Object) -> Iterator[str]:
    """Yield the blanks before each member that is the first on its line."""
    end = holder.start + 1
    for member in holder.members.values():
        _, newline, before = text[end : member.start].rpartition("\n")
        if newline and not before.strip():
            yield before
        end = member.end


def _indent_at(text: str, place: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]
