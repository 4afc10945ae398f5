"""``promptkit install`` and ``uninstall``: add a prompt server, or skills, to clients, or remove them."""

import os
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from msgspec.structs import replace

from promptkit.catalog.skills import CompiledSkill
from promptkit.cli import Exit
from promptkit.cli.diagnostics import fail, print_error, print_text
from promptkit.cli.export import describe_change, identify_recipes
from promptkit.cli.install_list import parse_entry_arguments, parse_serve_arguments, print_clients
from promptkit.cli.loading import load_catalog, load_for_files
from promptkit.cli.options import configured_targets, parse
from promptkit.cli.output import Output
from promptkit.cli.parsers import add_targets, report_value_error, require
from promptkit.clients.configuration_changes import EntryChange, plan_change
from promptkit.clients.configuration_files import ConfigurationFile, Scope, ServerTable, read_servers
from promptkit.clients.installed_files import (
    RECORD,
    FolderChange,
    FolderChangeError,
    describe_failure,
    files_by_skill,
    plan_folder_change,
)
from promptkit.clients.profiles import INSTALLABLE, get_client
from promptkit.clients.servers import (
    InstalledServer,
    command_in,
    default_name,
    local_server,
    to_server_name,
    was_added_by_promptkit,
)
from promptkit.errors.exceptions import LoadError
from promptkit.errors.suggestions import nearest
from promptkit.files.edits import FileEditError, ForeignEntryError
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.targets import has_skills, project_of, split_prefix

#: The options of `serve` that offer prompts as tools.
_TOOLS: Final = {"--tools", "--tools-search"}

#: A function that is called with the current entry and returns the server to replace it; None to remove it.
_ServerFactory: TypeAlias = Callable[[Any], InstalledServer] | None


def run(options: Namespace, output: Output) -> int:
    """
    Add or remove entries, or only print the changes; with ``--list``, print the existing entries.

    Raises:
        LoadError: If the target does not exist, or the name of the server is unknown.
    """
    if options.list:
        configurations = [_configuration_of(options, name) for name in options.clients or INSTALLABLE]
        print_clients(configurations, options.url, output)
        return Exit.OK
    if not options.clients and not options.all:
        more = ", or --all" if options.command == "uninstall" else ""
        options.error(f"name a client: {', '.join(INSTALLABLE)}{more}")
    configurations = [
        _configuration_of(options, name, options.scope) for name in options.clients or INSTALLABLE
    ]
    change = _change_skills if options.skills else _change_servers
    return change(options, configurations, output)


def _configuration_of(options: Namespace, client: str, scope: Scope = "user") -> ConfigurationFile:
    """Return the configuration of a client; with scope ``project``, the one in the current project."""
    file = options.configuration.file
    project = os.path.dirname(file) if file else os.getcwd()  # noqa: PTH109, PTH120 (text)
    return ConfigurationFile(client, scope, project)


def _change_servers(options: Namespace, configurations: list[ConfigurationFile], output: Output) -> int:
    """Add a server to configurations, or remove it. If a file cannot be changed, continue with the others."""
    configurations = _select_by_scope(options, configurations)
    name = None if options.all else _server_name(options)
    # Errors are reported before the first change.
    servers = [_server_factory(options, configuration, name) for configuration in configurations]
    prompts = _load_prompt_names(options, configurations)
    code, has_servers = Exit.OK, False
    for configuration, server in zip(configurations, servers, strict=True):
        try:
            for entry_name in _find_our_servers(configuration, options.url) if name is None else [name]:
                _check_project(options, configuration, entry_name)
                change = plan_change(configuration, entry_name, server, options.url)
                _apply_change(change, prompts, options, output)
                has_servers = True
        except FileEditError as error:
            _print_edit_error(configuration, error, server)
            code = Exit.FAILED
    if options.all and not has_servers:
        output.print_lines(["no promptkit server was found: nothing to change"])
    return code


def _load_prompt_names(options: Namespace, configurations: Sequence[ConfigurationFile]) -> Collection[str]:
    """Return the names of the prompts if any client might hide some of them; none if loading them fails."""
    may_hide = any(get_client(configuration.client).hides_prompts for configuration in configurations)
    if options.command == "uninstall" or options.url is not None or not may_hide:
        return ()
    try:
        return [*load_catalog(configured_targets(options))]
    except LoadError:  # the server will report it
        return ()


def _select_by_scope(options: Namespace, configurations: list[ConfigurationFile]) -> list[ConfigurationFile]:
    """Return the configurations that support the requested scope; exit if a named client does not."""
    for configuration in configurations if options.clients else ():
        if options.scope not in configuration.scopes:
            options.error(f"argument --scope: {configuration.title} has no {options.scope} configuration")
    return [configuration for configuration in configurations if options.scope in configuration.scopes]


def _server_name(options: Namespace) -> str:
    """Return the name of the server, taken from the options, the host of the URL or the project's folder."""
    if options.url is not None and options.has_targets:
        options.error(
            f"unexpected argument {options.targets[0]!r}: the server at --url chooses its own targets"
        )
    if options.name is not None:
        return str(options.name)
    if options.url is not None:
        return to_server_name(urlsplit(options.url).hostname or "")
    try:
        return default_name(configured_targets(options))
    except LoadError as error:
        if options.command == "install":
            raise
        more = "or pass the server's name with --name, as shown by install --list"
        raise LoadError(error.target, f"{error.reason}; {more}") from None


def _check_project(options: Namespace, configuration: ConfigurationFile, name: str) -> None:
    """
    Check that the existing server with this name does not serve another project, before it is changed.

    Raises:
        ForeignEntryError: If the server serves existing recipes, but all of them belong to other projects.
    """
    if options.all or options.url is not None or (options.command == "uninstall" and options.name):
        return
    entry = read_servers(configuration).get(name)
    served = parse_entry_arguments(configuration.settings, entry).targets
    projects = {project_of(configuration.resolve_path(split_prefix(word)[1])): word for word in served}
    if projects and projects.keys().isdisjoint({None, *map(project_of, configured_targets(options))}):
        target = next(iter(projects.values()))
        msg = (
            f"its server {name!r} serves {target}, which belongs to another project: choose another name "
            "with --name"
        )
        raise ForeignEntryError(msg)


def _server_factory(options: Namespace, configuration: ConfigurationFile, name: str | None) -> _ServerFactory:
    """Return the function that creates the server to add; None if the server must be removed."""
    if options.command == "uninstall" or name is None:
        return None
    if options.url is None:
        targets = configured_targets(options)
        server = local_server(name, targets, configuration, dict(options.env))
        chosen_options = _given_options(options, configuration)
        return partial(_choose_options, server, configuration, chosen_options, has_skills(targets))
    if configuration.settings.url is None:
        hint = configuration.settings.instead_of_url
        options.error(
            f"argument --url: the configuration of {configuration.title} does not support URLs: {hint}"
        )
    if options.token_env is not None and not configuration.settings.token:
        options.error(f"argument --token-env: {configuration.title} {configuration.settings.header_hint}")
    return lambda _: InstalledServer(name, url=options.url, token_env=options.token_env)


def _given_options(options: Namespace, configuration: ConfigurationFile) -> tuple[str, ...] | None:
    """
    Return the options after ``--``, with paths in the form that a configuration needs.

    Return None if there is no ``--``.

    Raises:
        SystemExit: If an option is unknown, or cannot be used by a server that a client starts.
    """
    if options.served is None:
        return None
    parsed = parse(["serve", *options.served])
    if parsed.has_targets:
        options.error(f"unexpected argument {parsed.targets[0]!r} after --: put targets before it")
    if http_options := sorted(parsed.http_options & parsed.typed_options):
        hint = "start the server yourself, and install it with --url"
        options.error(
            f"{http_options[0]} is for HTTP, but clients use stdio for the servers that they start: {hint}"
        )
    return parse_serve_arguments(options.served, configuration.format_path).options


def _choose_options(
    server: InstalledServer,
    configuration: ConfigurationFile,
    options: Sequence[str] | None,
    serves_skills: bool,  # noqa: FBT001 (bound by partial)
    entry: Any,
) -> InstalledServer:
    """
    Return a server with the given options, and with the options that the client needs.

    Args:
        server:
            The server, without options.

        configuration:
            The client's configuration.

        options:
            The given options; None to keep the options of the current entry.

        serves_skills:
            Whether there are skills in the targets.

        entry:
            The current entry.
    """
    current = parse_entry_arguments(configuration.settings, entry)
    chosen = current.options if options is None else options
    has_prompts = get_client(configuration.client).has_prompts
    added = [] if has_prompts or not _TOOLS.isdisjoint(chosen) else ["--tools"]
    is_chosen = any(option.startswith("--skills-as") for option in chosen)
    if serves_skills and not configuration.settings.skills and not is_chosen:
        added.append(f"--skills-as={'tools,prompts' if has_prompts else 'tools'}")
    return replace(server, command=(*server.command, *chosen, *added))


def _find_our_servers(configuration: ConfigurationFile, url: str | None) -> list[str]:
    return [
        name
        for name, entry in read_servers(configuration).items()
        if was_added_by_promptkit(configuration.settings, entry, url)
    ]


def _print_edit_error(configuration: ConfigurationFile, error: FileEditError, server: _ServerFactory) -> None:
    """Print why a file was not changed, and the text that users can add to it themselves."""
    print_error(escape_invisible(f"{configuration.path}{error.location}: {error}", one_line=True))
    if server is not None and not isinstance(error, ForeignEntryError):
        new_server = server(None)
        text = ServerTable(configuration.settings, "").with_entry(
            new_server.name, new_server.entry(configuration.settings)
        )
        print_text(f"the file was not changed; you can add this yourself:\n\n{text}")


def _apply_change(change: EntryChange, prompts: Collection[str], options: Namespace, output: Output) -> None:
    """Make a change if it is needed, and print it; with ``--dry-run``, only print it."""
    client = get_client(change.file.client)
    is_done = not options.dry_run
    backup = change.apply() if change.is_needed and is_done else None
    output.print_lines(_change_lines(change, backup, is_done=is_done))
    output.print_lines(
        f"    {client.title} has its own command {name!r}: give the prompt another name"
        for name in prompts
        if client.hides_prompts and name in client.own_commands
    )
    if options.token_env is not None:
        hint = f"set it where you start {client.title}"
        output.print_lines(
            [f"    {client.title} sends the token in the variable {options.token_env}: {hint}"]
        )


def _change_lines(change: EntryChange, backup: Path | None, *, is_done: bool) -> Iterator[str]:
    title, is_added = change.file.title, change.entry is not None
    if not change.is_needed:
        state = "already has the" if is_added else "has no"
        yield f"{title} {state} server {change.name!r}: nothing to change"
    elif is_done:
        yield f"{title} {'now has' if is_added else 'no longer has'} the server {change.name!r}"
    else:
        yield from change.diff.splitlines()
    if is_done or not change.is_needed:
        yield f"    file: {change.file.path}"
    if backup is not None:
        yield f"    backup: {backup}"
    if is_added:
        yield from (f"    {line}" for line in _describe_addition(change))
    if not change.is_client_found:
        yield f"    {title} itself was not found on this machine"
    elif is_done and change.is_needed:
        yield f"    if {title} is running, restart it"


def _describe_addition(change: EntryChange) -> Iterator[str]:
    """Yield the notes for users about an added entry."""
    configuration = change.file
    command = command_in(configuration.settings, change.entry) or []
    if command and configuration.scope == "project":
        if command[0] in ("promptkit", "uvx"):
            yield f"everyone who works on the project needs {command[0]} on their PATH"
        values = (
            word.partition("=")[2] if word.startswith("--") else split_prefix(word)[1] for word in command
        )
        yield from (f"{value} exists only on this machine" for value in values if Path(value).is_absolute())
    client = get_client(configuration.client)
    if client.command:
        typed = client.command.format(server=change.name, prompt="NAME")
        hint = ", without arguments, and fill in the form" if client.rejects_missing else ""
        yield f"type a prompt as {typed}{hint}"
    limitations = client.limitations
    yield from (f"{configuration.title} {limitation}" for limitation in limitations)
    if limitations:
        yield f"to find the affected prompts, run: promptkit check --client {configuration.client}"


def _change_skills(options: Namespace, configurations: list[ConfigurationFile], output: Output) -> int:
    """
    Write the skills into the folders that clients read, or remove the skills written by promptkit.

    Raises:
        LoadError: If the recipes cannot be loaded.
    """
    if options.url is not None or options.name is not None:
        options.error("--skills writes folders: omit --url and --name")
    configurations = _select_skill_configurations(options, configurations)
    targets: Sequence[str] = () if options.all else configured_targets(options)
    skills = _load_skills(targets) if options.command == "install" else ()
    if skills is None:
        return Exit.FAILED
    code, has_skills = Exit.OK, False
    for configuration in configurations:
        try:
            project = configuration.project if configuration.scope == "project" else None
            source = None if options.all else identify_recipes(targets, project)
            change = plan_folder_change(
                configuration.skills_folder(),
                files_by_skill(skills),
                source,
                RECORD,
                client=configuration.client,
            )
            if change.is_needed or change.shared or not options.all:
                _apply_skills(change, configuration, options, output)
                has_skills = True
        except FolderChangeError as error:
            text = escape_invisible(f"nothing was changed: {error}", one_line=True)
            code = fail(text, Exit.FAILED)
        except OSError as error:
            code = fail(describe_failure(configuration.skills or "", error), Exit.FAILED)
    if options.all and not has_skills and code == Exit.OK:
        output.print_lines(["no skills from promptkit were found: nothing to change"])
    return code


def _select_skill_configurations(
    options: Namespace, configurations: Sequence[ConfigurationFile]
) -> list[ConfigurationFile]:
    """
    Return the configurations whose clients read skills from a folder.

    Exit with a usage error if a client that was named on the command line does not read skills from folders.
    """
    for configuration in configurations if options.clients else ():
        if configuration.skills is None:
            readers = ", ".join(name for name, client in INSTALLABLE.items() if client.skills)
            options.error(
                f"{configuration.title} does not read skills from folders; these clients do: {readers}"
            )
    return [configuration for configuration in configurations if configuration.skills is not None]


def _load_skills(targets: Sequence[str]) -> tuple[CompiledSkill, ...] | None:
    """
    Return the skills in the recipes.

    If the recipes have errors or no skills, print the reason and return None.
    """
    if (catalog := load_for_files(targets)) is None:
        return None
    if not (skills := catalog.skills):
        fail("these recipes have no skills: write one with @skill, or as a folder", Exit.FAILED)
    return skills or None


def _apply_skills(
    change: FolderChange, configuration: ConfigurationFile, options: Namespace, output: Output
) -> None:
    """Make a change and print it; with ``--dry-run``, only print it."""
    is_done, title = not options.dry_run, configuration.title
    if is_done:
        change.apply()
    output.print_lines(describe_change(change, title, "skill", "installed {} for {}", is_done=is_done))
    output.print_lines([f"    folder: {change.folder.display_root}"])
    output.print_lines(
        escape_invisible(f"    {name} is kept for {', '.join(clients)}", one_line=True)
        for name, clients in change.shared.items()
    )
    own_commands = get_client(configuration.client).own_commands
    output.print_lines(
        f"    {title} has its own command {name!r}, so only models can use the skill"
        for name in change.names
        if name in own_commands
    )


#: The help for the options of the server that `install` writes.
_SERVE_OPTIONS_HELP: Final = """\
Put options for promptkit serve after --, for example: promptkit install zed -- --grace 5.
If you install the server again without --, it keeps its options."""


def add_install_options(parser: ArgumentParser) -> None:
    """Add the options of `install` to a parser."""
    _add_common_options(parser)
    variable = "an environment variable for the server; can be repeated"
    parser.add_argument(
        "--env", type=_parse_variable, action="append", default=[], metavar="NAME=VALUE", help=variable
    )
    bearer = "the client's environment variable with the bearer token for --url; its value is not written"
    parser.add_argument("--token-env", type=_parse_variable_name, metavar="NAME", help=bearer)
    listing = "list all clients, or the named ones, with their configurations and their promptkit servers"
    parser.add_argument("--list", action="store_true", help=listing)
    parser.add_argument_group("options of the server", _SERVE_OPTIONS_HELP)
    parser.set_defaults(all=False)


def add_uninstall_options(parser: ArgumentParser) -> None:
    """Add the options of `uninstall` to a parser."""
    _add_common_options(parser)
    every = (
        "remove every promptkit server or, with --skills, all skills that promptkit installed, from the "
        "named clients or from all clients"
    )
    parser.add_argument("--all", action="store_true", help=every)
    parser.set_defaults(list=False, env=[], token_env=None)


def _add_common_options(parser: ArgumentParser) -> None:
    """Add the arguments and options that both commands have."""
    add = parser.add_argument
    client = (
        "one or more clients, named as install --list shows them; if a folder has the name of a client, "
        "write the folder as ./NAME"
    )
    parser.set_defaults(separate_clients=_separate_clients)
    add("client", nargs="?", type=_parse_client, metavar="CLIENT", help=client)
    add_targets(parser)
    name = "the server's name in the client (default: the project's folder; with --url, the host)"
    add("--name", type=_parse_entry_name, help=name)
    scope = "user: for you, in every project; project: for everyone in this project (default: user)"
    add("--scope", choices=("user", "project"), default="user", help=scope)
    url = "the URL of an HTTP server to connect to; without a URL, the client starts the server"
    add("--url", type=_parse_http_url, metavar="URL", help=url)
    skills = "write skills to the client's skills folder, or remove them, instead of a server"
    add("--skills", action="store_true", help=skills)
    add("--dry-run", action="store_true", help="print the changes without making them")


@report_value_error
def _parse_client(text: str) -> str:
    """Return the name of a client, which must be one that promptkit can be added to."""
    get_client(text, INSTALLABLE)
    return text


def _parse_variable(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``, where NAME is the name of an environment variable."""
    name, equals, value = text.partition("=")
    require(
        equals and _is_variable(name), f"{name!r} is not a variable name followed by '=': write NAME=VALUE"
    )
    return name, value


def _parse_variable_name(text: str) -> str:
    """Return the name of an environment variable, which must be valid."""
    require(_is_variable(text), f"{text!r} is not the name of a variable: use a name such as PROMPTS_TOKEN")
    return text


def _is_variable(name: str) -> bool:
    return name.isidentifier() and name.isascii()


def _parse_entry_name(text: str) -> str:
    """Return a server's name in a client's configuration, which must be valid."""
    name = to_server_name(text)
    hint = f"use 1 to 64 letters, digits, - or _, for example {name!r}"
    require(name == text, f"{text!r} is not a valid name: {hint}")
    return text


def _parse_http_url(text: str) -> str:
    """Return a URL, which must have the scheme http or https."""
    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        is_http = False
    is_url = is_http and text.isprintable() and " " not in text
    require(is_url, f"{text!r} is not an HTTP URL: expected something like http://127.0.0.1:8000/mcp")
    return text


def _separate_clients(options: Namespace) -> None:
    """
    Separate the clients from the targets. Clients come first, and are recognized by their names.

    Raises:
        SystemExit: If a client follows a target, or options conflict.
    """
    named = [*takewhile(INSTALLABLE.__contains__, options.targets)]
    options.targets = options.targets[len(named) :]
    options.clients = [*dict.fromkeys([*([options.client] if options.client else ()), *named])]
    if (misplaced := next(filter(INSTALLABLE.__contains__, options.targets), None)) is not None:
        options.error(f"the client {misplaced!r} follows a target: put clients first, or write ./{misplaced}")
    if options.targets and (suggestion := nearest(options.targets[0], INSTALLABLE)):
        options.target_note = f"it is not a client: did you mean {suggestion!r}?"
    _check_conflicts(options)


def _check_conflicts(options: Namespace) -> None:
    if options.served is not None or options.env:
        word = "--env" if options.env else "--"
        if options.command != "install" or options.list:
            options.error(f"{word} can only be used with install, without --list")
        if options.url is not None or options.skills:
            options.error(f"{word} only applies to a server that the client starts: omit --url and --skills")
    if options.token_env is not None and (options.url is None or options.list):
        options.error("--token-env is for a server over HTTP: add --url, and omit --list")
    if options.all and (options.targets or options.name is not None):
        options.error("--all removes every server: omit TARGET and --name")
