"""
VS Code prompt files: Markdown that can contain ``${input:name:hint}``.

See https://code.visualstudio.com/docs/copilot/customization/prompt-files. Variables for the selection and
open files cannot be converted, because only the editor knows their values.
"""

import re
from typing import Final

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    LineNumbers,
    Loss,
    Part,
    SlashCommand,
    UniqueNames,
    make_excerpt,
    read_markdown,
    sort_losses,
    split_parts,
    to_identifier,
)

_PLACEHOLDER: Final = re.compile(
    r"\$\{input:(?P<input>[^:{}\n]+)(?::(?P<hint>[^{}\n]*))?\}"
    r"|(?P<variable>\$\{(?:workspaceFolder|workspaceFolderBasename|selection|selectedText|lineNumber"
    r"|(?:relativeF|f)ile(?:Basename|Dirname|BasenameNoExtension|Extname)?)\})"
    r"|(?P<file>(?<!\S)#file:[^\s`]+)"
    r"|(?P<tool>(?<!\S)#(?:tool:[\w./*-]+|selection|codebase|changes|problems|fetch|usages)\b)"
    r"|(?P<link>(?<!!)\[[^\[\]\n]*\]\([\w@./%-]+\.\w+(?:#[^()\s]*)?\))"
)
_REASONS: Final = {
    "variable": "only the editor knows its value",
    "file": "files cannot be attached",
    "tool": "tools belong to the client",
    "link": "files cannot be attached",
}


def read_vscode_prompt(name: str, text: str) -> SlashCommand:
    """
    Parse a VS Code prompt file.

    Args:
        name:
            The path of the file, without ``.prompt.md``. If the file has a field ``name``, it replaces the
            last part of the path.

        text:
            The content of the file.

    Raises:
        CommandSyntaxError: If the front matter is invalid, or if no text follows it.
    """
    file = read_markdown(text)
    losses = list(file.find_losses("description", "argument-hint", "name"))
    parameters, spans = dict[str, CommandParameter](), list[tuple[int, int, list[Part]]]()
    free, lines = UniqueNames("_"), LineNumbers(file.body, file.line)
    for token in _PLACEHOLDER.finditer(file.body):
        if token["input"] is None:
            reason = f"{make_excerpt(token[0])!r} is kept as text: {_REASONS[str(token.lastgroup)]}"
            losses.append(Loss(reason, lines.at(token.start())))
            continue
        variable = token["input"].strip()
        known = parameters.get(variable)
        if known is None or not known.description:
            parameter = free.reserve(to_identifier(variable) or "argument") if known is None else known.name
            parameters[variable] = CommandParameter(parameter, token["hint"] or None, default=None)
        spans.append((*token.span(), [ArgumentPart(parameters[variable].name)]))
    folders, _, _ = name.rpartition("/")
    own_name = (file.get_text("name") or name.rpartition("/")[2]).replace("/", "-")
    return SlashCommand(
        f"{folders}/{own_name}" if folders else own_name,
        split_parts(file.body, spans),
        parameters=tuple(parameters.values()),
        description=file.get_text("description"),
        losses=sort_losses(losses),
    )
