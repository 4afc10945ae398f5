"""
Prompts as client files: slash commands and skills with a prompt's text, or with a command that renders it.

Slash commands are Markdown with frontmatter for Claude Code, and TOML for Gemini CLI. Skills cannot have
placeholders, so a model fills in the arguments or runs the command. The cases of a skill become evals for
models, in the two formats of Anthropic's skill-creator.

See https://github.com/anthropics/skills/tree/main/skills/skill-creator,
https://code.claude.com/docs/en/skills#available-string-substitutions and
https://github.com/google-gemini/gemini-cli/blob/main/docs/cli/custom-commands.md.
"""

import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, NoReturn

import msgspec
from msgspec import Struct

from promptkit.catalog.arguments import Argument
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.skills import SKILL_FILE, CompiledSkill
from promptkit.declarations.skill_frontmatter import check_fields, format_skill
from promptkit.errors.exceptions import ArgumentsError, PromptkitError
from promptkit.exports.templates import Placeholder, PromptTemplate, TemplateError, template_of
from promptkit.files.reading import HashedBytes
from promptkit.types.conversion_reasons import short
from promptkit.types.unstructuring import can_be_sent, text_of
from promptkit.workspace.paths import UNAVAILABLE

#: The alternatives that error messages suggest.
LIVE_HINT: Final = "use --live to write a file that renders the prompt on each use"
_LOSSY_HINT: Final = "use --lossy to accept the difference"

#: Placeholders that Claude Code leaves in the text if the user types nothing for them. ``promptkit import``
#: uses them as defaults.
_UNFILLED: Final = re.compile(r"\$(?:\w+|ARGUMENTS\[\d+\])")


class ClientFileError(PromptkitError):
    """
    A prompt cannot be exported for a client.

    Args:
        reason:
            The reason, and how to fix the problem.

        prompt:
            The prompt's name; None if the reason does not concern a single prompt.
    """

    def __init__(self, reason: str, prompt: str | None = None) -> None:
        super().__init__(reason, prompt)
        self.reason = reason
        self.prompt = prompt

    def __str__(self) -> str:
        subject = "" if self.prompt is None else f"prompt {self.prompt!r} cannot be exported: "
        return f"{subject}{self.reason}"


def reject(prompt: CompiledPrompt, reason: str) -> NoReturn:
    """Raise a `ClientFileError` for a prompt."""
    raise ClientFileError(reason, prompt.name) from None


class FrozenPrompt(Struct, frozen=True):
    """
    A prompt as text with placeholders.

    Args:
        prompt:
            The prompt.

        parts:
            The text, as strings and placeholders.

        placeholders:
            The arguments that have become placeholders, in the order of the signature.

        values:
            The values of all other arguments, keyed by name, in the form in which messages show them.

        difference:
            A sentence that shows a value for which the prompt's rendering differs from the text; empty if no
            such value is known.
    """

    prompt: CompiledPrompt
    parts: tuple[str | Placeholder, ...]
    placeholders: tuple[Argument, ...]
    values: Mapping[str, str]
    difference: str = ""


def freeze(
    prompt: CompiledPrompt, values: Mapping[str, str] = MappingProxyType({}), *, lossy: bool = False
) -> FrozenPrompt:
    """
    Freeze the arguments that have a value or a default, and return the text with placeholders for the others.

    An optional argument also becomes a placeholder if its default is blank or is itself a placeholder of a
    client. However, if a blank value makes the prompt omit other text, the argument is frozen at its default.

    Args:
        prompt:
            The prompt.

        values:
            Values to freeze, keyed by argument name, in the form that clients send.

        lossy:
            Whether to accept text that matches the rendering only for plain words, if there is no better
            text.

    Raises:
        ClientFileError: If a required argument without a value does not accept any text, an argument is
            secret, the rendering has content other than user text, or no template reproduces the rendering.
    """
    fixed: dict[str, Any] = dict(values)
    for argument in prompt.arguments.ordered:
        name = argument.name
        if argument.arg.secret:
            reject(prompt, f"argument {name!r} is secret, but clients store the arguments that users type")
        if argument.required and name not in fixed and not argument.blank_is_value:
            hint = f"use --set {name}=VALUE to freeze it, or {LIVE_HINT}"
            expected = argument.reader.expected
            reject(prompt, f"{name!r} requires {expected}, but a placeholder accepts any text: {hint}")
        if not argument.required and not _is_placeholder(argument):
            fixed.setdefault(name, None)
    template, difference = _build_template(prompt, fixed, lossy=lossy)
    for number, turn in enumerate(template.turns, 1):
        if turn.role != "user":
            reject(prompt, f"turn {number} has the role {turn.role!r}, but a file can contain only user text")
    parts = tuple(
        part for number, turn in enumerate(template.turns) for part in (*["\n\n"][:number], *turn.parts)
    )
    placeholders = tuple(
        argument for argument in prompt.arguments.ordered if Placeholder(argument.name) in parts
    )
    shown = {
        argument.name: short.repr(
            values[argument.name] if argument.name in values else _current_default(argument)
        )
        for argument in prompt.arguments.ordered
        if argument not in placeholders
    }
    return FrozenPrompt(prompt, parts, placeholders, shown, difference)


def _is_placeholder(argument: Argument) -> bool:
    """Return whether an optional argument's default is what a client inserts if the user types nothing."""
    default = argument.default
    if not argument.blank_is_value or argument.arg.env or not isinstance(default, str):
        return False
    return not default or _UNFILLED.fullmatch(default) is not None


def _current_default(argument: Argument) -> Any:
    """Return the current default of an optional argument, as text if clients could send it as an argument."""
    default = argument.default if argument.default_text is None else argument.default_text
    return text_of(default) if default is not None and can_be_sent(default) else default


def _build_template(
    prompt: CompiledPrompt, fixed: Mapping[str, Any], *, lossy: bool
) -> tuple[PromptTemplate, str]:
    """
    Return a template with placeholders for the arguments that are not fixed.

    Also return a sentence about how the template can differ from the rendering; ``""`` if it does not differ.
    """
    optional = [
        argument
        for argument in prompt.arguments.ordered
        if not argument.required and argument.name not in fixed
    ]
    blank = [argument.name for argument in optional if not argument.default]
    # Clients insert lines unchanged, but `fill` indents them.
    one_line = [argument.name for argument in optional]
    attempts = [(fixed, False)]
    without_blank = {**fixed, **dict.fromkeys(blank)}
    if blank:
        attempts.append((without_blank, False))
    if lossy:
        attempts.append((without_blank, True))
    reason, hint = "", LIVE_HINT
    token = UNAVAILABLE.set("it uses the workspace, whose current content would be frozen in the file")
    try:
        for values, is_lossy in attempts:
            try:
                template = template_of(prompt, values, one_line=one_line, lossy=is_lossy)
            except TemplateError as error:
                reason = error.reason.rpartition(": give ")[0] or error.reason
                hint = f"{_LOSSY_HINT}, or {LIVE_HINT}" if error.is_close else LIVE_HINT
            else:
                return template, reason if is_lossy else ""
        reject(prompt, f"{reason}: {hint}")
    except ArgumentsError as error:
        reject(prompt, "; ".join(map(str, error.errors)))
    finally:
        UNAVAILABLE.reset(token)


class LiveCommand(Struct, frozen=True):
    """
    The command line that renders a prompt with the text that the user types.

    Args:
        prompt:
            The prompt.

        target:
            The words of the command line that name the targets; ``""`` for the configured targets.

        end:
            The line that marks the end of the typed text. Users cannot guess it.
    """

    prompt: CompiledPrompt
    target: str
    end: str

    def __post_init__(self) -> None:
        if self.prompt.arguments.secret:
            reject(self.prompt, "it has a secret argument, which 'promptkit render' redacts in its output")

    @property
    def base_command(self) -> str:
        """The command line without arguments. It contains nothing that a shell or a client would expand."""
        return f"promptkit render {self.target and f'{self.target} '}{self.prompt.name}"

    @property
    def command_line(self) -> str:
        """The command line that reads the typed text from standard input."""
        return f"{self.base_command} --typed {self.end}"


def _reject_at(prompt: CompiledPrompt, text: str, offset: int, syntax: str) -> NoReturn:
    """Raise a `ClientFileError` for the part of *text* at *offset*, which a client would interpret."""
    line = text.count("\n", 0, offset) + 1
    reject(prompt, f"line {line} of its text contains {syntax}, which cannot be escaped: {LIVE_HINT}")


def _argument_hint(prompt: CompiledPrompt) -> str:
    """Return the argument hint that clients show: the optional arguments first, then the required ones."""
    ordered = sorted(prompt.arguments.ordered, key=lambda argument: argument.required)
    return " ".join(f"[{argument.name}{'' if argument.required else '='}]" for argument in ordered)


def require_shell_word(target: str) -> str:
    """
    Return *target* if it can be a word of a shell command without quotes.

    Raises:
        ClientFileError: If a shell or a client would interpret a part of *target*.
    """
    if shlex.quote(target) != target or target.startswith("-"):
        msg = (
            f"the target {target!r} cannot be part of a command: rename it so that it contains no spaces or "
            f"special characters"
        )
        raise ClientFileError(msg)
    return target


#: Matches the start of a placeholder of Claude Code. A backslash before it escapes the placeholder.
_CLAUDE_PLACEHOLDER: Final = re.compile(r"\$(?=[0-9]+(?!\w)|ARGUMENTS)")

#: Syntax that Claude Code interprets and that cannot be escaped, with descriptions for error messages.
_CLAUDE_RESERVED: Final = {
    re.compile(r"\\\$(?=[0-9]|ARGUMENTS)"): r"a backslash before a placeholder of Claude Code, such as '\$1'",
    re.compile(r"\$\{CLAUDE_"): "'${CLAUDE_', a placeholder of Claude Code",
    re.compile(r"(?<!\S)!`|```!"): "the beginning of a command that Claude Code runs",
    re.compile(r"(?<!\S)@(?=\S)"): "'@', after which Claude Code expects a file name",
}


def claude_command(frozen: FrozenPrompt) -> bytes:
    """
    Return the file of a slash command for Claude Code with the text of a prompt.

    Raises:
        ClientFileError: If Claude Code would interpret a part of the text.
    """
    prompt, parts = frozen.prompt, frozen.parts
    text = "".join(part if isinstance(part, str) else f"<{part.name}>" for part in parts)
    for syntax, description in _CLAUDE_RESERVED.items():
        if (match := syntax.search(text)) is not None:
            _reject_at(prompt, text, match.start(), description)
    names = [argument.name for argument in frozen.placeholders]
    # If the user types nothing, Claude Code leaves numbered placeholders in the text, but removes $ARGUMENTS.
    is_numbered = len(names) > 1 or any(arg.has_default and arg.default for arg in frozen.placeholders)
    body = ""
    for part in parts:
        if isinstance(part, Placeholder):
            if body.endswith("\\"):
                _reject_at(prompt, body, len(body), "a backslash before an argument")
            body += f"$ARGUMENTS[{names.index(part.name)}]" if is_numbered else "$ARGUMENTS"
            continue
        if body.endswith("$ARGUMENTS") and part.startswith("["):
            _reject_at(prompt, body, len(body), "'[' after an argument, where Claude Code expects its number")
        body += _CLAUDE_PLACEHOLDER.sub(r"\\$", part)
    return _claude_file(prompt, " ".join(f"[{name}]" for name in names), body)


def live_claude_command(command: LiveCommand) -> bytes:
    """
    Return the file of a slash command for Claude Code that renders a prompt with the typed text.

    Claude Code inserts the typed text into the block verbatim before a shell runs the block. Therefore, the
    text is in a here-document with an unguessable last line. A user who knows that line can end the document
    early, so that the shell would parse the rest of the text as commands. However, Claude Code does not run a
    block with a command that is not allowed.
    """
    end, command_line = command.end, command.command_line
    block = f"```!\n{command_line} <<'{end}.'\n.$ARGUMENTS\n{end}\n{end}.\n```"
    hint = _argument_hint(command.prompt)
    return _claude_file(command.prompt, hint, block, **{"allowed-tools": f"Bash({command_line} *)"})


def _claude_file(prompt: CompiledPrompt, hint: str, body: str, **fields: str) -> bytes:
    # A model that could invoke the command would also choose the typed text.
    frontmatter = {
        "description": " ".join((prompt.description or prompt.title or "").split()),
        "argument-hint": hint,
        "disable-model-invocation": "true",
        **fields,
    }
    return format_skill({key: value for key, value in frontmatter.items() if value}, body)


#: Characters that must be escaped in a multi-line TOML string.
_TOML_ESCAPED: Final = re.compile(r'[\\\x00-\x08\x0b-\x1f\x7f]|"(?="")|"\Z')


def gemini_command(frozen: FrozenPrompt) -> bytes:
    """
    Return the file of a slash command for Gemini CLI with the text of a prompt.

    Raises:
        ClientFileError: If the prompt has more than one placeholder, or if Gemini CLI would interpret a part
            of the text.
    """
    prompt, parts = frozen.prompt, frozen.parts
    if len(names := [argument.name for argument in frozen.placeholders]) > 1:
        reason = (
            "Gemini CLI has only one placeholder, {{args}}, for all typed text, but the prompt has the "
            "arguments "
        )
        listed = ", ".join(map(repr, names))
        reject(prompt, f"{reason}{listed}: use --live to write a file that distinguishes them")
    literal = "".join(part if isinstance(part, str) else "\0" for part in parts)
    if "{{args}}" in literal:
        _reject_at(prompt, literal, literal.index("{{args}}"), "'{{args}}', a placeholder of Gemini CLI")
    text = "".join(part if isinstance(part, str) else "{{args}}" for part in parts)
    if (match := re.search(r"[!@]\{", text)) is not None:
        subject = "a command" if match[0] == "!{" else "the name of a file"
        _reject_at(prompt, text, match.start(), f"{match[0]!r}, after which Gemini CLI expects {subject}")
    return _gemini_file(prompt, text)


def live_gemini_command(command: LiveCommand) -> bytes:
    """
    Return the file of a slash command for Gemini CLI that renders a prompt with the typed text.

    Inside the braces, Gemini CLI quotes the typed text as one shell word, except for a leading ``~``. The
    placeholder itself is not in quotes. If the typed text contains ``$'``, JavaScript expands it to the
    text after the placeholder, which replaces the closing quote. This causes a syntax error in the shell, so
    that no command runs.
    """
    shell_command = f"printf %s\\\\n .{{{{args}}}} {command.end} | {command.command_line}"
    return _gemini_file(command.prompt, f"!{{{shell_command}}}")


def _gemini_file(prompt: CompiledPrompt, text: str) -> bytes:
    description = " ".join((prompt.description or prompt.title or prompt.name).split())
    escaped = _TOML_ESCAPED.sub(lambda match: json.dumps(match[0])[1:-1].replace("\x7f", "\\u007f"), text)
    quoted = json.dumps(description, ensure_ascii=False).replace("\x7f", "\\u007f")
    return f'description = {quoted}\nprompt = """\n{escaped}"""\n'.encode()


#: The instructions for passing arguments, in a skill that runs a command.
_ARGUMENTS_HINT: Final = (
    "Add each argument as `NAME=VALUE`, quoted so that the shell does not interpret it. Write a value "
    "that is long, has several lines or comes from an untrusted source to a file, and pass `NAME=@FILE`."
)


def skill_name(name: str) -> str:
    """Return the name of the skill for a prompt, in the syntax that the format of skills requires."""
    return name.lower().replace("_", "-")


def skill_files(frozen: FrozenPrompt) -> dict[str, HashedBytes]:
    """
    Return the files of a skill with the text of a prompt, in which a marker replaces each argument.

    Raises:
        ClientFileError: If the prompt's name or description is not valid for a skill.
    """
    prompt, parts = frozen.prompt, frozen.parts
    text = "".join(part for part in parts if isinstance(part, str))
    prefix, suffix = "{{", "}}"
    while prefix in text or suffix in text:  # braces in the text must not look like markers
        prefix, suffix = f"{prefix}{{", f"{suffix}}}"
    body = "".join(
        f"{prefix}{part.name}{suffix}" if isinstance(part, Placeholder) else part for part in parts
    )
    if not frozen.placeholders:
        return _build_skill_files(prompt, body)
    lines = _argument_lines(frozen.placeholders, prefix, suffix)
    intro = (
        "Replace each of these placeholders with the value that the user provides, and then follow the "
        "instructions below the line."
    )
    return _build_skill_files(prompt, "\n".join([intro, "", *lines, "", "---", "", body]))


def live_skill_files(command: LiveCommand) -> dict[str, HashedBytes]:
    """
    Return the files of a skill with instructions to run the command that renders a prompt.

    Raises:
        ClientFileError: If the prompt's name or description is not valid for a skill.
    """
    prompt = command.prompt
    lines = [
        "Run this command, and then follow the instructions that it prints:",
        "",
        f"    {command.base_command}",
    ]
    if prompt.arguments.ordered:
        lines += ["", _ARGUMENTS_HINT, "", *_argument_lines(prompt.arguments.ordered)]
    return _build_skill_files(prompt, "\n".join(lines))


def require_explicit_use(files: dict[str, HashedBytes]) -> dict[str, HashedBytes]:
    """Add the setting that makes Codex use a skill only if the user asks for it, as with a prompt."""
    return {**files, "agents/openai.yaml": HashedBytes(b"policy:\n  allow_implicit_invocation: false\n")}


def _argument_lines(arguments: Iterable[Argument], prefix: str = "", suffix: str = "") -> Iterator[str]:
    """Yield a Markdown list item for each argument."""
    for argument in arguments:
        text = f": {' '.join(argument.description.split())}" if argument.description else ""
        yield f"- `{prefix}{argument.name}{suffix}`{'' if argument.required else ' (optional)'}{text}"


def _build_skill_files(prompt: CompiledPrompt, body: str) -> dict[str, HashedBytes]:
    fields = {"name": skill_name(prompt.name), "description": " ".join((prompt.description or "").split())}
    for problem in check_fields(fields, fields["name"]):
        reject(prompt, f"as a skill, {problem.message}: {problem.hint}")
    return {SKILL_FILE: HashedBytes(format_skill(fields, body))}


#: The path of the file that contains the requests, and the result that a grader expects for each of them.
EVALS: Final = "evals/evals.json"

#: The path of the file that contains the requests, and whether the model should choose the skill for each of
#: them. It is for ``run_eval.py --eval-set``.
TRIGGERS: Final = "evals/triggers.json"


def eval_files(skill: CompiledSkill) -> dict[str, bytes]:
    """Return the files with a skill's evals, keyed by path relative to the skill's folder."""
    evals, triggers = [], []
    for number, case in enumerate(skill.saved(), 1):
        expected = f"The skill {skill.name!r} {'is' if case.wanted else 'is not'} used"
        run = {"id": number, "prompt": case.name, "expected_output": expected, "files": []}
        evals.append({**run, "expectations": [expected]})
        triggers.append({"query": case.name, "should_trigger": case.wanted})
    return {EVALS: _encode({"skill_name": skill.name, "evals": evals}), TRIGGERS: _encode(triggers)}


def _encode(data: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(data), indent=2) + b"\n"
