"""
Commands of Gemini CLI: TOML whose ``prompt`` has ``{{args}}``, ``!{command}`` and ``@{file}``.

See https://geminicli.com/docs/cli/custom-commands. Files are put in first, then arguments and commands. A
prompt without ``{{args}}`` gets the line that was typed behind its text, if there is more than a name in it.
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
    brief,
    in_order,
    joined_parts,
    parts_of,
    why_no_words,
    words_of,
)
from promptkit.clients.slash_commands.frontmatter import one_line
from promptkit.files.writing import FileRefusedError

_ARGUMENTS: Final = "arguments"
_HOLE: Final = "{{args}}"

#: A path within the workspace that ends as names of files do, or has one of the usual names.
_FILE: Final = re.compile(r"(?!/|~|.*\.\.(?:/|\Z))[^{}*?]*(?:[^/{}*?]\.\w{1,10}|Makefile|Dockerfile|LICENSE)")

#: A key at the beginning of a line, or the first of a table's name.
_KEY: Final = re.compile(r"^[ \t]*\[{0,2}[ \t]*(?:\"([^\"\n]*)\"|'([^'\n]*)'|([\w-]+))", re.MULTILINE)

#: Documents that are sent as they are, and no text.
_MEDIA: Final = re.compile(
    r".*\.(?:png|jpe?g|gif|webp|bmp|heic|pdf|mp3|wav|ogg|flac|mp4|mov|webm|avi)", re.IGNORECASE
)


def read_gemini_command(name: str, text: str) -> SlashCommand:
    """
    Read a command of Gemini CLI.

    Args:
        name:
            Its name: the path of its file, without ``.toml``.

        text:
            What the file holds.

    Raises:
        CommandSyntaxError: If it is no TOML, or has no prompt.
    """
    lines = _lines_of_keys(text)
    fields = _fields(text, lines)
    reader = _GeminiText(fields["prompt"], *_place(text))
    parts = reader.parts()
    if _HOLE not in fields["prompt"]:
        typed = TextPart(f"\n\n/{name.replace('/', ':')} ")
        parts = joined_parts((*parts, typed, ArgumentPart(_ARGUMENTS, is_appended=True)))
    lost = [
        Loss(f"the field {brief(key)!r} is not carried", lines.get(key, 1))
        for key in fields
        if key not in ("prompt", "description")
    ]
    described = fields.get("description")
    return SlashCommand(
        name,
        parts,
        parameters=(CommandParameter(_ARGUMENTS),),
        description=(one_line(described) or None) if isinstance(described, str) else None,
        losses=in_order((*lost, *reader.losses)),
    )


def _fields(text: str, lines: Mapping[str, int]) -> dict[str, Any]:
    try:
        fields = toml_edits.read(text)
    except FileRefusedError as error:
        msg = str(error)
        line = error.line or int((re.search(r"at line (\d+)", msg) or [0, 1])[1])
        raise CommandSyntaxError(msg, line) from None
    if not isinstance(fields.get("prompt"), str) or not fields["prompt"].strip():
        msg = "it has no prompt"
        raise CommandSyntaxError(msg, lines.get("prompt", 1))
    return fields


def _lines_of_keys(text: str) -> dict[str, int]:
    """The line where each key is first."""
    lines, found = LineNumbers(text), dict[str, int]()
    for key in _KEY.finditer(text):
        found.setdefault(key[1] or key[2] or key[3] or "", lines.at(key.start()))
    return found


def _place(text: str) -> tuple[int, bool]:
    """The line in which the prompt begins, and whether it has its line ends in the file, too."""
    found = re.search(r"^[ \t]*[\"']?prompt[\"']?[ \t]*=[ \t]*(\"\"\"|''')?(\n)?", text, re.MULTILINE)
    if found is None:
        return 1, False
    return 1 + text.count("\n", 0, found.start()) + (found[2] is not None), found[1] is not None


class _GeminiText:
    """What is found in one prompt."""

    def __init__(self, prompt: str, line: int, has_lines: bool) -> None:  # noqa: FBT001 (as `_place` says)
        self._prompt, self._first = prompt, line
        self._lines = LineNumbers(prompt if has_lines else "", line)
        self.losses: list[Loss] = []

    def parts(self) -> tuple[Part, ...]:
        """The prompt in parts."""
        files = list(self._blocks("@{", 0, len(self._prompt)))
        if files and files[-1][2] is None:
            files.pop()
        found, at = list[tuple[int, int, list[Part]]](), 0
        for start, end, path in (*files, (len(self._prompt), len(self._prompt), None)):
            found += self._commands(at, start)
            if path is not None:
                found += self._file(start, end, path)
            at = end
        return parts_of(self._prompt, self._first, found)

    def _line(self, at: int) -> int:
        return self._lines.at(at)

    def _blocks(self, trigger: str, at: int, stop: int) -> Iterator[tuple[int, int, str | None]]:
        """The blocks that begin with a trigger, and end where their braces do; None for one without end."""
        while (start := self._prompt.find(trigger, at, stop)) >= 0:
            depth, at = 1, start + len(trigger)
            while depth and at < stop:
                depth += {"{": 1, "}": -1}.get(self._prompt[at], 0)
                at += 1
            if depth:
                what = f"{trigger!r} has no end, so that Gemini CLI refuses the command; it is left as text"
                self.losses.append(Loss(what, self._line(start)))
                yield start, stop, None
                return
            yield start, at, self._prompt[start + len(trigger) : at - 1].strip()

    def _commands(self, at: int, stop: int) -> Iterator[tuple[int, int, list[Part]]]:
        for start, end, command in self._blocks("!{", at, stop):
            yield from self._arguments(at, start)
            if command is None:
                at = start
                break
            at = end
            if not command:
                yield start, end, []
                continue
            reason = "it takes what callers send" if _HOLE in command else why_no_words(command)
            if reason is None:
                yield start, end, [CommandPart(words_of(command) or (), self._line(start))]
                continue
            what = f"the command {brief(one_line(command))!r} is not run, and left as text: {reason}"
            self.losses.append(Loss(what, self._line(start)))
            yield from self._arguments(start, end)
        yield from self._arguments(at, stop)

    def _arguments(self, at: int, stop: int) -> Iterator[tuple[int, int, list[Part]]]:
        while (start := self._prompt.find(_HOLE, at, stop)) >= 0:
            at = start + len(_HOLE)
            yield start, at, [ArgumentPart(_ARGUMENTS, self._line(start))]

    def _file(self, start: int, end: int, path: str) -> Iterator[tuple[int, int, list[Part]]]:
        reason = "it takes what callers send" if "{" in path else None
        if _MEDIA.fullmatch(path):
            reason = "it is no text"
        elif _FILE.fullmatch(path) is None:
            reason = reason or "it may be a folder, or lie outside of the workspace"
        if reason is None:
            yield start, end, [FilePart(path, self._line(start))]
            return
        self.losses.append(
            Loss(f"{brief(self._prompt[start:end])!r} is left as text: {reason}", self._line(start))
        )
        yield from self._arguments(start, end)
