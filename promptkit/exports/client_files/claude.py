"""
Prompts as commands of Claude Code: Markdown with frontmatter.

See https://code.claude.com/docs/en/skills#available-string-substitutions.
"""

import re
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.frontmatter import write_skill
from promptkit.exports.client_files.prompts import LiveCommand, frozen_parts, hint_of, refuse_at
from promptkit.exports.templates import Placeholder

#: Matches a placeholder of Claude Code; a preceding backslash escapes the placeholder.
_PLACEHOLDER: Final = re.compile(r"\$(?=[0-9]+(?!\w)|ARGUMENTS)")

#: Syntax that Claude Code does not read as text, with descriptions.
_RESERVED: Final = {
    re.compile(r"\\\$(?=[0-9]|ARGUMENTS)"): r"a backslash before a placeholder of Claude Code, as in '\$1'",
    re.compile(r"\$\{CLAUDE_"): "'${CLAUDE_', a placeholder of Claude Code",
    re.compile(r"(?<!\S)!`|```!"): "the beginning of a command that Claude Code runs",
    re.compile(r"(?<!\S)@(?=\S)"): "'@', after which Claude Code expects a file name",
}


def frozen(prompt: CompiledPrompt) -> bytes:
    """
    Return a command with the text of a prompt.

    Raises:
        ExportRefusedError: If Claude Code cannot represent the text.
    """
    parts = frozen_parts(prompt)
    text = "".join(part if isinstance(part, str) else f"<{part.name}>" for part in parts)
    for syntax, description in _RESERVED.items():
        if (match := syntax.search(text)) is not None:
            refuse_at(prompt, text, match.start(), description)
    names = [argument.name for argument in prompt.arguments.ordered]
    body = ""
    for part in parts:
        if isinstance(part, Placeholder):
            if body.endswith("\\"):
                refuse_at(prompt, body, len(body), "a backslash before the place of an argument")
            body += f"$ARGUMENTS[{names.index(part.name)}]" if len(names) > 1 else "$ARGUMENTS"
            continue
        if body.endswith("$ARGUMENTS") and part.startswith("["):
            refuse_at(prompt, body, len(body), "'[' after an argument, where Claude Code expects its number")
        body += _PLACEHOLDER.sub(r"\\$", part)
    return _command(prompt, body)


def live(command: LiveCommand) -> bytes:
    """
    Return a command that renders a prompt with the typed text.

    Claude Code inserts the typed text into the block verbatim before a shell runs it, so a here-document with
    an unguessable last line encloses it. A user who knows that line can end the document early. The rest of
    the text is then parsed as commands, and Claude Code does not run a block with a command that is not
    allowed.
    """
    end, command_line = command.end, command.command_line
    block = f"```!\n{command_line} <<'{end}.'\n.$ARGUMENTS\n{end}\n{end}.\n```"
    return _command(command.prompt, block, **{"allowed-tools": f"Bash({command_line} *)"})


def _command(prompt: CompiledPrompt, body: str, **fields: str) -> bytes:
    # If a model could invoke the command, it would also choose the typed text.
    frontmatter = {
        "description": " ".join((prompt.description or prompt.title or "").split()),
        "argument-hint": hint_of(prompt),
        "disable-model-invocation": "true",
        **fields,
    }
    return write_skill({key: value for key, value in frontmatter.items() if value}, body)
