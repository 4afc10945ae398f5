"""
The properties in front of the Markdown of commands: what there is of YAML in real files.

Clients are forgiving: ``argument-hint: [issue] [priority]`` is no YAML, and they show it. So each field is
read by itself.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from promptkit.clients import yaml_edits
from promptkit.clients.slash_commands.command import CommandSyntaxError, Loss, brief
from promptkit.files.writing import FileRefusedError

#: What is between two lines of hyphens, at the beginning.
_BLOCK: Final = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)

#: A field, behind blank lines and comments: what is between the hyphens begins with one, or is text.
_FIRST: Final = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?:[\w-]+[ \t]*:(?:[ \t\n]|\Z)|\Z)")
_FIELD: Final = re.compile(r"([\w-]+)[ \t]*:(?:[ \t]+(.*))?$")


class CommandField(NamedTuple):
    """
    A field: its lines, the text behind its name, and the line where it begins.
    """

    source: str
    text: str
    line: int

    @property
    def value(self) -> Any:
        """
        What YAML makes of it; None if it is no YAML. It is slow, so that only fields that are used are read.
        """
        try:
            return next(iter(yaml_edits.read(self.source).values()), None)
        except FileRefusedError:
            return None


class CommandFile(NamedTuple):
    """
    A file: its fields, its Markdown, and the line in which that begins.
    """

    fields: dict[str, CommandField]
    body: str
    line: int

    def text_of(self, key: str) -> str | None:
        """Return a field as text on one line; None if it is not there, or empty."""
        field = self.fields.get(key)
        if field is None:
            return None
        value = field.value
        return one_line(value if isinstance(value, str) else field.text) or None

    def losses(self, *known: str) -> Iterator[Loss]:
        """Yield the fields that nobody carries."""
        for key, field in self.fields.items():
            if key not in known:
                yield Loss(f"the field {brief(key)!r} is not carried", field.line)


def one_line(text: str) -> str:
    """Return a text on one line, without what nobody sees."""
    # YAML that is written as JSON may have an emoji as two escapes.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "ignore")
    return " ".join("".join(one if one.isprintable() else " " for one in text).split())


def read_markdown(text: str) -> CommandFile:
    """
    Return what a file says.

    Raises:
        CommandSyntaxError: If there is no text behind its properties.
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
    """The fields, each with the lines that belong to it."""
    lines = block.split("\n")
    found = [(at, field) for at, line in enumerate(lines) if (field := _FIELD.match(line))]
    ends = [*(at for at, _ in found[1:]), len(lines)]
    for (at, field), end in zip(found, ends, strict=False):  # without fields there is one end
        yield field[1], CommandField("\n".join(lines[at:end]), (field[2] or "").strip(), above + at + 1)
