"""``promptkit export``: write prompts as files for clients that read folders, and remove them again."""

import os
import re
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail, print_error
from promptkit.cli.loading import format_unknown, load_for_files
from promptkit.cli.output import Output
from promptkit.clients.installed_files import (
    FILE,
    FolderChange,
    FolderChangeError,
    describe_failure,
    files_by_skill,
    folder_change,
)
from promptkit.errors.exceptions import UnknownPromptError
from promptkit.errors.suggestions import nearest
from promptkit.exports import client_files
from promptkit.exports.client_files import ClientFileError, LiveCommand
from promptkit.files.folder import Folder
from promptkit.files.reading import HashedBytes
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.targets import is_within, split_target

#: The file in the folder that records which files were written.
NOTE: Final = ".promptkit-export.json"

#: The line that ends typed input, and the pattern that finds it in an existing file.
_END_LINE: Final = "end-{}"
_END_PATTERN: Final = re.compile(rb"--typed (end-[0-9a-f]{32})\b")

_MAX_BYTES: Final = 1024 * 1024

#: The suffix of a slash command's file, and functions that return its frozen and its live content.
_Commands = tuple[str, Callable[[CompiledPrompt], bytes], Callable[[LiveCommand], bytes]]
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
    if options.remove and options.live:
        options.error("--live cannot be combined with --remove")
    if any(
        is_within(os.path.realpath(options.folder), os.path.realpath(target)) for target in options.targets
    ):
        options.error(f"{options.folder!r} is inside the recipes: choose another folder")
    folder, files, is_complete = Folder.named(options.folder), dict[str, dict[str, HashedBytes]](), True
    try:
        if not options.remove:
            if (catalog := load_for_files(options.targets)) is None:
                return Exit.FAILED
            files, is_complete = _collect_files(options, folder, catalog)
        selected = {_entry_name(options.form, name) for name in options.names} if options.names else None
        source = identify_recipes(options.targets, os.curdir if _is_inside(options) else None)
        change = folder_change(folder, files, source, NOTE, selected)
        if not options.dry_run:
            change.apply()
    except UnknownPromptError as error:
        return fail(format_unknown(error, options), Exit.USAGE)
    except FolderChangeError as error:
        return fail(escape_invisible(f"nothing was changed: {error}", one_line=True), Exit.FAILED)
    except OSError as error:
        return fail(describe_failure(options.folder, error), Exit.FAILED)
    noun = "command" if options.form in _COMMANDS else "skill"
    output.print_lines(describe_change(change, folder.display_root, noun, is_done=not options.dry_run))
    return Exit.OK if is_complete else Exit.FAILED


def _collect_files(
    options: Namespace, folder: Folder, catalog: Catalog
) -> tuple[dict[str, dict[str, HashedBytes]], bool]:
    """Return the files to write, and whether every requested prompt could be exported."""
    skill_names = [skill.name for skill in catalog.skills]
    for name in options.names:
        if name not in catalog and name not in skill_names:
            raise UnknownPromptError(name, nearest(name, (*catalog, *skill_names)))
    files, is_complete = dict[str, dict[str, HashedBytes]](), True
    for name in options.names or (*catalog, *(skill_names if options.form == "skills" else ())):
        try:
            entry_files = _files(options, folder, catalog, name)
        except ClientFileError as error:
            print_error(str(error))
            is_complete = False
            continue
        if entry_files.keys() & files.keys():
            msg = f"{', '.join(entry_files)} would contain two of them, including {name!r}: rename it"
            raise FolderChangeError(msg)
        files |= entry_files
    return files, is_complete


def _entry_name(form: str, name: str) -> str:
    """Return the name of the file or folder for a prompt or a skill."""
    return f"{name}{_COMMANDS[form][0]}" if form in _COMMANDS else client_files.skill_name(name)


def _files(
    options: Namespace, folder: Folder, catalog: Catalog, name: str
) -> Mapping[str, dict[str, HashedBytes]]:
    """Return the files for a prompt or a skill, by entry of the folder."""
    form, live = options.form, options.live
    if name not in catalog:
        if form != "skills":
            msg = f"{name!r} is a skill: write it with 'promptkit export skills'"
            raise ClientFileError(msg)
        return files_by_skill(skill for skill in catalog.skills if skill.name == name)
    prompt, entry = catalog[name], _entry_name(form, name)
    command = LiveCommand(prompt, _target(options), _end_line(folder, entry)) if live else None
    if form in _COMMANDS:
        _, frozen_content, live_content = _COMMANDS[form]
        data = frozen_content(prompt) if command is None else live_content(command)
        return {entry: {FILE: HashedBytes(data)}}
    files = client_files.skill_files(prompt) if command is None else client_files.live_skill_files(command)
    return {entry: client_files.require_explicit_use(files) if form == "codex" else files}


def _end_line(folder: Folder, entry: str) -> str:
    """Return the line that ends typed input; an existing file keeps its line, so that it does not change."""
    try:
        match = _END_PATTERN.search(folder.read(entry, _MAX_BYTES))
    except OSError:
        match = None
    return match[1].decode() if match else _END_LINE.format(secrets.token_hex(16))


def _target(options: Namespace) -> str:
    """Return the target for a live command: an absolute path, unless it runs in the project."""
    first, *other_targets = options.targets
    if other_targets:
        msg = f"'promptkit render' accepts one target, but {len(options.targets)} are given: use one"
        raise ClientFileError(msg)
    if _is_inside(options):
        return client_files.target_word(first) if options.has_targets else ""
    path, item = split_target(first)
    is_path = os.path.exists(path)  # noqa: PTH110 (a module is not a path)
    absolute = os.path.abspath(path) + (item and f":{item}") if is_path else first  # noqa: PTH100
    return client_files.target_word(absolute)


def _is_inside(options: Namespace) -> bool:
    """Return whether the folder is in the current folder, as a project's folder is."""
    return is_within(os.path.realpath(options.folder), os.path.realpath("."))


def identify_recipes(targets: Sequence[str], project: str | None) -> str:
    """
    Return an identifier of the recipes; in a project, relative paths, which are the same on every machine.
    """
    if project is not None:
        return " ".join(Path(os.path.relpath(target, project)).as_posix() for target in targets)
    return os.pathsep.join(os.path.realpath(target) for target in targets)


def describe_change(change: FolderChange, subject: object, noun: str, *, is_done: bool) -> Iterator[str]:
    """Yield the lines that report a change; *subject* contains the files, and *noun* names one of them."""
    if not change.is_needed:
        yield f"{subject}: nothing to change"
    elif is_done:
        names = f": {', '.join(change.names)}" if change.names else ""
        yield f"{subject} has {counted(len(change.names), noun)} from these recipes{names}"
        yield from (f"    removed: {name}" for name in change.removed_names)
    else:
        yield from (f"would write {change.folder.display_root / path}" for path in sorted(change.writes))
        yield from (f"would remove {change.folder.display_root / path}" for path in sorted(change.removes))
