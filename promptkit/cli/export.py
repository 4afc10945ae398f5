"""``promptkit export``: prompts as files of clients that read folders, written and removed again."""

import os
import re
import secrets
from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail, print_error
from promptkit.cli.loading import load_catalog, report_faults, report_hidden
from promptkit.cli.not_found import told_unknown
from promptkit.cli.output import Output
from promptkit.clients.folders import (
    FILE,
    FolderChange,
    FolderRefusedError,
    describe_failure,
    files_by_skill,
    folder_change,
)
from promptkit.errors.exceptions import UnknownPromptError
from promptkit.errors.suggestions import nearest
from promptkit.exports.client_files import claude, gemini, skills
from promptkit.exports.client_files.prompts import ExportRefusedError, LiveCommand, target_word
from promptkit.files.folder import Folder
from promptkit.files.scratch import SpooledBytes, keep
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.targets import is_within, split_target

#: Beside what was written: what that is.
NOTE: Final = ".promptkit-export.json"

#: The line that ends what was typed, and where a file that was written before has it.
_END: Final = "end-{}"
_ENDED: Final = re.compile(rb"--typed (end-[0-9a-f]{32})\b")

_MOST_BYTES: Final = 1024 * 1024

#: What the file of a slash command is called, and what it holds.
_Commands = tuple[str, Callable[[CompiledPrompt], bytes], Callable[[LiveCommand], bytes]]
_COMMANDS: Final[dict[str, _Commands]] = {
    "claude-commands": (".md", claude.frozen, claude.live),
    "gemini-commands": (".toml", gemini.frozen, gemini.live),
}


def run(options: Namespace, output: Output) -> int:
    """
    Write prompts as files of a client, or remove those that were written.

    Raises:
        LoadError: If there is nothing at the target.
    """
    if options.remove and options.live:
        options.refuse("--remove takes no --live: it removes whatever was written")
    if any(is_within(os.path.realpath(options.folder), os.path.realpath(one)) for one in options.targets):
        options.refuse(f"{options.folder!r} lies in the recipes: name another folder")
    folder, wanted, is_whole = Folder.named(options.folder), dict[str, dict[str, SpooledBytes]](), True
    try:
        if not options.remove:
            catalog = load_catalog(options.targets)
            report_faults(catalog)
            if not catalog.healthy:
                return fail("nothing was written: fix the faults above", Exit.FAULTY)
            report_hidden(catalog, None)
            wanted, is_whole = _wanted(options, folder, catalog.visible_to(frozenset()))
        only = {_entry(options.form, name) for name in options.names} if options.names else None
        change = folder_change(folder, wanted, _source(options), NOTE, only)
        if not options.dry_run:
            change.carry_out()
    except UnknownPromptError as error:
        return fail(told_unknown(error, options), Exit.USAGE)
    except FolderRefusedError as error:
        return fail(escape_invisible(f"nothing was changed: {error}", one_line=True), Exit.FAULTY)
    except OSError as error:
        return fail(describe_failure(options.folder, error), Exit.FAULTY)
    noun = "command" if options.form in _COMMANDS else "skill"
    output.print_lines(_lines(change, noun, is_done=not options.dry_run))
    return Exit.FINE if is_whole else Exit.FAULTY


def _wanted(
    options: Namespace, folder: Folder, catalog: Catalog
) -> tuple[dict[str, dict[str, SpooledBytes]], bool]:
    """What is to be in the folder, and whether that is all that was asked for."""
    skill_names = [skill.name for skill in catalog.skills]
    for name in options.names:
        if name not in catalog and name not in skill_names:
            raise UnknownPromptError(name, nearest(name, (*catalog, *skill_names)))
    wanted, is_whole = dict[str, dict[str, SpooledBytes]](), True
    for name in options.names or (*catalog, *(skill_names if options.form == "skills" else ())):
        try:
            found = _files(options, folder, catalog, name)
        except ExportRefusedError as error:
            print_error(str(error))
            is_whole = False
            continue
        if found.keys() & wanted.keys():
            msg = f"{', '.join(found)} would hold two of them, and {name!r} is one: rename it"
            raise FolderRefusedError(msg)
        wanted |= found
    return wanted, is_whole


def _entry(form: str, name: str) -> str:
    """What lies in the folder for a prompt, or a skill."""
    return f"{name}{_COMMANDS[form][0]}" if form in _COMMANDS else skills.skill_name(name)


def _files(
    options: Namespace, folder: Folder, catalog: Catalog, name: str
) -> Mapping[str, dict[str, SpooledBytes]]:
    """What is written for a prompt, or a skill."""
    form, live = options.form, options.live
    if name not in catalog:
        if form != "skills":
            msg = f"{name!r} is a skill: write it with 'promptkit export skills'"
            raise ExportRefusedError(msg)
        return files_by_skill(one for one in catalog.skills if one.name == name)
    prompt, entry = catalog[name], _entry(form, name)
    command = LiveCommand(prompt, _target(options), _end(folder, entry)) if live else None
    if form in _COMMANDS:
        _, frozen, made_live = _COMMANDS[form]
        return {entry: {FILE: keep(frozen(prompt) if command is None else made_live(command))}}
    files = skills.frozen(prompt) if command is None else skills.live(command)
    return {entry: skills.only_when_asked(files) if form == "codex" else files}


def _end(folder: Folder, entry: str) -> str:
    """The line that ends what was typed: that of a file that is there, so that it stays as it is."""
    try:
        found = _ENDED.search(folder.read(entry, _MOST_BYTES))
    except OSError:
        found = None
    return found[1].decode() if found else _END.format(secrets.token_hex(16))


def _target(options: Namespace) -> str:
    """The target as a command names it that runs in the project; elsewhere, it needs the whole path."""
    first, *others = options.targets
    if others:
        msg = f"'promptkit render' takes one target, and there are {len(options.targets)}: name one"
        raise ExportRefusedError(msg)
    if _is_inside(options):
        return target_word(first) if options.has_targets else ""
    place, item = split_target(first)
    is_path = os.path.exists(place)  # noqa: PTH110 (a module is no path)
    whole = os.path.abspath(place) + (item and f":{item}") if is_path else first  # noqa: PTH100
    return target_word(whole)


def _is_inside(options: Namespace) -> bool:
    """Whether the files lie in the current folder, as those of a project do."""
    return is_within(os.path.realpath(options.folder), os.path.realpath("."))


def _source(options: Namespace) -> str:
    """What the files are made of: for a project's folder as others have it, too."""
    if _is_inside(options):
        return " ".join(Path(os.path.relpath(target)).as_posix() for target in options.targets)
    return os.pathsep.join(os.path.realpath(target) for target in options.targets)


def _lines(change: FolderChange, noun: str, *, is_done: bool) -> Iterator[str]:
    if not change.is_needed:
        yield f"{change.folder.shown}: nothing to change"
    elif is_done:
        names = f": {', '.join(change.names)}" if change.names else ""
        yield f"{change.folder.shown} has {counted(len(change.names), noun)} of these recipes{names}"
        yield from (f"    removed: {name}" for name in change.gone)
    else:
        yield from (f"would write {change.folder.shown / path}" for path in sorted(change.writes))
        yield from (f"would remove {change.folder.shown / path}" for path in sorted(change.removes))
