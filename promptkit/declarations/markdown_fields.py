"""
The front matter of a Markdown prompt: YAML in which every plain value is the text that is written.

YAML would read ``1.10`` as a number, ``2026-01-31`` as a date and ``no`` as False, and reject ``Note: this``.
"""

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from typing import Any, Final, TypeAlias

from msgspec import Struct

from promptkit.errors.diagnostics import Location

#: Limit of the front matter, in characters.
_MAX_CHARACTERS: Final = 64 * 1024

_KEY: Final = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'#\[\]{}&*!|>%@`,:-][^:\n]*?)[ \t]*:(?=[ \t]|$)"

#: A line with a value: the part before the value, and the value.
_LINE: Final = re.compile(rf"([ \t]*(?:-[ \t]+|{_KEY}[ \t]+))(\S.*?)[ \t]*$")

_QUOTED: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'")
_BLOCK: Final = re.compile(r"[|>][-+0-9]*")

#: The value of a field: text, or fields in a list or by key.
Value: TypeAlias = "str | list[Field] | dict[str, Field]"


class FieldError(Exception):
    """
    An error in the front matter.

    Args:
        message:
            The problem.

        hint:
            How to fix it.

        location:
            Where.
    """

    def __init__(self, message: str, hint: str, location: Location) -> None:
        super().__init__(message)
        self.hint, self.location = hint, location


class Field(Struct, frozen=True):
    """
    A value in the front matter.

    Args:
        value:
            Text, a list, or a mapping.

        location:
            Its location in the file; for a value in a mapping, that of its key.
    """

    value: Value
    location: Location

    def text(self, name: str) -> str:
        """Return the value as text. Raises FieldError if it is a list or a mapping."""
        if isinstance(self.value, str):
            return self.value
        msg = f"{name} must be text, not {'a list' if isinstance(self.value, list) else 'a mapping'}"
        raise FieldError(msg, "write it on one line", self.location)

    def texts(self, name: str) -> list[str]:
        """Return the value as a list of texts; a single text is split at commas."""
        if isinstance(self.value, str):
            return [text.strip() for text in self.value.split(",") if text.strip()]
        if isinstance(self.value, list):
            return [field.text(f"an item of {name}") for field in self.value]
        msg = f"{name} must be a list, not a mapping"
        raise FieldError(msg, f"write {name}: [first, second]", self.location)

    def fields(self, name: str) -> Mapping[str, "Field"]:
        """Return the value as a mapping; an empty value has no fields."""
        if isinstance(self.value, dict):
            return self.value
        if self.value == "":
            return {}
        msg = f"{name} must be a mapping, not {'a list' if isinstance(self.value, list) else 'text'}"
        raise FieldError(msg, "write an indented line 'key: value' for each entry", self.location)

    def flag(self, name: str) -> bool:
        """Return the value as True or False."""
        text = self.text(name)
        if text in ("true", "false"):
            return text == "true"
        msg = f"{name} must be true or false, not {text!r}"
        raise FieldError(msg, "write true or false", self.location)


def read_fields(text: str, file: str) -> dict[str, Field]:
    """
    Parse a front matter.

    Args:
        text:
            The lines between the hyphens.

        file:
            The file, in which they start at line 2.

    Raises:
        FieldError: If it is not YAML, is too long, or has an anchor, an alias, a tag or a key twice.
    """
    if len(text) > _MAX_CHARACTERS:
        msg = f"the front matter has {len(text):,} characters: the limit is {_MAX_CHARACTERS:,}"
        raise FieldError(msg, "move long text below it", Location(file, 1))
    from ruamel.yaml import YAML  # slow to import, and most servers have no Markdown prompts

    reader = YAML(typ="safe", pure=True)
    source = "\n".join(_with_quotes(text.split("\n")))
    try:
        for event in reader.parse(StringIO(source)):
            _check_event(event, file)
        root = reader.compose(StringIO(source))
    except FieldError:
        raise
    except Exception as error:  # noqa: BLE001 (the parser raises many types)
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or str(error) or "it is nested too deeply"
        location = Location(file, mark.line + 2 if mark else 1)
        hint = "write one 'key: value' per line; indent the keys of one mapping by the same number of blanks"
        msg = f"the front matter is not YAML: {reason}"
        raise FieldError(msg, hint, location) from None
    fields = {} if root is None else _convert(root, file).value
    if not isinstance(fields, dict):
        msg = "the front matter is not a mapping"
        raise FieldError(msg, "write one 'key: value' per line", Location(file, 2))
    return fields


def _with_quotes(lines: list[str]) -> Iterator[str]:
    """Yield the lines with quotes around each value that YAML could read as anything but the same text."""
    block: int | None = None  # the indentation of the key of a block of text
    for position, line in enumerate(lines):
        indentation = len(line) - len(line.lstrip(" "))
        if block is not None and (not line.strip() or indentation > block):
            yield line
            continue
        block = None
        match = _LINE.match(line)
        following = lines[position + 1] if position + 1 < len(lines) else ""
        continues = len(following) - len(following.lstrip(" ")) > indentation and following.strip()
        if match is None or _QUOTED.fullmatch(match[2]) or (continues and not _LINE.match(following)):
            yield line
        elif _BLOCK.fullmatch(match[2]):
            block = indentation
            yield line
        elif _is_nested_item(match) or _is_collection(match[2]):
            yield line
        else:
            quoted = match[2].replace("'", "''")
            yield f"{match[1]}'{quoted}'"


def _is_nested_item(match: re.Match[str]) -> bool:
    """Return whether a list item is a mapping, as in ``- key: value``."""
    return match[1].lstrip().startswith("-") and re.match(_KEY, match[2]) is not None


def _is_collection(text: str) -> bool:
    """Return whether a text is a list of YAML on one line, or is written like a mapping."""
    if text[0] == "{":
        return text[1:2] != "{" and text.endswith("}")
    if text[0] != "[":
        return False
    from ruamel.yaml import YAML  # imported already

    try:
        root = YAML(typ="safe", pure=True).compose(StringIO(text))
    except Exception:  # noqa: BLE001 (the parser raises many types)
        return False
    return root is not None and root.id != "scalar"


def _check_event(event: Any, file: str) -> None:
    for kind in ("anchor", "tag"):
        if getattr(event, kind, None) is not None:
            msg = f"the front matter has {'an anchor or alias' if kind == 'anchor' else 'a tag'}"
            raise FieldError(msg, "write out the value", Location(file, event.start_mark.line + 2))


def _convert(node: Any, file: str) -> Field:
    location = Location(file, node.start_mark.line + 2, node.start_mark.column + 1)
    if node.id == "scalar":
        return Field(node.value, location)
    if node.id == "sequence":
        return Field([_convert(item, file) for item in node.value], location)
    fields = dict[str, Field]()
    for key, value in node.value:
        name, start = key.value, key.start_mark
        place = Location(file, start.line + 2, start.column + 1, key.end_mark.column + 1)
        if not isinstance(name, str) or name in fields:
            msg = "a key must be text" if not isinstance(name, str) else f"the key {name!r} occurs twice"
            raise FieldError(msg, "keep one of them" if name in fields else "write a name", place)
        fields[name] = Field(_convert(value, file).value, place)
    return Field(fields, location)
