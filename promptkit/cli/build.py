"""``promptkit build``: write what a server of the recipes starts from, for a place that cannot be written."""

import os
from argparse import Namespace

from msgspec import structs

from promptkit.cli import Exit
from promptkit.cli.diagnostics import counted, fail, print_diagnostics
from promptkit.cli.loading import check_existence, load_catalog, report_hidden
from promptkit.cli.output import Output
from promptkit.compiler.loading.targets import is_within, split_target
from promptkit.compiler.reloading import Reloader
from promptkit.files.folder import Folder
from promptkit.fragments.invisible import escape_invisible
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.snapshot import Snapshot
from promptkit.transports.kept_lists import MADE_BY, KeptLists
from promptkit.transports.read_files import Purpose, StaleSet, noted_reads
from promptkit.transports.shell_words import ShellWords
from promptkit.transports.startup_cache import carried_file
from promptkit.version import VERSION

__all__ = ["run"]


def run(options: Namespace, output: Output) -> int:
    """
    Import the recipes, and write their lists, and what they were made from, into a file.

    With ``--skills``, write the skills into a folder in place of that.

    Raises:
        LoadError: If there is nothing at the target.
    """
    if options.skills is not None:
        return _build_skills(options, output)
    purpose = Purpose.of(options.targets, options.name, options.page_size, options.tools, options.scopes)
    if options.carried and options.out is not None:
        options.refuse("--carried lies beside the folder: leave out --out")
    if not purpose.folders or (options.carried and purpose.anywhere is None):
        check_existence(options.targets)
        named, what = " ".join(options.targets), "one folder" if options.carried else "a folder or a file"
        return fail(f"cannot build {named!r}: only {what} can be built", Exit.USAGE)
    reloader = Reloader(options.targets, lambda _: None)
    with noted_reads(*purpose.folders) as reads:
        catalog = reloader.load()
    print_diagnostics(catalog.diagnostics, output)
    try:
        files, reason = reads.files() if catalog.healthy else None, "fix the faults above"
    except StaleSet as changed:
        files, reason = None, str(changed)
    if files is None:
        output.send()
        return fail(f"nothing was built: {reason}", Exit.FAULTY)
    report_hidden(catalog, options.scopes)
    visible = catalog.visible_to(options.scopes or frozenset())
    identity = ServerInfo(options.name, VERSION)
    snapshot = Snapshot(visible, identity, options.page_size, changes=True, tools=options.tools)
    file, skill_folders = options.out or _beside(options.targets[0]), catalog.skill_folders
    kept = KeptLists(MADE_BY, purpose, files, snapshot.capabilities, reloader.names_by_file())
    if options.carried:
        (folder,) = purpose.folders
        file, skill_folders = carried_file(folder), [os.path.relpath(one, folder) for one in skill_folders]
        kept = structs.replace(
            kept, made_by="", purpose=purpose.anywhere or purpose, files=files.below(folder)
        )
    try:
        # Other users may serve it.
        kept.write_to(file, snapshot.pages(), ShellWords(), skill_folders, mode=0o644)
    except (OSError, ValueError) as error:
        return fail(f"cannot write {file!r}: {getattr(error, 'strerror', None) or error}", Exit.FAULTY)
    print(f"built {counted(len(visible), 'prompt')} into {file}", file=output)
    return Exit.FINE


def _build_skills(options: Namespace, output: Output) -> int:
    """Write the folders of skills, as agents read them."""
    from promptkit.cli.clients.folders import FolderRefused, describe_failure
    from promptkit.cli.clients.skills import skill_change

    if options.out is not None:
        options.refuse("--skills writes folders, and --out a file: leave out either")
    if any(is_within(os.path.realpath(options.skills), os.path.realpath(one)) for one in options.targets):
        options.refuse(
            f"--skills {options.skills!r} lies in the recipes, which would serve it as skills: name another"
        )
    catalog = load_catalog(options.targets)
    print_diagnostics(catalog.diagnostics, output)
    if not catalog.healthy:
        output.send()
        return fail("nothing was built: fix the faults above", Exit.FAULTY)
    report_hidden(catalog, options.scopes)
    visible = catalog.visible_to(options.scopes or frozenset())
    if not visible.skills:
        return fail(
            "there are no skills in these recipes: write one with @skill, or as a folder", Exit.FAULTY
        )
    try:
        change = skill_change(Folder.named(options.skills), visible.skills, source="")
        change.carry_out()
    except FolderRefused as error:
        return fail(escape_invisible(f"nothing was built: {error}", one_line=True), Exit.FAULTY)
    except OSError as error:
        return fail(describe_failure(options.skills, error), Exit.FAULTY)
    print(f"wrote {counted(len(change.names), 'skill')} into {options.skills}", file=output)
    return Exit.FINE


def _beside(target: str) -> str:
    """Where a set is written by default: ``recipes.compiled`` beside a first folder called ``recipes``."""
    path = os.path.realpath(split_target(target)[0])
    return f"{path.removesuffix('.py')}.compiled"
