"""
Changing one member of a JSON text, with everything else left byte for byte.

Comments and last commas may be in it. What is JSON, and what it says, is left to `json`, which reads the
text with those blanked. The tokens tell where to write.
"""

import itertools
import json
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, NoReturn, TypeAlias

from promptkit.cli.clients.texts import DocumentError, nested, newline_of

__all__ = ["put", "read", "take"]

#: What has no end takes all that follows, so that nothing is looked at twice.
_TOKEN: Final = re.compile(
    r"""(?P<comment>//[^\r\n]*|/\*.*?(?:\*/|\Z))
      | (?P<blank>[ \t\r\n]+)
      | (?P<token>"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z) | [{}\[\],:] | [^\s{}\[\],:"/]+ | .)""",
    re.DOTALL | re.VERBOSE,
)
#: Where a text is replaced, and by what.
_Edit: TypeAlias = tuple[int, int, str]

_OPENING: Final = ("{", "[")
_CLOSING: Final = ("}", "]")


class _Member(NamedTuple):
    """Where a member begins, where its value is, and where the comma behind it ends; 0 if there is none."""

    name: str
    start: int
    value: int
    end: int
    comma: int


class _Object(NamedTuple):
    start: int
    end: int
    members: list[_Member]

    def member(self, name: str) -> _Member:
        return next(member for member in self.members if member.name == name)


def read(text: str) -> dict[str, Any]:
    """
    Return what a text says; an empty object for an empty text.

    Raises:
        DocumentError: If it is no JSON object, also with comments and last commas.
    """
    if not text.strip():
        return {}
    try:
        data = json.loads(_blanked(text), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        msg = f"this is not JSON: {error.msg}"
        raise DocumentError(msg, error.lineno, error.colno) from None
    if not isinstance(data, dict):
        msg = "it holds no object, so that a server has no place in it"
        raise DocumentError(msg)
    return data


def put(text: str, path: tuple[str, ...], value: Any) -> str:
    """
    Return a text with a member set, which is added behind the others if it is new.

    Args:
        text:
            What `read` takes.

        path:
            The names that lead to the member. Objects on the way are made.

        value:
            What it is set to.
    """
    if not text.strip():
        return f"{json.dumps(nested(path, value), indent=2, ensure_ascii=False)}\n"
    at = start = next(_tokens(text, 0)).start()
    end, unit = 0, _unit(text, _object_at(text, at))
    for depth, name in enumerate(path):
        holder = _object_at(text, at)
        if name not in [member.name for member in holder.members]:
            return _applied(text, _insertion(text, holder, name, nested(path[depth + 1 :], value), unit))
        _, start, at, end, _ = holder.member(name)
    return _applied(text, [(at, end, _dumped(value, text, _indent_at(text, start), unit))])


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a member.

    Args:
        text:
            What `read` takes.

        path:
            The names that lead to the member, which exists.
    """
    *above, name = path
    holder = _object_at(text, next(_tokens(text, 0)).start())
    for key in above:
        holder = _object_at(text, holder.member(key).value)
    return _applied(text, _removal(text, holder, holder.member(name)))


def _refuse_constant(name: str) -> NoReturn:
    msg = f"this is not JSON: {name} is no value"
    raise DocumentError(msg)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. One with the same name twice says nothing that all programs agree on."""
    found = dict(pairs)
    if len(found) < len(pairs):
        ((twice, _),) = Counter(name for name, _ in pairs).most_common(1)
        msg = f"it has {twice!r} twice in one object: take one of them out"
        raise DocumentError(msg)
    return found


def _blanked(text: str) -> str:
    """The text with blanks in place of comments and last commas, so that every place stays the same."""
    comments = (match for match in _TOKEN.finditer(text) if match.lastgroup == "comment")
    places = [
        one.span() for one in comments if one[0][1] == "/" or (one[0].endswith("*/") and len(one[0]) > 3)
    ]
    tokens = list(_tokens(text, 0))
    for this, following in itertools.pairwise(tokens):
        if this[0] == "," and following[0] in _CLOSING:
            places.append(this.span())
    characters = list(text)
    for start, end in places:
        characters[start:end] = (c if c in "\r\n" else " " for c in text[start:end])
    # A comma that nothing stands before is none that may be left out.
    return "".join(characters) if not _has_stray_comma(tokens) else text


def _has_stray_comma(tokens: list[re.Match[str]]) -> bool:
    pairs = itertools.pairwise(tokens)
    return any(this[0] in (*_OPENING, ",") and following[0] == "," for this, following in pairs)


def _tokens(text: str, start: int) -> Iterator[re.Match[str]]:
    return (match for match in _TOKEN.finditer(text, start) if match.lastgroup == "token")


def _object_at(text: str, start: int) -> _Object:
    """The object that begins at a place of a text that is JSON."""
    members: list[_Member] = []
    tokens = _tokens(text, start + 1)
    token = next(tokens)
    while token[0] != "}":
        name, _, value = token, next(tokens), next(tokens)
        end = _end_of(value, tokens)
        token = next(tokens)
        comma = token.end() if token[0] == "," else 0
        members.append(_Member(json.loads(name[0]), name.start(), value.start(), end, comma))
        token = next(tokens) if comma else token
    return _Object(start, token.end(), members)


def _end_of(value: re.Match[str], tokens: Iterator[re.Match[str]]) -> int:
    """Where the value ends that a token begins."""
    token, depth = value, int(value[0] in _OPENING)
    while depth:
        token = next(tokens)
        depth += (token[0] in _OPENING) - (token[0] in _CLOSING)
    return token.end()


def _insertion(text: str, holder: _Object, name: str, value: Any, unit: str) -> list[_Edit]:
    """What puts a new member behind the others, and behind the comments on the line of the last one."""
    newline, close, outer = newline_of(text), holder.end - 1, _indent_at(text, holder.start)
    on_own_lines = [member for member in holder.members if not _line_before(text, member.start).strip()]
    indent = _line_before(text, on_own_lines[-1].start) if on_own_lines else outer + unit
    shown = f"{newline}{indent}{json.dumps(name)}: {_dumped(value, text, indent, unit)}"
    edits: list[_Edit] = []
    if not holder.members:
        place = _behind_comments(text, holder.start + 1, close, same_line=False)
    else:
        last = holder.members[-1]
        place = _behind_comments(text, last.comma or last.end, close, same_line=True)
        if last.comma:
            shown += ","
        else:
            edits.append((last.end, last.end, ","))
    closing = "" if "\n" in text[place:close] else f"{newline}{outer}"
    return [*edits, (place, place, shown + closing)]


def _removal(text: str, holder: _Object, member: _Member) -> list[_Edit]:
    """What takes a member out, with the blanks before it and its comma."""
    start = len(text[: member.start].rstrip(" \t\r\n"))
    end = member.comma or member.end
    place = holder.members.index(member)
    if len(holder.members) == 1 and not text[end : holder.end - 1].strip():
        end = holder.end - 1
    if _ends_line_comment(text, start) and "\n" not in text[end : _next_token(text, end)]:
        start = text.index("\n", start) + 1  # what follows is no part of the comment
    edits = [(start, end, "")]
    if not member.comma and place:  # the one before is the last now
        comma = holder.members[place - 1].comma
        edits.insert(0, (comma - 1, comma, ""))
    return edits


def _behind_comments(text: str, start: int, end: int, *, same_line: bool) -> int:
    """Where the comments behind a place end: all of them, or those that begin on its line."""
    place = start
    for match in _TOKEN.finditer(text, start, end):
        if match.lastgroup == "comment":
            place = match.end()
        elif match.lastgroup == "token" or (same_line and "\n" in match[0]):
            break
    return place


def _ends_line_comment(text: str, place: int) -> bool:
    return any(match.end() == place and match[0].startswith("//") for match in _TOKEN.finditer(text))


def _next_token(text: str, place: int) -> int:
    return next(
        (match.start() for match in _TOKEN.finditer(text, place) if match.lastgroup != "blank"), place
    )


def _applied(text: str, edits: list[_Edit]) -> str:
    # They are in the order of the text. The last comes first, so that the places before it stay.
    for start, end, new in reversed(edits):
        text = text[:start] + new + text[end:]
    return text


def _dumped(value: Any, text: str, indent: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline_of(text)}{indent}".join(lines)


def _unit(text: str, root: _Object) -> str:
    """How far one level is indented: as the first member of the outermost object on a line of its own."""
    before = (_line_before(text, member.start) for member in root.members)
    return next((line for line in before if not line.strip()), "") or "  "


def _line_before(text: str, place: int) -> str:
    return text[text.rfind("\n", 0, place) + 1 : place]


def _indent_at(text: str, place: int) -> str:
    """The blanks that the line of a place begins with."""
    line = _line_before(text, place)
    return line[: len(line) - len(line.lstrip(" \t"))]
