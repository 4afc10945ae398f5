"""Prompts as skills, which have no placeholders: a model fills in the arguments or runs a command."""

from collections.abc import Iterator
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.frontmatter import check_fields, write_skill
from promptkit.exports.client_files.prompts import LiveCommand, frozen_parts, refuse
from promptkit.exports.templates import Placeholder
from promptkit.files.reading import HashedBytes

#: Instructions for passing arguments.
_ARGUMENTS_HINT: Final = (
    "Add each argument as `NAME=VALUE`, in quotes that keep a shell from "
    "reading it. Write a value that is long, has several lines or comes from someone else to a "
    "file, and pass `NAME=@FILE`."
)


def skill_name(name: str) -> str:
    """Return the name of a prompt's skill, in the syntax that the format allows."""
    return name.lower().replace("_", "-")


def frozen(prompt: CompiledPrompt) -> dict[str, HashedBytes]:
    """
    Return the files of a skill with the text of a prompt, and a marker for each argument.

    Raises:
        ExportRefusedError: If the prompt cannot be a skill.
    """
    parts = frozen_parts(prompt)
    text = "".join(part for part in parts if isinstance(part, str))
    opened, closed = "{{", "}}"
    while opened in text or closed in text:  # braces in the text must not look like markers
        opened, closed = f"{opened}{{", f"{closed}}}"
    body = "".join(
        f"{opened}{part.name}{closed}" if isinstance(part, Placeholder) else part for part in parts
    )
    if not prompt.arguments.ordered:
        return _files(prompt, body)
    lines = _argument_lines(prompt, opened, closed)
    intro = (
        "Replace each of these by the value that the user gives, and then follow the "
        "instructions below the line."
    )
    return _files(prompt, "\n".join([intro, "", *lines, "", "---", "", body]))


def live(command: LiveCommand) -> dict[str, HashedBytes]:
    """
    Return the files of a skill that runs the command rendering a prompt.

    Raises:
        ExportRefusedError: If the format of skills does not allow it.
    """
    prompt = command.prompt
    lines = [
        "Run this command, and then follow the instructions that it prints:",
        "",
        f"    {command.base_command}",
    ]
    if prompt.arguments.ordered:
        lines += ["", _ARGUMENTS_HINT, "", *_argument_lines(prompt)]
    return _files(prompt, "\n".join(lines))


def only_when_asked(files: dict[str, HashedBytes]) -> dict[str, HashedBytes]:
    """Add the setting that makes Codex use a skill only when asked, as with prompts."""
    return {**files, "agents/openai.yaml": HashedBytes(b"policy:\n  allow_implicit_invocation: false\n")}


def _argument_lines(prompt: CompiledPrompt, opened: str = "", closed: str = "") -> Iterator[str]:
    """Yield a line for each argument."""
    for argument in prompt.arguments.ordered:
        text = f": {' '.join(argument.description.split())}" if argument.description else ""
        yield f"- `{opened}{argument.name}{closed}`{'' if argument.required else ' (optional)'}{text}"


def _files(prompt: CompiledPrompt, body: str) -> dict[str, HashedBytes]:
    fields = {"name": skill_name(prompt.name), "description": " ".join((prompt.description or "").split())}
    for _, problem, hint in check_fields(fields, fields["name"]):
        refuse(prompt, f"as a skill, {problem}: {hint}")
    return {SKILL_FILE: HashedBytes(write_skill(fields, body))}
