"""
Parsing of front matter in Markdown prompts: YAML in which every plain value is text, exactly as written.

Standard YAML would read ``1.10`` as a number, ``2026-01-31`` as a date and ``no`` as False, and would reject
``Note: this``. `promptkit.declarations.markdown_prompts` defines the keys.
"""

import re
from collections.abc import Iterator, Mapping
from io import StringIO
from itertools import pairwise
from typing import Any, ClassVar, Final, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.declarations.skill_frontmatter import (
    MAX_FRONT_MATTER,
    describe_yaml_error,
    find_disallowed_yaml,
)
from promptkit.errors.diagnostics import Location
from promptkit.errors.exceptions import shortened
from promptkit.errors.rules import Rule

#: A key with its colon. Possessive quantifiers keep the time linear.
_KEY: Final = r"(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s\"'#\[\]{}&*!|>%@`,:-][^:\n]*+)[ \t]*:(?=[ \t]|$)"

#: A line with a value: the part before the value, and the value.
_LINE: Final = re.compile(rf"([ \t]*+(?:-[ \t]++|{_KEY}[ \t]++))(\S.*)")

_QUOTED: Final = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^']|'')*'")
_BLOCK: Final = re.compile(r"[|>][-+0-9]*")

#: A value with more brackets than this is read as text, because parsing brackets takes quadratic time.
_MAX_BRACKETS: Final = 100

#: The value of a field: text, a list of fields, or fields keyed by name.
Value: TypeAlias = "str | list[Field] | dict[str, Field]"

_KINDS: Final[Mapping[type, str]] = {str: "text", list: "a list", dict: "a mapping"}


class MarkdownError(Exception):
    """
    An error in a Markdown prompt; by default, in its front matter.

    Args:
        message:
            The problem.

        hint:
            How to fix the problem.

        location:
            The location of the problem.

    Attributes:
        rule:
            The rule that the diagnostic belongs to.
    """

    rule: ClassVar[Rule] = Rule.BAD_FRONT_MATTER

    def __init__(self, message: str, hint: str, location: Location) -> None:
        super().__init__(message)
        self.hint, self.location = hint, location

    @classmethod
    def of(cls, error: Exception, hint: str, location: Location) -> "MarkdownError":
        """Convert another error. A hint after a colon in its message takes precedence over *hint*."""
        message, _, own_hint = str(error).partition(": ")
        return cls(message, own_hint or hint, location)


class Field(Struct, frozen=True):
    """
    A value in the front matter.

    Args:
        value:
            Text, a list, or a mapping.

        location:
            The location of the value in the file; for a value in a mapping, the location of its key.
    """

    value: Value
    location: Location

    def text(self, name: str) -> str:
        """Return the value as text. Raises MarkdownError if it is a list or a mapping."""
        if isinstance(self.value, str):
            return self.value
        raise self._error(name, "text", "write it on one line")

    def texts(self, name: str) -> list[str]:
        """Return the value as a list of strings; a single string is split at commas."""
        if isinstance(self.value, str):
            return [text.strip() for text in self.value.split(",") if text.strip()]
        if isinstance(self.value, list):
            return [field.text(f"an item of {name}") for field in self.value]
        raise self._error(name, "a list", f"write {name}: [first, second]")

    def fields(self, name: str) -> Mapping[str, "Field"]:
        """Return the value as a mapping, which is empty if the value is empty."""
        if isinstance(self.value, dict):
            return self.value
        if self.value == "":
            return {}
        hint = "write an indented line 'key: value' for each entry"
        raise self._error(name, "a mapping", hint)

    def flag(self, name: str) -> bool:
        """Return the value as True or False."""
        if self.value in ("true", "false"):
            return self.value == "true"
        raise self._error(name, "true or false", "write true or false")

    def wire_text(self) -> str:
        """Return the value as a client sends it: text, or a list or mapping as JSON."""
        return self.value if isinstance(self.value, str) else msgspec.json.encode(self._json()).decode()

    def _json(self) -> Any:
        if isinstance(self.value, dict):
            return {key: field._json() for key, field in self.value.items()}  # noqa: SLF001 (its own kind)
        return self.value if isinstance(self.value, str) else [field._json() for field in self.value]  # noqa: SLF001

    def _error(self, name: str, expected: str, hint: str) -> MarkdownError:
        value = repr(self.value) if isinstance(self.value, str) and self.value else _KINDS[type(self.value)]
        return MarkdownError(f"{name} must be {expected}, not {shortened(value)}", hint, self.location)


def read_fields(text: str, file: str) -> dict[str, Field]:
    """
    Parse front matter, and return its fields, keyed by name.

    Args:
        text:
            The lines between the two lines of hyphens.

        file:
            The path of the file. The front matter starts at line 2.

    Raises:
        MarkdownError: If *text* is not YAML, is too long, or has an anchor, an alias, a tag or a duplicate
            key.
    """
    if len(text) > MAX_FRONT_MATTER:
        msg = f"the front matter has {len(text):,} characters: the limit is {MAX_FRONT_MATTER:,}"
        raise MarkdownError(msg, "move long text below it", Location(file, 1))
    from ruamel.yaml import YAML  # slow to import, and most servers have no Markdown prompts

    reader = YAML(typ="safe", pure=True)
    source = "\n".join(_quote_values(text.split("\n")))
    try:
        disallowed = next(find_disallowed_yaml(reader.parse(StringIO(source))), None)
        root = None if disallowed else reader.compose(StringIO(source))
        fields = {} if root is None else _convert(root, file).value
    except MarkdownError:
        raise
    except Exception as error:  # noqa: BLE001 (the parser raises many types)
        reason, line = describe_yaml_error(error)
        hint = "write one 'key: value' per line; indent the keys of one mapping by the same number of spaces"
        msg = f"the front matter is not valid YAML: {reason}"
        raise MarkdownError(msg, hint, Location(file, line)) from None
    if disallowed is not None:
        msg = f"the front matter has {disallowed[0]}"
        raise MarkdownError(msg, "write out its value", Location(file, disallowed[1]))
    if not isinstance(fields, dict):
        msg = "the front matter must be a mapping"
        raise MarkdownError(msg, "write one 'key: value' per line", Location(file, 2))
    return fields


def _quote_values(lines: list[str]) -> Iterator[str]:
    """Yield the lines with quotes around each plain one-line value, so that YAML reads the value as text."""
    block: int | None = None  # the indentation of a block scalar's key
    for line, following in pairwise([*lines, ""]):
        indentation = _indentation(line)
        if block is not None and (not line.strip() or indentation > block):
            yield line
            continue
        block = None
        match = _LINE.match(line.rstrip(" \t"))
        if match is None:
            yield line
        elif _BLOCK.fullmatch(match[2]):
            block = indentation
            yield line
        elif (
            (following.strip() and _indentation(following) > indentation and not _LINE.match(following))
            or _QUOTED.fullmatch(match[2])
            or (match[1].lstrip().startswith("-") and re.match(_KEY, match[2]))  # as in "- key: value"
            or _is_collection(match[2])
        ):
            yield line
        else:
            quoted = match[2].replace("'", "''")
            yield f"{match[1]}'{quoted}'"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _is_collection(text: str) -> bool:
    """Return whether *text* is a YAML list or mapping on one line."""
    if text[0] not in "[{" or text.count("[") + text.count("{") > _MAX_BRACKETS:
        return False
    if text[0] == "{":
        return text[1:2] != "{" and text.endswith("}")
    from ruamel.yaml import YAML  # imported already

    try:
        root = YAML(typ="safe", pure=True).compose(StringIO(text))
    except Exception:  # noqa: BLE001 (the parser raises many types)
        return False
    return root is not None and root.id != "scalar"


def _convert(node: Any, file: str) -> Field:
    location = Location(file, node.start_mark.line + 2, node.start_mark.column + 1)
    if node.id == "scalar":
        return Field(node.value, location)
    if node.id == "sequence":
        return Field([_convert(item, file) for item in node.value], location)
    fields = dict[str, Field]()
    for key, value in node.value:
        name, start = key.value, key.start_mark
        key_location = Location(file, start.line + 2, start.column + 1, key.end_mark.column + 1)
        if not isinstance(name, str) or name in fields:
            msg = "a key must be text" if not isinstance(name, str) else f"the key {name!r} occurs twice"
            raise MarkdownError(msg, "keep one of them" if name in fields else "write a name", key_location)
        fields[name] = Field(_convert(value, file).value, key_location)
    return Field(fields, location)
