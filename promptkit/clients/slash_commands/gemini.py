"""
Gemini CLI commands: TOML whose ``prompt`` can contain ``{{args}}``, ``!{command}`` and ``@{file}``.

See https://geminicli.com/docs/cli/custom-commands. Files are inserted first, then arguments and commands. If
a prompt has no ``{{args}}`` and the user types arguments, the typed line is appended to the text.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from promptkit.clients import toml_edits
from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    CommandPart,
    CommandSyntaxError,
    FilePart,
    LineNumbers,
    Loss,
    Part,
    SlashCommand,
    TextPart,
    join_texts,
    make_excerpt,
    one_line,
    shell_reason,
    sort_losses,
    split_command,
    split_parts,
)
from promptkit.files.edits import FileEditError

_ARGUMENTS: Final = "arguments"
_PLACEHOLDER: Final = "{{args}}"

#: A path within the workspace with a file extension or a common file name.
_FILE: Final = re.compile(r"(?!/|~|.*\.\.(?:/|\Z))[^{}*?]*(?:[^/{}*?]\.\w{1,10}|Makefile|Dockerfile|LICENSE)")

#: A key at the start of a line, or the first key of a table's name.
_KEY: Final = re.compile(r"^[ \t]*\[{0,2}[ \t]*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([\w-]+))", re.MULTILINE)

#: Files that are not text. The client sends them unchanged.
_MEDIA: Final = re.compile(
    r".*\.(?:png|jpe?g|gif|webp|bmp|heic|pdf|mp3|wav|ogg|flac|mp4|mov|webm|avi)", re.IGNORECASE
)


def read_gemini_command(name: str, text: str) -> SlashCommand:
    """
    Parse a Gemini CLI command.

    Args:
        name:
            The name of the command, which is the path of its file without ``.toml``.

        text:
            The content of the file.

    Raises:
        CommandSyntaxError: If the file is not valid TOML, or if it has no prompt.
    """
    lines = _find_key_lines(text)
    fields = _parse_fields(text, lines)
    reader = _GeminiText(fields["prompt"], lines.get("prompt", 1))
    parts = reader.build_parts()
    if _PLACEHOLDER not in fields["prompt"]:
        typed = TextPart(f"\n\n/{name.replace('/', ':')} ")
        parts = join_texts((*parts, typed, ArgumentPart(_ARGUMENTS, is_appended=True)))
    losses = [
        Loss(f"the field {make_excerpt(key)!r} is not imported", lines.get(key, 1))
        for key in fields
        if key not in ("prompt", "description")
    ]
    description = fields.get("description")
    return SlashCommand(
        name,
        parts,
        parameters=(CommandParameter(_ARGUMENTS),),
        description=(one_line(description) or None) if isinstance(description, str) else None,
        losses=sort_losses((*losses, *reader.losses)),
    )


def _parse_fields(text: str, lines: Mapping[str, int]) -> dict[str, Any]:
    try:
        fields = toml_edits.read(text)
    except FileEditError as error:
        msg = str(error)
        line = error.line or int((re.search(r"at line (\d+)", msg) or [0, 1])[1])
        raise CommandSyntaxError(msg, line) from None
    if not isinstance(fields.get("prompt"), str) or not fields["prompt"].strip():
        msg = "it has no prompt"
        raise CommandSyntaxError(msg, lines.get("prompt", 1))
    return fields


def _find_key_lines(text: str) -> dict[str, int]:
    """Return the line number of each key's first occurrence."""
    lines, line_by_key = LineNumbers(text), dict[str, int]()
    for match in _KEY.finditer(text):
        line_by_key.setdefault(match[1] or match[2] or match[3] or "", lines.at(match.start()))
    return line_by_key


class _GeminiText:
    """A parser for one Gemini CLI prompt."""

    def __init__(self, prompt: str, line: int) -> None:
        self._prompt, self._line = prompt, line
        self.losses: list[Loss] = []

    def build_parts(self) -> tuple[Part, ...]:
        """Return the prompt as parts."""
        files = list(self._find_blocks("@{", 0, len(self._prompt)))
        if files and files[-1][2] is None:
            files.pop()
        spans, position = list[tuple[int, int, list[Part]]](), 0
        for start, end, path in (*files, (len(self._prompt), len(self._prompt), None)):
            spans += self._convert_commands(position, start)
            if path is not None:
                spans += self._convert_file(start, end, path)
            position = end
        return split_parts(self._prompt, spans)

    def _add_loss(self, description: str) -> None:
        self.losses.append(Loss(description, self._line))

    def _find_blocks(self, trigger: str, position: int, stop: int) -> Iterator[tuple[int, int, str | None]]:
        """Yield the start, end and content (None if unclosed) of each block that begins with *trigger*."""
        while (start := self._prompt.find(trigger, position, stop)) >= 0:
            depth, position = 1, start + len(trigger)
            while depth and position < stop:
                depth += {"{": 1, "}": -1}.get(self._prompt[position], 0)
                position += 1
            if depth:
                self._add_loss(
                    f"{trigger!r} is not closed, so Gemini CLI rejects the command; it is kept as text"
                )
                yield start, stop, None
                return
            yield start, position, self._prompt[start + len(trigger) : position - 1].strip()

    def _convert_commands(self, position: int, stop: int) -> Iterator[tuple[int, int, list[Part]]]:
        for start, end, command in self._find_blocks("!{", position, stop):
            yield from self._convert_arguments(position, start)
            if command is None:
                position = start
                break
            position = end
            if not command:
                yield start, end, []
                continue
            reason = "it contains arguments" if _PLACEHOLDER in command else shell_reason(command)
            if reason is None:
                yield start, end, [CommandPart(split_command(command) or ())]
                continue
            self._add_loss(
                f"the command {make_excerpt(one_line(command))!r} is not run and is kept as text: {reason}"
            )
            yield from self._convert_arguments(start, end)
        yield from self._convert_arguments(position, stop)

    def _convert_arguments(self, position: int, stop: int) -> Iterator[tuple[int, int, list[Part]]]:
        while (start := self._prompt.find(_PLACEHOLDER, position, stop)) >= 0:
            position = start + len(_PLACEHOLDER)
            yield start, position, [ArgumentPart(_ARGUMENTS)]

    def _convert_file(self, start: int, end: int, path: str) -> Iterator[tuple[int, int, list[Part]]]:
        reason = "it contains arguments" if "{" in path else None
        if _MEDIA.fullmatch(path):
            reason = "it is not text"
        elif _FILE.fullmatch(path) is None:
            reason = reason or "it could be a folder, or outside the workspace"
        if reason is None:
            yield start, end, [FilePart(path)]
            return
        self._add_loss(f"{make_excerpt(self._prompt[start:end])!r} is kept as text: {reason}")
        yield from self._convert_arguments(start, end)
