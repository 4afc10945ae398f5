"""Writing a slash command as a recipe: Markdown with holes, and the few lines of Python that fill them."""

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    CommandPart,
    CommandSyntaxError,
    FilePart,
    FreeNames,
    Part,
    SlashCommand,
    TextPart,
    identifier,
)
from promptkit.clients.slash_commands.frontmatter import one_line
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.placeholders import placeholders_in

#: Quotation marks that would end a docstring, or would be joined with those at its end.
_CLOSING_QUOTES: Final = re.compile(r'"{3,}|"+\Z')

#: A line of Python is broken if it is longer, in characters.
_WIDTH: Final = 100

#: How many holes a text may have. Python takes quadratic time to compile the call that fills them.
_MAX_HOLES: Final = 500

#: At most so many characters of a text say what the prompt is for, if nothing else does.
_SUMMARY: Final = 120


def written(command: SlashCommand, prompt: str, stem: str) -> tuple[str, str]:
    """
    Return the Markdown and the Python of a command.

    Args:
        command:
            The command.

        prompt:
            What the prompt is called.

        stem:
            What the function and both files are called, without an ending.

    Raises:
        CommandSyntaxError: If it has too many placeholders for one function.
    """
    holes = _Holes(command)
    markdown = "".join(map(holes.text, command.parts)).rstrip()
    # What begins as properties do is text if a blank line is before it.
    markdown = f"\n{markdown}" if markdown.startswith("---") else markdown
    asked = [one for one in command.parameters if one.word is None]
    documents = [one.path for one in command.parts if isinstance(one, FilePart) and one.source is not None]
    read = _call("Text.from_path", [_quoted(f"{stem}.md"), *holes.keywords()], 8)
    parts = [read, *(_embedded(path) for path in dict.fromkeys(documents))]
    body = [f'"""{_docstring(_summary(command))}"""']
    if any(one.word is not None for one in command.parameters):
        body.append(f"words = dict(enumerate({asked[0].name}.split()))")
    body.append(f"return {_call('user', parts, 4)}")
    decorator = "@prompt" if prompt == stem else f"@prompt(name={_quoted(prompt)})"
    signature = _call(f"def {stem}", [_parameter(one) for one in asked], 0)
    head = [*_imports(command, asked), "", "", decorator, f"{signature}:"]
    return f"{markdown}\n", "\n".join([*head, *(f"    {line}" for line in body), ""])


class _Holes:
    """What is put into the text: an expression for each hole."""

    def __init__(self, command: SlashCommand) -> None:
        self._parameters = {one.name: one for one in command.parameters}
        literal = "\0".join(one.text for one in command.parts if isinstance(one, TextPart))
        self._free = FreeNames("_", placeholders_in(literal))
        self._names: dict[str, str] = {}

    def text(self, part: Part) -> str:
        """What stands for a part in the Markdown."""
        match part:
            case TextPart(text=text) | FilePart(source=str(text)):
                return text
            case ArgumentPart(name=name, is_appended=is_appended):
                return self._hole(name, f"{name} or None" if is_appended else self._value(name))
            case CommandPart(words=words):
                return self._hole("_".join(words[:2]), _call("run", map(_quoted, words), 12))
            case FilePart(path=path):
                return self._hole(path, f"Text.below(workspace(), {_quoted(path)})")

    def keywords(self) -> Iterator[str]:
        """The holes, each with what is put into it."""
        return (f"{name}={expression}" for expression, name in self._names.items())

    def _value(self, name: str) -> str:
        parameter = self._parameters[name]
        if parameter.word is None:
            return name
        return f"words.get({parameter.word}, {_quoted(parameter.default or '')})"

    def _hole(self, wanted: str, expression: str) -> str:
        if (name := self._names.get(expression)) is None:
            if len(self._names) == _MAX_HOLES:
                msg = f"it has more than {_MAX_HOLES} different arguments, commands and files"
                raise CommandSyntaxError(msg)
            name = self._free.take(self._free.find(identifier(wanted) or "text"))
            self._names[expression] = name
        return f"{{{{{name}}}}}"


def _imports(command: SlashCommand, asked: Iterable[CommandParameter]) -> Iterator[str]:
    """The lines that import what the recipe uses."""
    is_described = any(one.description for one in asked)
    kinds = {type(one) for one in command.parts}
    has_documents = any(isinstance(one, FilePart) and one.source is not None for one in command.parts)
    if is_described:
        yield "from typing import Annotated"
        yield ""
    own = [*(["Arg"] if is_described else ()), *(["EmbeddedResource"] if has_documents else ())]
    yield f"from promptkit import {', '.join([*own, 'Text', 'prompt', 'user'])}"
    places = [*(["run"] if CommandPart in kinds else ()), *(["workspace"] if FilePart in kinds else ())]
    if places:
        yield f"from promptkit.workspace import {', '.join(places)}"


def _parameter(parameter: CommandParameter) -> str:
    kind = f"Annotated[str, Arg({_quoted(parameter.description)})]" if parameter.description else "str"
    default = "" if parameter.default is None else f" = {_quoted(parameter.default)}"
    return f"{parameter.name}: {kind}{default}"


def _embedded(path: str) -> str:
    return f"EmbeddedResource.from_path({_quoted(path)}, root=workspace())"


def _call(function: str, arguments: Iterable[str], depth: int) -> str:
    """A call; with many arguments, one a line, as deep as the line that it stands in."""
    arguments = [*arguments]
    line = f"{function}({', '.join(arguments)})"
    if len(line) + depth <= _WIDTH and "\n" not in line:
        return line
    blanks = " " * depth
    return f"{function}(\n" + "".join(f"{blanks}    {one},\n" for one in arguments) + f"{blanks})"


def _quoted(text: str) -> str:
    """A text as a literal, with escapes for what an editor would not show."""
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _summary(command: SlashCommand) -> str:
    """What the command does: its description, else how its text begins."""
    if command.description:
        return command.description
    texts = (getattr(part, "text", "") or getattr(part, "source", "") for part in command.parts)
    text = "".join(one or "..." for one in texts)
    first = next(filter(None, (one_line(line.strip(" \t#*-")) for line in text.splitlines())), "")
    return first[:_SUMMARY].strip() or one_line(command.name)


def _docstring(text: str) -> str:
    """A text as it stands in a docstring."""
    text = _CLOSING_QUOTES.sub(lambda quotes: quotes[0].replace('"', '\\"'), text.replace("\\", "\\\\"))
    return escape_invisible(text)
