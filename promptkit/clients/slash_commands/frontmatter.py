"""
Front matter of Markdown commands, parsed as leniently as clients do.

Clients accept fields that are not valid YAML, such as ``argument-hint: [issue] [priority]``. Therefore each
field is parsed separately.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from promptkit.clients import yaml_edits
from promptkit.clients.slash_commands.command import CommandSyntaxError, Loss, brief
from promptkit.files.writing import FileRefusedError

#: The text between two lines of hyphens, at the start of the file.
_BLOCK: Final = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)

#: The start of front matter: a field, after blank lines and comments. Other blocks are text.
_FIRST: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[\w-]+[ \t]*:(?:[ \t\n]|\Z)|\Z)")
_FIELD: Final = re.compile(r"([\w-]+)[ \t]*:(?:[ \t]+(.*))?$")


class CommandField(NamedTuple):
    """A field: its lines, the text after its name, and the number of its first line."""

    source: str
    text: str
    line: int

    @property
    def value(self) -> Any:
        """The value parsed as YAML; None if invalid. Parsing is slow, so read it only if needed."""
        try:
            return next(iter(yaml_edits.read(self.source).values()), None)
        except FileRefusedError:
            return None


class CommandFile(NamedTuple):
    """A file: its fields, its Markdown body, and the line number of the body."""

    fields: dict[str, CommandField]
    body: str
    line: int

    def get_text(self, key: str) -> str | None:
        """Return a field as text on one line, or None if it is missing or empty."""
        field = self.fields.get(key)
        if field is None:
            return None
        value = field.value
        return one_line(value if isinstance(value, str) else field.text) or None

    def losses(self, *known: str) -> Iterator[Loss]:
        """Yield a loss for each field that is not *known*."""
        for key, field in self.fields.items():
            if key not in known:
                yield Loss(f"the field {brief(key)!r} is not carried", field.line)


def one_line(text: str) -> str:
    """Return a text on one line, without invisible characters."""
    # YAML in JSON syntax can have an emoji as two escapes.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return " ".join("".join(character if character.isprintable() else " " for character in text).split())


def read_markdown(text: str) -> CommandFile:
    """
    Parse a Markdown file with front matter.

    Raises:
        CommandSyntaxError: If the file has no text after its front matter.
    """
    block = _BLOCK.match(text)
    if block is not None and _FIRST.match(block[1]) is None:
        block = None
    fields = {} if block is None else dict(_fields(block[1], block[0].count("\n", 0, block.start(1))))
    body = text if block is None else text[block.end() :]
    line = 1 if block is None else 1 + block[0].count("\n")
    if not body.strip():
        msg = "it has no text"
        raise CommandSyntaxError(msg, line)
    blank = re.match(r"(?:[ \t]*\n)*", body)
    start = blank.end() if blank else 0
    return CommandFile(fields, body[start:].rstrip(), line + body.count("\n", 0, start))


def _fields(block: str, above: int) -> Iterator[tuple[str, CommandField]]:
    """Yield the fields by name; *above* is the number of lines before the block."""
    lines = block.split("\n")
    matches = [(start, match) for start, line in enumerate(lines) if (match := _FIELD.match(line))]
    ends = [*(start for start, _ in matches[1:]), len(lines)]
    for (start, match), end in zip(matches, ends, strict=False):  # without fields there is one end
        source = "\n".join(lines[start:end])
        yield match[1], CommandField(source, (match[2] or "").strip(), above + start + 1)
