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
from typing import Any, Final, NamedTuple, NoReturn

import attrs

from promptkit.cli.clients.errors import DocumentError
from promptkit.cli.clients.layout import nested, newline_of

__all__ = ["put", "read", "take"]

#: What has no end takes all that follows, so that nothing is looked at twice.
_TOKEN: Final = re.compile(
    r"""(?P<comment>//[^\r\n]*|/\*.*?(?:\*/|\Z))
      | (?P<blank>[ \t\r\n]+)
      | (?P<token>"(?:[^"\\]|\\(?:.|\Z))*(?:"|\Z) | [{}\[\],:] | [^\s{}\[\],:"/]+ | .)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING: Final = ("}", "]")


class _Token(NamedTuple):
    text: str
    start: int
    end: int


@attrs.define
class _Value:
    """Where a value stands; an object with its members."""

    start: int
    end: int = 0
    members: "list[_Member] | None" = None


@attrs.define
class _Member:
    """Where a member stands, and the comma behind it; 0 if there is none."""

    name: str
    start: int
    value: _Value
    comma: int = 0


class _Edit(NamedTuple):
    start: int
    end: int
    text: str


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

    Raises:
        DocumentError: If something on the way is no object.
    """
    if not text.strip():
        return f"{json.dumps(nested(path, value), indent=2, ensure_ascii=False)}\n"
    at, start = _tree(text), 0
    unit = _unit(text, at)
    for depth, name in enumerate(path):
        member = _find(at, name)
        if member is None:
            return _applied(text, _insertion(text, at, name, nested(path[depth + 1 :], value), unit))
        at, start = member.value, member.start
    shown = _dumped(value, text, _indent_at(text, start), unit)
    return _applied(text, [_Edit(at.start, at.end, shown)])


def take(text: str, path: tuple[str, ...]) -> str:
    """
    Return a text without a member.

    Args:
        text:
            What `read` takes.

        path:
            The names that lead to the member, which exists.

    Raises:
        DocumentError: If something on the way is no object.
    """
    *above, name = path
    holder = _tree(text)
    for key in above:
        holder = _existing(holder, key).value
    return _applied(text, _removal(text, holder, _existing(holder, name)))


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
    tokens = list(_tokens(text))
    for this, following in itertools.pairwise(tokens):
        if this.text == "," and following.text in _CLOSING:
            places.append((this.start, this.end))
    characters = list(text)
    for start, end in places:
        characters[start:end] = (c if c in "\r\n" else " " for c in text[start:end])
    # A comma that nothing stands before is none that may be left out.
    return "".join(characters) if not _has_stray_comma(tokens) else text


def _has_stray_comma(tokens: list[_Token]) -> bool:
    pairs = itertools.pairwise(tokens)
    return any(this.text in ("{", "[", ",") and following.text == "," for this, following in pairs)


def _tokens(text: str) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup == "token":
            yield _Token(match[0], match.start(), match.end())


def _tree(text: str) -> _Value:
    read(text)
    tokens = _tokens(text)
    return _value(next(tokens), tokens)


def _value(first: _Token, tokens: Iterator[_Token]) -> _Value:
    """The value that begins with a token. That the text is JSON is known before."""
    found = _Value(first.start, first.end)
    if first.text == "{":
        found.members = []
        for token in tokens:
            found.end = token.end
            if token.text == "}":
                break
            if token.text == ",":
                found.members[-1].comma = token.end
                continue
            next(tokens)  # the colon
            value = _value(next(tokens), tokens)
            found.members.append(_Member(json.loads(token.text), token.start, value))
    elif first.text == "[":
        depth = 1
        while depth:
            token = next(tokens)
            depth += (token.text in ("[", "{")) - (token.text in _CLOSING)
        found.end = token.end
    return found


def _find(at: _Value, name: str) -> _Member | None:
    if at.members is None:
        msg = f"{name!r} has no place in it, as what should hold it is no object"
        raise DocumentError(msg)
    return next((member for member in at.members if member.name == name), None)


def _existing(at: _Value, name: str) -> _Member:
    if (member := _find(at, name)) is None:
        msg = f"it has no {name!r}"
        raise DocumentError(msg)
    return member


def _insertion(text: str, at: _Value, name: str, value: Any, unit: str) -> list[_Edit]:
    """What puts a new member behind the others, and behind the comments on the line of the last one."""
    end = newline_of(text)
    outer = _indent_at(text, at.start)
    own_lines = [member for member in at.members or () if _indent_before(text, member.start) is not None]
    indent = _indent_at(text, own_lines[-1].start) if own_lines else outer + unit
    shown = f"{end}{indent}{json.dumps(name)}: {_dumped(value, text, indent, unit)}"
    if not at.members:
        place = _behind_comments(text, at.start + 1, at.end - 1, same_line=False)
        return [_Edit(place, place, shown + _closing(text, place, at.end - 1, end + outer))]
    last = at.members[-1]
    place = _behind_comments(text, last.comma or last.value.end, at.end - 1, same_line=True)
    shown += "," if last.comma else ""
    added = _Edit(place, place, shown + _closing(text, place, at.end - 1, end + outer))
    return [added] if last.comma else [_Edit(last.value.end, last.value.end, ","), added]


def _closing(text: str, place: int, close: int, line: str) -> str:
    """A new line for what closes the object, unless there is one."""
    return "" if "\n" in text[place:close] else line


def _removal(text: str, holder: _Value, member: _Member) -> list[_Edit]:
    """What takes a member out, with the blanks before it and its comma."""
    start = len(text[: member.start].rstrip(" \t\r\n"))
    end = member.comma or member.value.end
    members = holder.members or []
    place = members.index(member)
    if len(members) == 1 and not text[end : holder.end - 1].strip():
        end = holder.end - 1
    if _ends_line_comment(text, start) and "\n" not in text[end : _next_token(text, end)]:
        start = text.index("\n", start) + 1  # what follows is no part of the comment
    edits = [_Edit(start, end, "")]
    if not member.comma and place:  # the one before is the last now
        comma = members[place - 1].comma
        edits.insert(0, _Edit(comma - 1, comma, ""))
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
    for edit in reversed(edits):
        text = text[: edit.start] + edit.text + text[edit.end :]
    return text


def _dumped(value: Any, text: str, indent: str, unit: str) -> str:
    lines = json.dumps(value, indent=unit, ensure_ascii=False).split("\n")
    return f"{newline_of(text)}{indent}".join(lines)


def _unit(text: str, root: _Value) -> str:
    """How far one level is indented: as the first member of the outermost object on a line of its own."""
    for member in root.members or ():
        if (indent := _indent_before(text, member.start)) is not None:
            return indent or "  "
    return "  "


def _indent_before(text: str, place: int) -> str | None:
    """The blanks between the beginning of the line and a place; None if there is something else."""
    before = text[text.rfind("\n", 0, place) + 1 : place]
    return before if not before.strip(" \t") else None


def _indent_at(text: str, place: int) -> str:
    """The blanks that the line of a place begins with."""
    line = text[text.rfind("\n", 0, place) + 1 : place]
    return line[: len(line) - len(line.lstrip(" \t"))]
