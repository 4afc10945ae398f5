"""Generation of recipes from slash commands: Markdown prompts, or Python that fills Markdown files."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from promptkit.clients.slash_commands.command import (
    ArgumentPart,
    CommandParameter,
    CommandPart,
    CommandSyntaxError,
    FilePart,
    Part,
    SlashCommand,
    TextPart,
    UniqueNames,
    one_line,
    to_identifier,
)
from promptkit.declarations.markdown_body import PLACEHOLDER, escape_text
from promptkit.declarations.skill_frontmatter import MAX_FRONT_MATTER, encode_text
from promptkit.fragments.invisible import escape_invisible
from promptkit.language.placeholders import placeholders_in

#: Maximum length of a generated line of Python, in characters.
_WIDTH: Final = 100

#: Maximum number of placeholders, because Python needs quadratic time to compile the call that fills them.
_MAX_PLACEHOLDERS: Final = 500

#: Maximum length of a description taken from the text, in characters.
_MAX_SUMMARY: Final = 120


def needs_python(command: SlashCommand) -> bool:
    """Return whether a command runs programs or reads files."""
    return any(isinstance(part, CommandPart | FilePart) for part in command.parts)


def generate_markdown(command: SlashCommand, name: str | None) -> str:
    """
    Return the Markdown prompt for a command that does not need Python.

    Args:
        command:
            The command.

        name:
            The name of the prompt, or None if it is the same as the name of the file.

    Raises:
        CommandSyntaxError: If the description and the arguments are too long for front matter.
    """
    arguments = dict[str, Any]()
    for parameter in command.parameters:
        default = {} if parameter.default is None else {"default": parameter.default}
        description = {"description": parameter.description} if parameter.description else {}
        arguments[parameter.name] = {**description, **default} if default else parameter.description or ""
    fields = {
        **({"name": name} if name else {}),
        "description": _summarize(command),
        **({"arguments": arguments} if arguments else {}),
    }
    text = "".join(part.text if isinstance(part, TextPart) else PLACEHOLDER for part in command.parts)
    placeholders = (
        f"{{{{{part.name}{'?' if part.is_appended else ''}}}}}"
        for part in command.parts
        if isinstance(part, ArgumentPart)
    )
    front_matter = "\n".join(_format_front_matter(fields))
    if len(front_matter) >= MAX_FRONT_MATTER:
        msg = f"its description and arguments have more than {MAX_FRONT_MATTER:,} characters"
        raise CommandSyntaxError(msg)
    return f"---\n{front_matter}\n---\n{escape_text(text.rstrip(), placeholders)}\n"


def _format_front_matter(fields: Mapping[str, Any], indentation: str = "") -> Iterator[str]:
    """Yield the lines of front matter."""
    for key, value in fields.items():
        if isinstance(value, str):
            yield f"{indentation}{key}: {encode_text(value)}"
        else:
            yield f"{indentation}{key}:"
            yield from _format_front_matter(value, f"{indentation}  ")


def generate_python(command: SlashCommand, prompt: str, stem: str) -> tuple[str, str]:
    """
    Return the Markdown and the Python of the recipe for a command.

    Args:
        command:
            The command.

        prompt:
            The name of the prompt.

        stem:
            The name of the function and of both files, without an extension.

    Raises:
        CommandSyntaxError: If the command has too many placeholders for one function.
    """
    placeholders = _Placeholders(command)
    markdown = "".join(map(placeholders.text, command.parts)).rstrip()
    # A blank line keeps the start of the text from being parsed as front matter.
    markdown = f"\n{markdown}" if markdown.startswith("---") else markdown
    documents = [
        part.path for part in command.parts if isinstance(part, FilePart) and part.source is not None
    ]
    text = _format_call("Text.from_path", [_quote(f"{stem}.md"), *placeholders.keywords()], 8)
    embedded = (
        f"EmbeddedResource.from_path({_quote(path)}, root=workspace())" for path in dict.fromkeys(documents)
    )
    arguments = [text, *embedded]
    body = [_format_docstring(_summarize(command)), f"return {_format_call('user', arguments, 4)}"]
    decorator = "@prompt" if prompt == stem else f"@prompt(name={_quote(prompt)})"
    signature = _format_call(f"def {stem}", map(_format_parameter, command.parameters), 0)
    head = [*_build_imports(command), "", "", decorator, f"{signature}:"]
    return f"{markdown}\n", "\n".join([*head, *(f"    {line}" for line in body), ""])


class _Placeholders:
    """The placeholders in the Markdown, and the expressions that fill them."""

    def __init__(self, command: SlashCommand) -> None:
        literal = "\0".join(part.text for part in command.parts if isinstance(part, TextPart))
        self._free = UniqueNames("_", placeholders_in(literal))
        self._names: dict[str, str] = {}

    def text(self, part: Part) -> str:
        """Return the Markdown for a part."""
        match part:
            case TextPart(text=text) | FilePart(source=str(text)):
                return text
            case ArgumentPart(name=name, is_appended=is_appended):
                return self._placeholder(name, name, "?" if is_appended else "")
            case CommandPart(words=words):
                return self._placeholder("_".join(words[:2]), _format_call("run", map(_quote, words), 12))
            case FilePart(path=path):
                return self._placeholder(path, f"Text.below(workspace(), {_quote(path)})")

    def keywords(self) -> Iterator[str]:
        """Return the keyword arguments that fill the placeholders."""
        return (f"{name}={expression}" for expression, name in self._names.items())

    def _placeholder(self, preferred_name: str, expression: str, end: str = "") -> str:
        if (name := self._names.get(expression)) is None:
            if len(self._names) == _MAX_PLACEHOLDERS:
                msg = f"it has more than {_MAX_PLACEHOLDERS} different arguments, commands and files"
                raise CommandSyntaxError(msg)
            name = self._free.reserve(to_identifier(preferred_name) or "text")
            self._names[expression] = name
        return f"{{{{{name}{end}}}}}"


def _build_imports(command: SlashCommand) -> Iterator[str]:
    """Yield the lines with the recipe's imports."""
    has_descriptions = any(parameter.description for parameter in command.parameters)
    kinds = {type(part) for part in command.parts}
    has_documents = any(isinstance(part, FilePart) and part.source is not None for part in command.parts)
    if has_descriptions:
        yield "from typing import Annotated"
        yield ""
    names = [*(["Arg"] if has_descriptions else ()), *(["EmbeddedResource"] if has_documents else ())]
    yield f"from promptkit import {', '.join([*names, 'Text', 'prompt', 'user'])}"
    names = [*(["run"] if CommandPart in kinds else ()), *(["workspace"] if FilePart in kinds else ())]
    if names:
        yield f"from promptkit.workspace import {', '.join(names)}"


def _format_parameter(parameter: CommandParameter) -> str:
    kind = f"Annotated[str, Arg({_quote(parameter.description)})]" if parameter.description else "str"
    default = "" if parameter.default is None else f" = {_quote(parameter.default)}"
    return f"{parameter.name}: {kind}{default}"


def _format_call(function: str, arguments: Iterable[str], depth: int) -> str:
    """Return a call, with one argument per line if it does not fit on one line indented by *depth*."""
    arguments = [*arguments]
    line = f"{function}({', '.join(arguments)})"
    if len(line) + depth <= _WIDTH and "\n" not in line:
        return line
    indentation = " " * depth
    return (
        f"{function}(\n"
        + "".join(f"{indentation}    {argument},\n" for argument in arguments)
        + f"{indentation})"
    )


def _quote(text: str) -> str:
    """Return *text* as a string literal, with escapes for invisible characters."""
    return escape_invisible(json.dumps(text, ensure_ascii=False))


def _summarize(command: SlashCommand) -> str:
    """Return the command's description, or the start of its text."""
    if command.description:
        return command.description
    texts = (getattr(part, "text", "") or getattr(part, "source", "") for part in command.parts)
    text = "".join(item or "..." for item in texts)
    first = next(filter(None, (one_line(line.strip(" \t#*-")) for line in text.splitlines())), "")
    return first[:_MAX_SUMMARY].strip() or one_line(command.name)


def _format_docstring(text: str) -> str:
    """Return *text* as a docstring, which is an escaped string if it contains quotes or backslashes."""
    return _quote(text) if {'"', "\\"} & {*text} else f'"""{text}"""'
