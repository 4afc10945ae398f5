"""
Prompt files of VS Code: Markdown with ``${input:name:hint}``.

See https://code.visualstudio.com/docs/copilot/customization/prompt-files. What is selected or open in the
editor is known to the editor alone.
"""

import re
from typing import Final

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    FreeNames,
    LineNumbers,
    Loss,
    Part,
    SlashCommand,
    TextPart,
    brief,
    identifier,
    in_order,
    parts_of,
)
from promptkit.clients.slash_commands.frontmatter import read_markdown

_PLACEHOLDER: Final = re.compile(
    r"\$\{input:(?P<input>[^:{}\n]+)(?::(?P<hint>[^{}\n]*))?\}"
    r"|(?P<variable>\$\{(?:workspaceFolder|workspaceFolderBasename|selection|selectedText|lineNumber"
    r"|(?:relativeF|f)ile(?:Basename|Dirname|BasenameNoExtension|Extname)?)\})"
    r"|(?P<file>(?<!\S)#file:[^\s`]+)"
    r"|(?P<tool>(?<!\S)#(?:tool:[\w./*-]+|selection|codebase|changes|problems|fetch|usages)\b)"
    r"|(?P<link>(?<!!)\[[^\[\]\n]*\]\([\w@./%-]+\.\w+(?:#[^()\s]*)?\))"
)
_WHY: Final = {
    "variable": "only the editor knows it",
    "file": "no file is attached",
    "tool": "tools are the client's",
    "link": "no file is attached",
}


def read_vscode_prompt(name: str, text: str) -> SlashCommand:
    """
    Read a prompt file of VS Code.

    Args:
        name:
            Its name: the path of its file, without ``.prompt.md``. The file may say another.

        text:
            What the file holds.

    Raises:
        CommandSyntaxError: If it holds no text.
    """
    file = read_markdown(text)
    losses = list(file.losses("description", "argument-hint", "name"))
    found, parameters, names = (
        list[tuple[int, int, list[Part]]](),
        dict[str, CommandParameter](),
        dict[str, str](),
    )
    free, lines = FreeNames("_"), LineNumbers(file.body, file.line)
    for token in _PLACEHOLDER.finditer(file.body):
        line = lines.at(token.start())
        if (asked := token["input"]) is not None:
            asked = asked.strip()
            if (made := names.get(asked)) is None:
                made = names[asked] = free.take(free.find(identifier(asked) or "argument"))
            if parameters.get(made) is None or not parameters[made].description:
                parameters[made] = CommandParameter(made, token["hint"] or None, default=None)
            found.append((*token.span(), [ArgumentPart(made, line)]))
        else:
            losses.append(Loss(f"{brief(token[0])!r} is left as text: {_WHY[str(token.lastgroup)]}", line))
            found.append((*token.span(), [TextPart(token[0])]))
    folders, _, _ = name.rpartition("/")
    own = (file.text_of("name") or name.rpartition("/")[2]).replace("/", "-")
    return SlashCommand(
        f"{folders}/{own}" if folders else own,
        parts_of(file.body, file.line, found),
        parameters=tuple(parameters.values()),
        description=file.text_of("description"),
        argument_hint=file.text_of("argument-hint"),
        losses=in_order(losses),
    )
