"""
Prompts as commands of Gemini CLI: TOML.

See https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/custom-commands.md.
"""

import json
import re
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.exports.client_files.prompts import LiveCommand, frozen_parts, refuse, refuse_at

#: What stands for all that was typed.
_HOLE: Final = "{{args}}"

#: What TOML holds in a text of several lines only as an escape.
_ESCAPED: Final = re.compile(r'[\\\x00-\x08\x0b-\x1f\x7f]|"(?="")|"\Z')


def frozen(prompt: CompiledPrompt) -> bytes:
    """
    Return a command that says what a prompt says.

    Raises:
        ExportRefusedError: If there is none.
    """
    if len(names := [one.name for one in prompt.arguments.ordered]) > 1:
        shown = ", ".join(map(repr, names))
        reason = f"Gemini CLI has one hole, {_HOLE}, for all that is typed, and it takes {shown}"
        refuse(prompt, f"{reason}: --live writes a file that tells them apart")
    parts = frozen_parts(prompt)
    said = "".join(part if isinstance(part, str) else "\0" for part in parts)
    if _HOLE in said:
        refuse_at(prompt, said, said.index(_HOLE), f"{_HOLE!r}, which Gemini CLI fills")
    text = "".join(part if isinstance(part, str) else _HOLE for part in parts)
    if (found := re.search(r"[!@]\{", text)) is not None:
        what = "a command" if found[0] == "!{" else "the name of a file"
        refuse_at(prompt, text, found.start(), f"{found[0]!r}, behind which Gemini CLI reads {what}")
    return _command(prompt, text)


def live(command: LiveCommand) -> bytes:
    """
    Return a command that renders a prompt for what was typed.

    Within the braces Gemini CLI makes it a word of a shell, whatever it is, but for a ``~`` at its beginning.
    Nothing around it is in quotes: for ``$'`` JavaScript puts in what stands behind it, in place of the last
    quote, too. That is a fault of the shell, and nothing runs.
    """
    return _command(command.prompt, f"!{{printf %s\\\\n .{_HOLE} {command.end} | {command.words}}}")


def _command(prompt: CompiledPrompt, text: str) -> bytes:
    description = " ".join((prompt.description or prompt.title or prompt.name).split())
    escaped = _ESCAPED.sub(lambda found: json.dumps(found[0])[1:-1].replace("\x7f", "\\u007f"), text)
    shown = json.dumps(description, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f'description = {shown}\nprompt = """\n{escaped}"""\n'.encode()
