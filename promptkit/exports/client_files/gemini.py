"""
Prompts as commands of Gemini CLI: TOML.

See https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/custom-commands.md.
"""

import json
import re
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.exports.client_files.prompts import LiveCommand, frozen_parts, refuse, refuse_at

#: Gemini CLI's placeholder for the typed text.
_PLACEHOLDER: Final = "{{args}}"

#: Characters that a multi-line TOML string must escape.
_ESCAPED: Final = re.compile(r'[\\\x00-\x08\x0b-\x1f\x7f]|"(?="")|"\Z')


def frozen(prompt: CompiledPrompt) -> bytes:
    """
    Return a command with the text of a prompt.

    Raises:
        ExportRefusedError: If Gemini CLI cannot represent the text.
    """
    if len(names := [argument.name for argument in prompt.arguments.ordered]) > 1:
        listed = ", ".join(map(repr, names))
        reason = (
            f"Gemini CLI has one placeholder, {_PLACEHOLDER}, for all that is typed, and it takes {listed}"
        )
        refuse(prompt, f"{reason}: --live writes a file that tells them apart")
    parts = frozen_parts(prompt)
    literal = "".join(part if isinstance(part, str) else "\0" for part in parts)
    if _PLACEHOLDER in literal:
        refuse_at(
            prompt, literal, literal.index(_PLACEHOLDER), f"{_PLACEHOLDER!r}, a placeholder of Gemini CLI"
        )
    text = "".join(part if isinstance(part, str) else _PLACEHOLDER for part in parts)
    if (match := re.search(r"[!@]\{", text)) is not None:
        subject = "a command" if match[0] == "!{" else "the name of a file"
        refuse_at(prompt, text, match.start(), f"{match[0]!r}, after which Gemini CLI expects {subject}")
    return _command(prompt, text)


def live(command: LiveCommand) -> bytes:
    """
    Return a command that renders a prompt with the typed text.

    Inside the braces, Gemini CLI quotes the typed text as one shell word, except for a leading ``~``. The
    placeholder itself is not in quotes: JavaScript expands ``$'`` in the typed text to the text after the
    placeholder, in place of the closing quote. This causes a syntax error in the shell, and nothing runs.
    """
    return _command(
        command.prompt, f"!{{printf %s\\\\n .{_PLACEHOLDER} {command.end} | {command.command_line}}}"
    )


def _command(prompt: CompiledPrompt, text: str) -> bytes:
    description = " ".join((prompt.description or prompt.title or prompt.name).split())
    escaped = _ESCAPED.sub(lambda match: json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f"), text)
    quoted = json.dumps(description, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f'description = {quoted}\nprompt = """\n{escaped}"""\n'.encode()
