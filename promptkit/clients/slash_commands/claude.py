"""
Claude Code commands: Markdown with ``$ARGUMENTS``, ``$1``, ``@file`` and ``!`command` ``.

See https://code.claude.com/docs/en/skills, which also documents commands. Placeholders are replaced
everywhere, even in code, unless a backslash precedes them.
"""

import re
from collections.abc import Iterator
from typing import Final

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandFile,
    CommandParameter,
    CommandPart,
    FilePart,
    LineNumbers,
    Loss,
    Part,
    SlashCommand,
    TextPart,
    join_texts,
    make_excerpt,
    one_line,
    read_markdown,
    shell_reason,
    sort_losses,
    split_command,
    split_parts,
    to_identifier,
)

#: The text that Claude Code adds before the arguments if a command has no placeholder.
APPENDED: Final = "\n\nARGUMENTS: "

_ALL: Final = "arguments"

#: The prefix of the names that unnamed arguments get.
_NUMBERED: Final = "argument_"

#: Longer hints are truncated, because each positional argument repeats the hint.
_MAX_HINT: Final = 500

#: All placeholders. A name is a placeholder only if the file declares it.
_PLACEHOLDER: Final = re.compile(
    r"(?P<script>^```![ \t]*$)"
    r"|(?<!\S)!`(?P<command>[^`\n]+)`"
    r"|\\(?P<escaped>\$(?:ARGUMENTS|\d+(?!\w)|(?P<kept>[A-Za-z_]\w*)(?![\[\w])))"
    r"|\$ARGUMENTS\[(?P<index>\d{1,4})\]"
    r"|(?P<all>\$ARGUMENTS)(?!\[\d)"
    r"|(?P<amount>\$\d+[.,]\d|\$\d{5,}(?!\w))"
    r"|\$(?P<number>\d{1,4})(?!\w)"
    r"|\$(?P<named>[A-Za-z_]\w*)(?![\[\w])"
    r"|(?P<variable>\$\{CLAUDE_\w+\})"
    r"|(?<!\S)@(?P<file>[^\s\"'`]+)",
    re.MULTILINE,
)
_REASONS: Final = {
    "script": "scripts need a shell",
    "variable": "it is a variable of Claude Code",
    "amount": "it looks like an amount",
    "number": "it looks like an amount",
}

#: Extensions that identify a file name without a folder. Other words after ``@`` are decorators or people.
_EXTENSIONS: Final = (
    "c|cc|cfg|conf|cpp|cs|css|csv|env|go|graphql|h|html|ini|ipynb|java|js|json|jsonc|jsx|kt|lock|lua|md|mdc|mdx"
    "|mjs|php|proto|ps1|py|rb|rs|rst|scss|sh|sql|svelte|svg|swift|tf|toml|ts|tsx|txt|vue|xml|ya?ml"
)
_FILE: Final = re.compile(rf"(?:[\w.-]+/)+[\w.-]*[\w-]\.\w{{1,10}}|[\w.-]*[\w-]\.(?:{_EXTENSIONS})")

#: Punctuation that can follow a path.
_PUNCTUATION: Final = ".,;:!?)]}>*"

_HINT: Final = re.compile(r"\[[^\[\]]*\]|<[^<>]*>|\{[^{}]*\}|\S+")


def read_claude_command(name: str, text: str) -> SlashCommand:
    """
    Parse a Claude Code command.

    Args:
        name:
            The name of the command, which is the path of its file without ``.md``.

        text:
            The content of the file.

    Raises:
        CommandSyntaxError: If the front matter is invalid, or if no text follows it.
    """
    reader = _ClaudeText(read_markdown(text))
    parts, parameters = reader.build_parts(), reader.parameters
    if not parameters:
        parts = join_texts((*parts, TextPart(APPENDED), ArgumentPart(_ALL, is_appended=True)))
        parameters = (CommandParameter(_ALL, reader.hint),)
    return SlashCommand(
        name,
        parts,
        parameters=parameters,
        description=reader.file.get_text("description"),
        losses=sort_losses(reader.losses),
    )


class _ClaudeText:
    """A parser for one Claude Code command."""

    def __init__(self, file: CommandFile) -> None:
        self.file = file
        self.hint = (file.get_text("argument-hint") or "")[:_MAX_HINT]
        # Users choose MCP prompts, so `disable-model-invocation` is implied.
        self.losses = [
            *file.find_losses("description", "argument-hint", "arguments", "disable-model-invocation")
        ]
        self._declared = self._declared_names()
        self._numbers = {name: number for number, name in reversed([*enumerate(self._declared)])}
        self._lines = LineNumbers(file.body, file.line)
        self._tokens = list(self._scan())
        self._has_all = any(token["all"] for token in self._tokens)
        self._positional = self._find_positional_parameters()
        self.parameters = (
            (CommandParameter(_ALL, self.hint),) if self._has_all else tuple(self._positional.values())
        )

    def _declared_names(self) -> list[str]:
        """Return the argument names that the file declares."""
        field = self.file.fields.get("arguments")
        if field is None:
            return []
        value = field.value
        names = value.split() if isinstance(value, str) else []
        if isinstance(value, list):
            names = [str(item.value) for item in value]
        if names and all(re.fullmatch(r"[A-Za-z_]\w*", name) for name in names):
            return names
        reason = "the field 'arguments' is not imported: it does not list names"
        self.losses.append(Loss(reason, field.location.line))
        return []

    def build_parts(self) -> tuple[Part, ...]:
        """Return the text as parts."""
        spans = ((token.start(), token.end(), [self._build_part(token)]) for token in self._tokens)
        return split_parts(self.file.body, spans)

    def _line_number(self, token: re.Match[str]) -> int:
        return self._lines.at(token.start())

    def _add_loss(self, description: str, token: re.Match[str]) -> None:
        self.losses.append(Loss(description, self._line_number(token)))

    def _scan(self) -> Iterator[re.Match[str]]:
        """Yield the placeholders, including those within commands that are kept as text."""
        position = 0
        while (token := _PLACEHOLDER.search(self.file.body, position)) is not None:
            position = token.end()
            group = next((name for name in ("command", "file") if token[name] is not None), None)
            if group is not None and not self._is_converted(token, group):
                position = token.start(group)
            elif self._is_declared(token):
                yield token

    def _is_declared(self, token: re.Match[str]) -> bool:
        name = token["named"] or token["kept"]
        return name is None or name in self._numbers

    def _is_converted(self, token: re.Match[str], group: str) -> bool:
        if group == "file":
            reason = _explain_not_file(token[group])
            if reason:
                self._add_loss(f"{make_excerpt(token[0])!r} is kept as text: {reason}", token)
            return reason is None
        command = token[group]
        inner = (match.lastgroup for match in _PLACEHOLDER.finditer(command) if self._is_declared(match))
        has_arguments = not {"index", "all", "number", "named"}.isdisjoint(inner)
        reason = "it contains arguments" if has_arguments else shell_reason(command)
        if reason:
            excerpt = make_excerpt(one_line(command))
            self._add_loss(f"the command {excerpt!r} is not run and is kept as text: {reason}", token)
        return reason is None

    def _argument_number(self, token: re.Match[str]) -> int | None:
        """
        Return the number of the argument that a placeholder refers to.

        Return None if the placeholder does not refer to exactly one argument.
        """
        if token["named"] is not None:
            return self._numbers[token["named"]]
        digits = token["index"] or token["number"]
        return None if digits is None else int(digits)

    def _find_positional_parameters(self) -> dict[int, CommandParameter]:
        """Return the parameters for positional arguments, keyed by number."""
        sources: dict[int, str] = {}
        for token in () if self._has_all else self._tokens:
            if (number := self._argument_number(token)) is not None:
                sources.setdefault(number, token[0])
        used = {number for number, source in sources.items() if not source[1:].isdigit()}
        # Indexes start at 0, but in older documentation, $1 is the first argument.
        first = number = 0 if used or 0 in sources else 1
        while number in sources:  # numbers after a gap are not placeholders: without $1, $20 is an amount
            used.add(number)
            number += 1
        names, parameters = self._argument_names(), dict[int, CommandParameter]()
        for number in sorted(used):
            index = number - first
            name, hint = f"{_NUMBERED}{index + 1}", self.hint
            if index < len(names):
                name, hint = names[index], ""
            parameters[number] = CommandParameter(name, hint or None, default=sources[number])
        return parameters

    def _argument_names(self) -> list[str]:
        """Return argument names from the field or the hint, or an empty list if they cannot be used."""
        labels = self._declared or [hint.strip("[]<>{}") for hint in _HINT.findall(self.hint)]
        names = [to_identifier(label) or "" for label in labels if "|" not in label]
        is_free = {"", _ALL}.isdisjoint(names) and not any(name.startswith(_NUMBERED) for name in names)
        return names if is_free and len(names) == len(labels) == len(set(names)) else []

    def _build_part(self, token: re.Match[str]) -> Part:
        """Return the part for a placeholder."""
        if token["all"]:
            return ArgumentPart(_ALL)
        number = self._argument_number(token)
        if number is not None and number in self._positional:
            return ArgumentPart(self._positional[number].name)
        if token["command"] is not None:
            return CommandPart(split_command(token["command"]) or ())
        if token["file"] is not None:
            return FilePart(token["file"].rstrip(_PUNCTUATION), token[0])
        if token["escaped"] is not None:
            return TextPart(token["escaped"])
        is_word = self._has_all and number is not None
        reason = "it is one of the words in $ARGUMENTS" if is_word else _REASONS[str(token.lastgroup)]
        self._add_loss(f"{make_excerpt(token[0])!r} is kept as text: {reason}", token)
        return TextPart(token[0])


def _explain_not_file(path: str) -> str | None:
    """
    Return why a word after an ``@`` is not a file in the workspace, or None if it is one.

    The result is "" if the word does not look like a file at all.
    """
    path = path.rstrip(_PUNCTUATION)
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        return "it is outside the workspace"
    if _FILE.fullmatch(path):
        return None
    if re.match(r"\$(?:ARGUMENTS|\d)", path):
        return "it contains arguments"
    return "it could be a folder" if path.endswith("/") else ""  # a word such as @scope/name is a package
