"""Prompts as skills, which have no holes: a model fills in what the user says, or runs what renders them."""

from collections.abc import Iterator
from typing import Final

from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.skills import SKILL_FILE
from promptkit.declarations.frontmatter import check_fields, write_skill
from promptkit.exports.client_files.prompts import LiveCommand, frozen_parts, refuse
from promptkit.exports.templates import Placeholder
from promptkit.files.scratch import SpooledBytes, keep

#: How a model gives arguments.
_HOW: Final = (
    "Add each argument as `NAME=VALUE`, in quotes that keep a shell from reading it. Write a value that is "
    "long, has several lines or comes from somebody else to a file, and `NAME=@FILE`."
)


def skill_name(name: str) -> str:
    """Return the name of the skill that a prompt of this name becomes, as the format allows it."""
    return name.lower().replace("_", "-")


def frozen(prompt: CompiledPrompt) -> dict[str, SpooledBytes]:
    """
    Return the files of a skill that says what a prompt says, with a mark for each argument.

    Raises:
        ExportRefusedError: If there is none.
    """
    parts = frozen_parts(prompt)
    text = "".join(part for part in parts if isinstance(part, str))
    opened, closed = "{{", "}}"
    while opened in text or closed in text:  # an author's own must not be taken for one
        opened, closed = f"{opened}{{", f"{closed}}}"
    said = "".join(f"{opened}{one.name}{closed}" if isinstance(one, Placeholder) else one for one in parts)
    if not prompt.arguments.ordered:
        return _files(prompt, said)
    marks = _listed(prompt, opened, closed)
    intro = "Put what the user gives in place of each of these, and then do what stands below the line."
    return _files(prompt, "\n".join([intro, "", *marks, "", "---", "", said]))


def live(command: LiveCommand) -> dict[str, SpooledBytes]:
    """
    Return the files of a skill that says how to render a prompt.

    Raises:
        ExportRefusedError: If the format of skills has no place for it.
    """
    prompt = command.prompt
    lines = ["Run this command, and then do what it prints:", "", f"    {command.unread}"]
    if prompt.arguments.ordered:
        lines += ["", _HOW, "", *_listed(prompt)]
    return _files(prompt, "\n".join(lines))


def only_when_asked(files: dict[str, SpooledBytes]) -> dict[str, SpooledBytes]:
    """Return a skill that Codex does not choose by itself, as it does not choose prompts."""
    return {**files, "agents/openai.yaml": keep(b"policy:\n  allow_implicit_invocation: false\n")}


def _listed(prompt: CompiledPrompt, opened: str = "", closed: str = "") -> Iterator[str]:
    """A line for each argument."""
    for one in prompt.arguments.ordered:
        about = f": {' '.join(one.description.split())}" if one.description else ""
        yield f"- `{opened}{one.name}{closed}`{'' if one.required else ' (may be left out)'}{about}"


def _files(prompt: CompiledPrompt, body: str) -> dict[str, SpooledBytes]:
    fields = {"name": skill_name(prompt.name), "description": " ".join((prompt.description or "").split())}
    for _, fault, hint in check_fields(fields, fields["name"]):
        refuse(prompt, f"as a skill, {fault}: {hint}")
    return {SKILL_FILE: keep(write_skill(fields, body))}
