"""Load recipes, connect to a server named with ``--server``, and run commands in other processes."""

import os
import subprocess
import sys
from argparse import Namespace
from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Final

from promptkit import compiler
from promptkit.catalog.catalog import Catalog
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, format_count, print_error, report_diagnostics
from promptkit.errors.diagnostics import Diagnostic, Owner
from promptkit.errors.exceptions import LoadError, UnknownPromptError, UnknownResourceError
from promptkit.errors.rules import Rule
from promptkit.errors.suggestions import nearest
from promptkit.loader.import_thread import timed_imports
from promptkit.loader.loader import load
from promptkit.loader.recipes import Recipes
from promptkit.loader.targets import split_target
from promptkit.protocol.capabilities import ServerInfo
from promptkit.server.identity import find_server_info
from promptkit.standard_error import say, stderr_stream

if TYPE_CHECKING:
    from promptkit.foreign.catalog import OpenServer

#: The rules that report files and folders from which no prompt was loaded.
_NOTHING_LOADED: Final = (Rule.IMPORT_FAILED, Rule.NO_PROMPTS)

#: The message if recipes with errors are served with ``--strict``.
STRICT_ERROR: Final = "nothing is served because of --strict: fix the errors above, or omit the option"


def load_recipes(targets: Sequence[str], *, cases: bool = False) -> Recipes:
    """
    Import the recipes at *targets*.

    Args:
        targets:
            Folders, files, modules, or module:object.

        cases:
            Whether to import case files as well.

    Raises:
        LoadError: If a target does not exist, or cannot be read.
    """
    try:
        with timed_imports() as before_import:
            return load(targets, before_import=before_import, cases=cases)
    except OSError as error:
        raise LoadError(" ".join(targets), error.strerror or str(error)) from None
    finally:
        stderr_stream()  # reopens standard error, which `Thread` needs, if a recipe removed it


def load_catalog(
    targets: Sequence[str],
    ignore: Collection[Rule] = (),
    *,
    lint: bool = False,
    cases: bool = False,
    elicit: bool | None = None,
) -> Catalog:
    """
    Import and compile the recipes at *targets*.

    Args:
        targets:
            Folders, files, modules, or module:object.

        ignore:
            The rules whose diagnostics are omitted.

        lint:
            Whether to report probable mistakes. This imports the case files as well.

        cases:
            Whether to import the case files.

        elicit:
            The value of the option `elicit` for prompts that do not set it.

    Raises:
        LoadError: If a target does not exist, or cannot be read.
    """
    recipes = load_recipes(targets, cases=lint or cases)
    return _without_ignored(compiler.compile(recipes, lint=lint, elicit=elicit), ignore)


def _without_ignored(catalog: Catalog, ignore: Collection[Rule]) -> Catalog:
    """Return *catalog* without the diagnostics of ignored rules."""
    return catalog.with_diagnostics(d for d in catalog.diagnostics if d.rule not in ignore)


def report_catalog_errors(catalog: Catalog, ignore: Collection[Rule] = ()) -> None:
    """Print the diagnostics of a catalog on standard error, except those of ignored rules."""
    report_diagnostics(_without_ignored(catalog, ignore).diagnostics)


def server_info_of(options: Namespace) -> ServerInfo:
    """
    Return the identity of the server, from the command line and the project of the recipes.

    Raises:
        ConfigurationError: If the project's ``pyproject.toml`` is invalid.
    """
    return find_server_info(options.targets, name=options.name, version=options.version)


def report_hidden(catalog: Catalog, scopes: frozenset[str] | None) -> None:
    """Report on standard error how many items are hidden because no scopes were configured."""
    if scopes is not None or not (requirements := catalog.requirements):
        return
    needed = " ".join(sorted(frozenset().union(*requirements)))
    say(
        f"hidden because they need scopes: {format_count(len(catalog.scoped), 'item')}; "
        f"serve with --scopes '{needed}' to show all of them, or with --scopes '' to silence this message"
    )


def load_for_files(targets: Sequence[str], *, cases: bool = False) -> Catalog | None:
    """
    Load the recipes for a command that writes files, and report their diagnostics and hidden items.

    Args:
        targets:
            Folders, files, modules, or module:object.

        cases:
            Whether to import case files as well.

    Returns:
        The catalog without items that need scopes; None if the recipes have errors, which are reported.

    Raises:
        LoadError: If a target does not exist, or cannot be read.
    """
    catalog = compiler.compile(load_recipes(targets, cases=cases))
    report_catalog_errors(catalog)
    if not catalog.healthy:
        print_error("nothing was written: fix the errors above")
        return None
    report_hidden(catalog, None)
    return catalog.visible_to(frozenset())


def explain_absence(options: Namespace, recipes: Recipes, diagnostics: Collection[Diagnostic]) -> int:
    """
    Print why a prompt or a skill cannot be rendered, and return the exit code.

    Args:
        options:
            The options of the command, with the name and the targets.

        recipes:
            The recipes at the targets.

        diagnostics:
            The diagnostics of the recipes.
    """
    name, skills = options.name, [skill for file in recipes.by_file for skill in file.skills]
    declared: list[tuple[str, Any]] = [*recipes.named_prompts, *((skill.name, skill) for skill in skills)]
    if matching := [item for declared_name, item in declared if declared_name == name]:
        kind = "skill" if matching[0] in skills else "prompt"
        owners = {Owner(f"{kind} {name!r}", item.location) for item in matching}
        report_diagnostics(diagnostic for diagnostic in diagnostics if diagnostic.owner in owners)
        return fail(f"{kind} {name!r} cannot be rendered", Exit.FAILED)
    reject_target(options)
    # A file that cannot be imported might define a prompt with this name.
    broken = [diagnostic for diagnostic in diagnostics if diagnostic.rule in _NOTHING_LOADED]
    report_diagnostics(broken)
    uris = [resource.uri_template for resource in recipes.resources if resource.name == name]
    suggestion = uris[0] if uris else nearest(name, [declared_name for declared_name, _ in declared])
    message = format_unknown(UnknownPromptError(name, suggestion), options)
    return fail(message, Exit.FAILED if broken else Exit.USAGE)


def reject_target(options: Namespace) -> None:
    """Raise a usage error if the name of the prompt is actually a target, such as ``recipes:review``."""
    path, item = split_target(options.name)
    is_url = item.startswith("//")
    if not (options.has_targets or is_url) and os.path.exists(path):  # noqa: PTH110 (it can be any text)
        options.error(
            f"{options.name!r} is a target: name a prompt in it, for example: promptkit {options.command} "
            f"{options.name} NAME"
        )


def format_unknown(error: UnknownPromptError | UnknownResourceError, options: Namespace) -> str:
    """Return the message of an error; if it has no hint, add one about `promptkit list`."""
    if error.nearest is not None or getattr(error, "reason", None) is not None:
        return str(error)
    target = f" {' '.join(options.targets)}" if options.has_targets else ""
    return f"{error}: run 'promptkit list{target}' to see all names"


def open_named_server(
    options: Namespace, number: int = 0, *, lint: bool = False, sample: bool = False
) -> "AbstractContextManager[OpenServer]":
    """
    Connect to the MCP server that the user named with ``--server`` instead of recipes.

    Args:
        options:
            The options of the command.

        number:
            The index of the server, because `diff` accepts two.

        lint:
            Whether to report probable mistakes.

        sample:
            Whether the server's prompts can be rendered with generated arguments.

    Raises:
        SystemExit: If an option is invalid.

        LoadError: If the server cannot be reached.
    """
    from promptkit.foreign.address import parse_address  # most commands do not need it
    from promptkit.foreign.catalog import open_server

    try:
        address = parse_address(options.servers[number], options.headers, options.variables)
    except ValueError as error:
        options.error(str(error))
        raise
    return open_server(address, lint=lint, sample=sample)


def run_promptkit(*words: str, **settings: Any) -> subprocess.CompletedProcess[str]:
    """Run a promptkit command in another process, and pass *settings* to `subprocess.run`."""
    return subprocess.run(  # noqa: S603 (promptkit itself)
        [sys.executable, "-P", "-m", "promptkit", *words],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        errors="replace",
        **settings,
    )
