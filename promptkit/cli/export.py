"""``promptkit export``: write prompts to folders that clients read, or remove the files written earlier."""

import os
import re
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.catalog.skill_access import without_skill_prompts
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, format_count, print_error
from promptkit.cli.key_values import ArgumentSyntaxError, read_arguments
from promptkit.cli.loading import format_unknown, load_for_files
from promptkit.cli.output import Output
from promptkit.clients.installed_files import (
    FILE,
    FolderChange,
    FolderChangeError,
    describe_failure,
    files_by_skill,
    plan_folder_change,
)
from promptkit.errors.exceptions import UnknownPromptError
from promptkit.errors.suggestions import nearest
from promptkit.exports import client_files
from promptkit.exports.client_files import ClientFileError, FrozenPrompt, LiveCommand, eval_files, freeze
from promptkit.files.folder import Folder
from promptkit.files.reading import HashedBytes
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.targets import format_render_targets, is_within, split_prefix, split_target, with_path

#: The name of the file that records which files were written to a folder.
RECORD: Final = ".promptkit-export.json"

#: The line that ends typed input, and the pattern that finds it in an existing file.
_END_LINE: Final = "end-{}"
_END_PATTERN: Final = re.compile(rb"--typed (end-[0-9a-f]{32})\b")

_MAX_BYTES: Final = 1024 * 1024

#: The format for the cases of skills.
_EVALS: Final = "skill-evals"

#: The suffix of a slash command's file, and the functions that return its frozen and its live content.
_Commands = tuple[str, Callable[[FrozenPrompt], bytes], Callable[[LiveCommand], bytes]]
_COMMANDS: Final[dict[str, _Commands]] = {
    "claude-commands": (".md", client_files.claude_command, client_files.live_claude_command),
    "gemini-commands": (".toml", client_files.gemini_command, client_files.live_gemini_command),
}


def run(options: Namespace, output: Output) -> int:
    """
    Write prompts and skills as files for a client, or remove the files that were written.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    _check_options(options)
    folder, collected = Folder.named(options.folder), _CollectedFiles()
    try:
        if not options.remove:
            if (catalog := load_for_files(options.targets, cases=options.form == _EVALS)) is None:
                return Exit.FAILED
            collected = _collect_files(options, folder, catalog)
        for reason, names in collected.rejected.items():
            print_error(_describe_error(reason, names))
        selected = {_entry_name(options.form, name) for name in options.names} if options.names else None
        source = identify_recipes(options.targets, os.curdir if _is_in_current_folder(options) else None)
        change = plan_folder_change(folder, collected.files, source, RECORD, selected)
        if not options.dry_run:
            change.apply()
    except UnknownPromptError as error:
        return fail(format_unknown(error, options), Exit.USAGE)
    except FolderChangeError as error:
        return fail(escape_invisible(f"nothing was changed: {error}", one_line=True), Exit.FAILED)
    except OSError as error:
        return fail(describe_failure(options.folder, error), Exit.FAILED)
    noun = "command" if options.form in _COMMANDS else "skill"
    is_done = not options.dry_run
    output.print_lines(describe_change(change, folder.display_root, noun, "wrote {} to {}", is_done=is_done))
    output.print_lines(f"    {line}" for line in collected.lines)
    return Exit.FAILED if collected.rejected else Exit.OK


def _check_options(options: Namespace) -> None:
    """Raise a usage error if options conflict, or if the output folder is inside the recipes."""
    if options.remove and options.live:
        options.error("--live cannot be combined with --remove")
    for option in ("--set", "--lossy"):
        if vars(options)[option[2:]] and (options.remove or options.live):
            options.error(f"{option} is for frozen files: omit it with --live or --remove")
    if any(
        is_within(os.path.realpath(options.folder), os.path.realpath(split_target(target)[0]))
        for target in options.targets
    ):
        options.error(f"{options.folder!r} is inside the recipes: choose another folder")


class _CollectedFiles(Struct):
    """
    The files to write.

    Args:
        files:
            The files for each entry in the output folder, keyed by the entry's name.

        lines:
            Lines to print about frozen arguments, and about files whose text can differ from the prompt's.

        rejected:
            The names of the prompts that cannot be exported, keyed by reason.
    """

    files: dict[str, dict[str, HashedBytes]] = {}
    lines: list[str] = []
    rejected: dict[str, list[str]] = {}


def _describe_error(reason: str, names: Sequence[str]) -> str:
    """Return one line for all prompts that cannot be exported for the same reason."""
    if not names:
        return reason
    return f"prompt{'s' * (len(names) > 1)} {', '.join(map(repr, names))} cannot be exported: {reason}"


def _collect_files(options: Namespace, folder: Folder, catalog: Catalog) -> _CollectedFiles:
    """
    Return the files to write, and the reasons why prompts cannot be exported.

    Raises:
        UnknownPromptError: If there is no prompt or skill with one of the given names.

        FolderChangeError: If two prompts or skills would be written to entries with the same name.
    """
    if options.form not in _COMMANDS:
        catalog = without_skill_prompts(catalog)
    skill_names = [skill.name for skill in catalog.skills]
    for name in options.names:
        if name not in catalog and name not in skill_names:
            raise UnknownPromptError(name, nearest(name, (*catalog, *skill_names)))
    names = options.names or (*catalog, *(skill_names if options.form == "skills" else ()))
    if options.form == _EVALS:
        names = options.names or [skill.name for skill in catalog.skills if skill.saved()]
        if not names:
            reason = "no skill has cases: save a request with NAME.case('...'), or in a skill's metadata"
            return _CollectedFiles(rejected={reason: []})
    _check_values(options, [catalog[name] for name in names if name in catalog])
    collected = _CollectedFiles()
    for name in names:
        try:
            entry_files = _build_files(options, folder, catalog, name, collected.lines)
        except ClientFileError as error:
            rejected = collected.rejected.setdefault(error.reason, [])
            rejected += [] if error.prompt is None else [error.prompt]
            continue
        if shared := entry_files.keys() & collected.files.keys():
            files = ", ".join(sorted(shared))
            msg = f"{name!r} and another prompt or skill would both be written to {files}: rename one of them"
            raise FolderChangeError(msg)
        collected.files |= entry_files
    return collected


def _check_values(options: Namespace, prompts: Sequence[CompiledPrompt]) -> None:
    """Raise a usage error if ``--set`` names an argument that no prompt has."""
    known = {name for prompt in prompts for name in prompt.arguments.by_name}
    for name in (word.partition("=")[0] for word in options.set):
        if name not in known:
            similar = nearest(name, known)
            hint = f"; did you mean {similar!r}?" if similar else ""
            options.error(f"--set: no prompt has an argument {name!r}{hint}")


def _entry_name(form: str, name: str) -> str:
    """Return the name of the file or folder for a prompt or a skill."""
    return f"{name}{_COMMANDS[form][0]}" if form in _COMMANDS else client_files.skill_name(name)


def _build_files(
    options: Namespace, folder: Folder, catalog: Catalog, name: str, lines: list[str]
) -> Mapping[str, dict[str, HashedBytes]]:
    """
    Return the files for a prompt or a skill, keyed by the entry's name in the output folder.

    Lines to print about frozen values are appended to *lines*.
    """
    form = options.form
    if form == _EVALS:
        skill = next((skill for skill in catalog.skills if skill.name == name), None)
        if skill is None or not skill.saved():
            msg = f"{name!r} is not a skill with cases"
            raise ClientFileError(msg)
        return {name: {path: HashedBytes(content) for path, content in eval_files(skill).items()}}
    if name not in catalog:
        if form != "skills":
            msg = f"{name!r} is a skill: export it with 'promptkit export skills'"
            raise ClientFileError(msg)
        return files_by_skill(skill for skill in catalog.skills if skill.name == name)
    prompt, entry = catalog[name], _entry_name(form, name)
    if options.live:
        command = LiveCommand(prompt, _format_targets(options), _choose_end_line(folder, entry))
        if form in _COMMANDS:
            _, _, live_content = _COMMANDS[form]
            return {entry: {FILE: HashedBytes(live_content(command))}}
        files = client_files.live_skill_files(command)
    else:
        frozen = freeze(prompt, _read_values(options, prompt), lossy=options.lossy)
        if form in _COMMANDS:
            _, frozen_content, _ = _COMMANDS[form]
            files = {FILE: HashedBytes(frozen_content(frozen))}
        else:
            files = client_files.skill_files(frozen)
        if frozen.values:
            values = (f"{argument}={value}" for argument, value in frozen.values.items())
            lines.append(f"frozen in {entry}: {', '.join(values)}")
        if frozen.difference:
            lines.append(f"differs in {entry}: {frozen.difference}")
    return {entry: client_files.require_explicit_use(files) if form == "codex" else files}


def _read_values(options: Namespace, prompt: CompiledPrompt) -> dict[str, str]:
    """Return the values of ``--set`` for the arguments of a prompt."""
    words = [word for word in options.set if word.partition("=")[0] in prompt.arguments.by_name]
    try:
        return read_arguments(prompt.arguments, words, Path.cwd())
    except ArgumentSyntaxError as error:
        msg = f"--set: {error}"
        raise ClientFileError(msg) from None


def _choose_end_line(folder: Folder, entry: str) -> str:
    """Return the line that ends typed input. An existing file keeps its line, so its content is unchanged."""
    try:
        match = _END_PATTERN.search(folder.read(entry, _MAX_BYTES))
    except OSError:
        match = None
    return match[1].decode() if match else _END_LINE.format(secrets.token_hex(16))


def _format_targets(options: Namespace) -> str:
    """
    Return the targets as words of a live command; ``""`` if the command itself finds the configured targets.

    Paths are absolute, unless the command runs in the project.
    """
    is_in_current_folder = _is_in_current_folder(options)
    if is_in_current_folder and not options.has_targets:
        return ""
    targets = options.targets if is_in_current_folder else [*map(_make_absolute, options.targets)]
    return format_render_targets(targets, client_files.require_shell_word)


def _make_absolute(target: str) -> str:
    path, _ = split_target(target)
    is_path = os.path.exists(path)  # noqa: PTH110 (a module is not a path)
    return with_path(target, os.path.abspath(path)) if is_path else target  # noqa: PTH100 (text)


def _is_in_current_folder(options: Namespace) -> bool:
    """Return whether the output folder is inside the current folder, like the folders of a project."""
    return is_within(os.path.realpath(options.folder), os.path.realpath("."))


def identify_recipes(targets: Sequence[str], project: str | None) -> str:
    """
    Return an identifier for the recipes, which consists of their paths.

    If *project* is not None, the paths are relative to it, so that they are the same on every machine.
    """
    paths = [split_prefix(target)[1] for target in targets]  # recipes with another prefix are the same
    if project is not None:
        return " ".join(Path(os.path.relpath(path, project)).as_posix() for path in paths)
    return os.pathsep.join(map(os.path.realpath, paths))


def describe_change(
    change: FolderChange, subject: object, noun: str, written: str, *, is_done: bool
) -> Iterator[str]:
    """
    Yield the lines that report a change.

    *subject* is the folder or client that receives the files. *noun* is the word for a written item, such as
    ``skill``. *written* is the text before the names of written items, with placeholders for their number and
    the subject.
    """
    if not change.is_needed:
        yield f"{subject}: nothing to change"
    elif is_done:
        if change.removed_names or not change.names:
            yield _list_names("removed {} from {}", change.removed_names, subject, noun)
        if change.names:
            yield _list_names(written, change.names, subject, noun)
    else:
        yield from (f"would write {change.folder.display_root / path}" for path in sorted(change.writes))
        yield from (f"would remove {change.folder.display_root / path}" for path in sorted(change.removes))


def _list_names(introduction: str, names: Sequence[str], subject: object, noun: str) -> str:
    listed = f": {', '.join(names)}" if names else ""
    return f"{introduction.format(format_count(len(names), noun), subject)}{listed}"
