"""
Commands of Claude Code: Markdown with ``$ARGUMENTS``, ``$1``, ``@file`` and ``!`command` ``.

See https://code.claude.com/docs/en/skills, which commands are a kind of. Placeholders are replaced wherever
they stand, in code, too; a backslash before one keeps it.
"""

import re
from collections.abc import Iterator
from typing import Final

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    CommandPart,
    FilePart,
    LineNumbers,
    Loss,
    Part,
    SlashCommand,
    TextPart,
    brief,
    identifier,
    in_order,
    joined_parts,
    parts_of,
    why_no_words,
    words_of,
)
from promptkit.clients.slash_commands.frontmatter import CommandFile, one_line, read_markdown

#: What stands before arguments that a command has no place for.
APPENDED: Final = "\n\nARGUMENTS: "

_ALL: Final = "arguments"

#: How the name of an argument begins that has none.
_NUMBERED: Final = "argument_"

#: How many characters of the hint are carried. Each single argument repeats it.
_MAX_HINT: Final = 500

_SCRIPT: Final = r"^```![ \t]*\n(?P<script>.*?)\n?^```[ \t]*$"
_NO_SCRIPT: Final = r"(?P<script>(?!))"

#: What stands for something else, but for scripts. A name counts if the file declares it.
_PLACEHOLDER: Final = (
    r"|(?<!\S)!`(?P<command>[^`\n]+)`"
    r"|\\(?P<escaped>\$(?:ARGUMENTS|\d+(?!\w)|(?P<kept>[A-Za-z_]\w*)(?![\[\w])))"
    r"|\$ARGUMENTS\[(?P<index>\d+)\]"
    r"|(?P<all>\$ARGUMENTS)"
    r"|\$(?P<number>\d+)(?!\w)(?P<amount>[.,]\d)?"
    r"|\$(?P<named>[A-Za-z_]\w*)(?![\[\w])"
    r"|(?P<variable>\$\{CLAUDE_\w+\})"
    r"|(?<!\S)@(?P<file>[^\s\"'`]+)"
)
_WITH_SCRIPTS: Final = re.compile(_SCRIPT + _PLACEHOLDER, re.DOTALL | re.MULTILINE)
_WITHOUT_SCRIPTS: Final = re.compile(_NO_SCRIPT + _PLACEHOLDER)

#: What ends a script.
_FENCE: Final = re.compile(r"^```[ \t]*$", re.MULTILINE)

#: A number with more digits is not that of an argument.
_DIGITS: Final = 4

#: The ends of names that a file has which lies in no folder: others begin decorators, and names of people.
_ENDINGS: Final = (
    "c|cc|cfg|conf|cpp|cs|css|csv|env|go|graphql|h|html|ini|ipynb|java|js|json|jsonc|jsx|kt|lock|lua|md|mdc|mdx"
    "|mjs|php|proto|ps1|py|rb|rs|rst|scss|sh|sql|svelte|svg|swift|tf|toml|ts|tsx|txt|vue|xml|ya?ml"
)
_FILE: Final = re.compile(rf"(?:[\w.-]+/)+[\w.-]*[\w-]\.\w{{1,10}}|[\w.-]*[\w-]\.(?:{_ENDINGS})")

#: Paths that lead out of the workspace, or to a folder. Packages have names such as @scope/name.
_OUTSIDE: Final = re.compile(r"(?:[~/]|\.\.?/)[\w./-]*")
_PATH: Final = re.compile(r"[\w./-]*")
_FOLDER: Final = re.compile(r"(?:[\w.-]+/)+|(?:[\w.-]+/){2,}[\w-]+")

#: What may stand behind a path.
_BEHIND: Final = ".,;:!?)]}>*"

_HINT: Final = re.compile(r"\[[^\[\]]*\]|<[^<>]*>|\{[^{}]*\}|\S+")


def read_claude_command(name: str, text: str) -> SlashCommand:
    """
    Read a command of Claude Code.

    Args:
        name:
            Its name: the path of its file, without ``.md``.

        text:
            What the file holds.

    Raises:
        CommandSyntaxError: If it holds no text.
    """
    reader = _ClaudeText(read_markdown(text))
    parts, parameters = reader.parts(), reader.parameters
    if not parameters:
        parts = joined_parts((*parts, TextPart(APPENDED), ArgumentPart(_ALL, is_appended=True)))
        parameters = (CommandParameter(_ALL, reader.hint),)
    return SlashCommand(
        name,
        parts,
        parameters=parameters,
        description=reader.file.text_of("description"),
        argument_hint=reader.hint,
        losses=in_order(reader.losses),
    )


class _ClaudeText:
    """What is found in one file."""

    def __init__(self, file: CommandFile) -> None:
        self.file = file
        self.hint = file.text_of("argument-hint")
        # Prompts of MCP are people's to choose, so that no model begins one.
        self.losses = [*file.losses("description", "argument-hint", "arguments", "disable-model-invocation")]
        if self.hint and len(self.hint) > _MAX_HINT:
            what = f"the field 'argument-hint' is carried up to {_MAX_HINT} characters"
            self.losses.append(Loss(what, file.fields["argument-hint"].line))
            self.hint = self.hint[:_MAX_HINT]
        self._declared = self._declare()
        self._numbers = {name: number for number, name in reversed([*enumerate(self._declared)])}
        self._lines = LineNumbers(file.body, file.line)
        self._tokens = list(self._scan())
        self._sources, self._first = self._positional()
        self._names = self._name_arguments()
        self.parameters = self._parameters()

    def _declare(self) -> list[str]:
        """The names that the file gives to its arguments."""
        field = self.file.fields.get("arguments")
        if field is None:
            return []
        value = field.value
        names = value if isinstance(value, list) else field.text.split()
        if all(isinstance(name, str) and re.fullmatch(r"[A-Za-z_]\w*", name) for name in names):
            return names
        what = "the field 'arguments' is not carried: it names what Claude Code does not replace, either"
        self.losses.append(Loss(what, field.line))
        return []

    def parts(self) -> tuple[Part, ...]:
        """The text in parts."""
        found = ((token.start(), token.end(), [self._part(token)]) for token in self._tokens)
        return parts_of(self.file.body, self.file.line, found)

    def _line(self, token: re.Match[str]) -> int:
        return self._lines.at(token.start())

    def _lose(self, what: str, token: re.Match[str]) -> None:
        self.losses.append(Loss(what, self._line(token)))

    def _scan(self) -> Iterator[re.Match[str]]:
        """What stands for something else. What is in a command that stays text is looked at, too."""
        body = self.file.body
        # Behind the last fence no script has an end: looking for one would read the rest once for each.
        last_fence = max((fence.end() for fence in _FENCE.finditer(body)), default=0)
        at = script_end = 0
        while at < len(body):
            if at < script_end:
                pattern, stop = _WITHOUT_SCRIPTS, script_end
            else:
                pattern, stop = (
                    (_WITH_SCRIPTS, last_fence) if at < last_fence else (_WITHOUT_SCRIPTS, len(body))
                )
            if (token := pattern.search(body, at, stop)) is None:
                at = stop
                continue
            at = token.end()
            if not self._is_declared(token):
                continue
            group = next((name for name in ("script", "command", "file") if token[name] is not None), None)
            if group is None or self._is_carried(token, group):
                yield token
                continue
            at = token.start(group)
            if group == "script":
                script_end = token.end()

    def _is_declared(self, token: re.Match[str]) -> bool:
        name = token["named"] or token["kept"]
        return name is None or name in self._numbers

    def _is_carried(self, token: re.Match[str], group: str) -> bool:
        if group == "file":
            reason = _why_no_file(token[group])
            if reason:
                self._lose(f"{brief(token[0])!r} is left as text: {reason}", token)
            return reason is None
        command = token[group]
        inner = (one.lastgroup for one in _WITHOUT_SCRIPTS.finditer(command) if self._is_declared(one))
        has_arguments = not {"index", "all", "number", "named"}.isdisjoint(inner)
        reason = "it takes what callers send" if has_arguments else why_no_words(command)
        if reason:
            shown = brief(one_line(command))
            self._lose(f"the command {shown!r} is not run, and left as text: {reason}", token)
        return reason is None

    def _number(self, token: re.Match[str]) -> int | None:
        """Which argument a placeholder stands for. It is none in an amount, as in $1,000."""
        if token["named"] is not None:
            return self._numbers[token["named"]]
        digits = token["index"] or (None if token["amount"] else token["number"])
        return None if digits is None or len(digits) > _DIGITS else int(digits)

    def _positional(self) -> tuple[dict[int, str], int]:
        """What placeholders of single arguments look like, by their numbers; and the first number."""
        sources: dict[int, str] = {}
        for token in self._tokens:
            if (number := self._number(token)) is not None:
                sources.setdefault(number, token[0])
        used = {number for number, source in sources.items() if not source[1:].isdigit()}
        # Until there were indices, which count from 0, commands were documented with $1 as the first.
        first = at = 0 if used or 0 in sources else 1
        while at in sources:  # with no $1, $20 is an amount
            used.add(at)
            at += 1
        return {number: sources[number] for number in sorted(used)}, first

    def _name_arguments(self) -> dict[int, str]:
        """The names of the parameters for single arguments."""
        hints = [one.strip("[]<>{}") for one in _HINT.findall(self.hint or "")]
        spoken = self._declared or hints
        names = [identifier(one) for one in spoken if "|" not in one]
        is_fine = len(names) == len(spoken) == len(set(names)) and None not in names and _ALL not in names
        is_fine = is_fine and not any(str(name).startswith(_NUMBERED) for name in names)
        found: dict[int, str] = {}
        for number in self._sources:
            at = number - self._first
            told = names[at] if is_fine and at < len(names) else None
            found[number] = told or f"{_NUMBERED}{at + 1}"
        return found

    def _parameters(self) -> tuple[CommandParameter, ...]:
        """All arguments, and the words of them; or the single ones."""
        everything = next((token for token in self._tokens if token["all"]), None)
        single = [
            CommandParameter(
                name,
                self.hint if name.startswith(_NUMBERED) else None,
                default=self._sources[number],
                word=number - self._first if everything else None,
            )
            for number, name in self._names.items()
        ]
        if everything is None:
            return tuple(single)
        if single:
            what = "single arguments are the words of $ARGUMENTS, whatever is in quotes"
            self._lose(what, next(token for token in self._tokens if self._number(token) in self._names))
        return (CommandParameter(_ALL, self.hint), *single)

    def _part(self, token: re.Match[str]) -> Part:
        """What a placeholder becomes."""
        line = self._line(token)
        if token["all"]:
            return ArgumentPart(_ALL, line)
        if (number := self._number(token)) in self._names and number is not None:
            return ArgumentPart(self._names[number], line)
        if (command := token["command"] or token["script"]) is not None:
            return CommandPart(words_of(command) or (), line)
        if token["file"] is not None:
            return FilePart(token["file"].rstrip(_BEHIND), line, token[0])
        if token["escaped"] is not None:
            return TextPart(token["escaped"])
        what = "it has too many digits" if token["index"] else "it looks like an amount"
        what = "Claude Code's own variable" if token["variable"] else what
        self._lose(f"{brief(token[0])!r} is left as text: {what}", token)
        return TextPart(token[0])


def _why_no_file(path: str) -> str | None:
    """Why what follows an ``@`` is no file of the workspace; empty for what nobody would take for one."""
    path = path.rstrip(_BEHIND)
    if _OUTSIDE.fullmatch(path) or ("/../" in path and _PATH.fullmatch(path)):
        return "it leads out of the workspace"
    if _FILE.fullmatch(path):
        return None
    if re.match(r"\$(?:ARGUMENTS|\d)", path):
        return "it takes what callers send"
    return "it may be a folder" if _FOLDER.fullmatch(path) else ""
