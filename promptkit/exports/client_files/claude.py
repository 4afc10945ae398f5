"""
Prompts as commands of Claude Code: Markdown behind frontmatter.

See https://code.claude.com/docs/en/skills#available-string-substitutions.
"""

import re
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.declarations.frontmatter import write_skill
from promptkit.exports.client_files.prompts import LiveCommand, frozen_parts, hint_of, refuse_at
from promptkit.exports.templates import Placeholder

#: What stands for arguments, unless a backslash stands before it.
_PLACEHOLDER: Final = re.compile(r"\$(?=[0-9]+(?!\w)|ARGUMENTS)")

#: What it reads as something else than text, and what each is.
_SYNTAX: Final = {
    re.compile(r"\\\$(?=[0-9]|ARGUMENTS)"): r"a backslash before what Claude Code fills, as in '\$1'",
    re.compile(r"\$\{CLAUDE_"): "'${CLAUDE_', which Claude Code fills",
    re.compile(r"(?<!\S)!`|```!"): "the beginning of a command that Claude Code runs",
    re.compile(r"(?<!\S)@(?=\S)"): "'@', behind which Claude Code reads the name of a file",
}


def frozen(prompt: CompiledPrompt) -> bytes:
    """
    Return a command that says what a prompt says.

    Raises:
        ExportRefusedError: If there is none.
    """
    parts = frozen_parts(prompt)
    said = "".join(part if isinstance(part, str) else f"<{part.name}>" for part in parts)
    for syntax, what in _SYNTAX.items():
        if (found := syntax.search(said)) is not None:
            refuse_at(prompt, said, found.start(), what)
    names = [one.name for one in prompt.arguments.ordered]
    body = ""
    for part in parts:
        if isinstance(part, Placeholder):
            if body.endswith("\\"):
                refuse_at(prompt, body, len(body), "a backslash before the place of an argument")
            body += f"$ARGUMENTS[{names.index(part.name)}]" if len(names) > 1 else "$ARGUMENTS"
            continue
        if body.endswith("$ARGUMENTS") and part.startswith("["):
            refuse_at(prompt, body, len(body), "'[' behind the place of an argument, which would number it")
        body += _PLACEHOLDER.sub(r"\\$", part)
    return _command(prompt, body)


def live(command: LiveCommand) -> bytes:
    """
    Return a command that renders a prompt for what was typed.

    What was typed is put into the block as it is, before a shell sees it. So a here-document holds it, whose
    last line nobody can guess. Whoever knows it ends the document early; but then other commands follow, and
    Claude Code runs no block with one that nothing allows.
    """
    end, words = command.end, command.words
    block = f"```!\n{words} <<'{end}.'\n.$ARGUMENTS\n{end}\n{end}.\n```"
    return _command(command.prompt, block, **{"allowed-tools": f"Bash({words} *)"})


def _command(prompt: CompiledPrompt, body: str, **fields: str) -> bytes:
    # A model that starts it would choose what is typed, too.
    shown = {
        "description": " ".join((prompt.description or prompt.title or "").split()),
        "argument-hint": hint_of(prompt),
        "disable-model-invocation": "true",
        **fields,
    }
    return write_skill({key: value for key, value in shown.items() if value}, body)
