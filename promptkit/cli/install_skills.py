"""
``promptkit install --skills`` and ``uninstall --skills``: skills in the folders where clients look for them.
"""

from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from promptkit.catalog.skills import CompiledSkill
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail
from promptkit.cli.export import describe_change, identify_recipes
from promptkit.cli.loading import load_for_files
from promptkit.cli.options import configured_targets
from promptkit.cli.output import Output
from promptkit.clients.configuration_files import ConfigurationFile
from promptkit.clients.installed_files import (
    FolderChange,
    FolderChangeError,
    describe_failure,
    has_skills,
    skill_change,
)
from promptkit.clients.profiles import INSTALLABLE, get_client
from promptkit.fragments.invisible import escape_invisible


def change_skills(options: Namespace, configurations: Sequence[ConfigurationFile], output: Output) -> int:
    """
    Write the skills into the folders that clients read, or remove the skills written by promptkit.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    if options.url is not None or options.name is not None:
        options.error("--skills writes folders: omit --url and --name")
    configurations = _with_folders(options, configurations)
    targets: Sequence[str] = () if options.all else configured_targets(options)
    skills = _load_skills(targets) if options.command == "install" else ()
    if skills is None:
        return Exit.FAILED
    code, reports = Exit.OK, list[dict[str, Any]]()
    for configuration in configurations:
        try:
            folder = configuration.skills_folder()
            if options.all and not has_skills(folder):
                continue
            project = configuration.project if configuration.scope == "project" else None
            source = None if options.all else identify_recipes(targets, project)
            change = skill_change(folder, skills, source, configuration.client)
            reports.append(_apply(change, configuration, options, output))
        except FolderChangeError as error:
            text = escape_invisible(f"nothing was changed: {error}", one_line=True)
            code = fail(text, Exit.FAILED)
        except OSError as error:
            code = fail(describe_failure(configuration.skills or "", error), Exit.FAILED)
    if options.json and (options.all or len(configurations) > 1):
        output.print_json({"changes": reports})
    elif options.json and reports:
        output.print_json(reports[0])
    elif options.all and not reports and code == Exit.OK:
        output.print_lines(["no skills from promptkit were found: nothing to change"])
    return code


def _with_folders(options: Namespace, configurations: Sequence[ConfigurationFile]) -> list[ConfigurationFile]:
    """Return the configurations of clients that read skills from folders; a named client must."""
    for configuration in configurations if options.clients else ():
        if configuration.skills is None:
            readers = ", ".join(name for name, client in INSTALLABLE.items() if client.skills)
            options.error(
                f"{configuration.title} does not read skills from folders; these clients do: {readers}"
            )
    return [configuration for configuration in configurations if configuration.skills is not None]


def _load_skills(targets: Sequence[str]) -> tuple[CompiledSkill, ...] | None:
    """Return the skills in the recipes; if there are none, or errors, print that and return None."""
    if (catalog := load_for_files(targets)) is None:
        return None
    if not (skills := catalog.skills):
        fail("these recipes have no skills: write one with @skill, or as a folder", Exit.FAILED)
    return skills or None


def _apply(
    change: FolderChange, configuration: ConfigurationFile, options: Namespace, output: Output
) -> dict[str, Any]:
    """Make a change and print it; with ``--dry-run``, only print it."""
    is_done = not options.dry_run
    if is_done:
        change.apply()
    if not options.json:
        output.print_lines(describe_change(change, configuration.title, "skill", is_done=is_done))
        output.print_lines([f"    folder: {change.folder.display_root}"])
        output.print_lines(
            escape_invisible(f"    {name} is kept for {', '.join(clients)}", one_line=True)
            for name, clients in change.shared.items()
        )
        own_commands = get_client(configuration.client).own_commands
        output.print_lines(
            f"    {configuration.title} has its own command {name!r}: only models find the skill"
            for name in change.names
            if name in own_commands
        )
    return _data(change, configuration, is_done=is_done)


def _data(change: FolderChange, configuration: ConfigurationFile, *, is_done: bool) -> dict[str, Any]:
    return {
        "client": configuration.client,
        "scope": configuration.scope,
        "folder": str(change.folder.display_root),
        "skills": list(change.names),
        "removed": list(change.removed_names),
        "changed": change.is_needed and is_done,
        "writes": sorted(change.writes),
        "removes": sorted(change.removes),
    }
