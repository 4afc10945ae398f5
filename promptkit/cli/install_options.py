"""The options of ``promptkit install`` and ``uninstall``, and the separation of clients from targets."""

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from itertools import takewhile
from typing import Any, Final

from promptkit.cli.serve_options import refuse_unless
from promptkit.clients.profiles import INSTALLABLE, get_client
from promptkit.clients.servers import as_name
from promptkit.errors.suggestions import nearest

#: The help on the options for the server that `install` writes.
_SERVED: Final = """\
Options of promptkit serve follow --, as in: promptkit install zed -- --grace 5.
The next install of the server keeps them, unless it has a -- too; install reports removed options."""


def add_install(install: ArgumentParser, targets: dict[str, Any]) -> None:
    """Add the options of `install` to a parser; *targets* are the settings of the argument TARGET."""
    _add_common(install, targets)
    variable = "an environment variable for the server; can be repeated"
    install.add_argument(
        "--env", type=_variable, action="append", default=[], metavar="NAME=VALUE", help=variable
    )
    listing = "list the clients on this machine, or the named ones, with the servers that they start"
    install.add_argument("--list", action="store_true", help=listing)
    install.add_argument_group("options of the server", _SERVED)
    install.set_defaults(all=False)


def add_uninstall(uninstall: ArgumentParser, targets: dict[str, Any]) -> None:
    """Add the options of `uninstall` to a parser; *targets* are the settings of the argument TARGET."""
    _add_common(uninstall, targets)
    every = (
        "remove every server of promptkit, or all skills with --skills, from the named clients or from all"
    )
    uninstall.add_argument("--all", action="store_true", help=every)
    uninstall.set_defaults(list=False, env=[])


def find_clients(options: Namespace) -> None:
    """
    Separate the clients from the targets: they come first, and have known names.

    Raises:
        SystemExit: If a client follows a target, or options conflict.
    """
    named = [*takewhile(INSTALLABLE.__contains__, options.targets)]
    options.targets = options.targets[len(named) :]
    options.clients = [*dict.fromkeys([*([options.client] if options.client else ()), *named])]
    if (misplaced := next(filter(INSTALLABLE.__contains__, options.targets), None)) is not None:
        options.refuse(
            f"the client {misplaced!r} follows a target: name clients first, or write ./{misplaced}"
        )
    if options.targets and (suggestion := nearest(options.targets[0], INSTALLABLE)):
        options.target_note = f"it is not a client: did you mean {suggestion!r}?"
    _refuse_conflicts(options)


def _refuse_conflicts(options: Namespace) -> None:
    if options.served is not None or options.env:
        word = "--env" if options.env else "--"
        if options.command != "install" or options.list:
            options.refuse(f"{word} is for what install writes")
        if options.url is not None or options.skills:
            options.refuse(f"{word} is for a server that the client starts")
    if options.all and (options.targets or options.name is not None):
        options.refuse("--all takes out every server: neither TARGET nor --name is for it")


def _add_common(command: ArgumentParser, targets: dict[str, Any]) -> None:
    """Add the arguments and options that both commands have."""
    add = command.add_argument
    client = (
        "one or more clients, by their names in install --list; write a folder with the name "
        "of a client as ./NAME"
    )
    command.set_defaults(find_clients=find_clients)
    add("client", nargs="?", type=_client, metavar="CLIENT", help=client)
    add("targets", nargs="*", **targets)
    name = "the server's name in the client (default: the project's folder; with --url, the host)"
    add("--name", type=_entry_name, help=name)
    scope = "for you in every project, or for everyone in this project (default: user)"
    add("--scope", choices=("user", "project"), default="user", help=scope)
    url = "the URL of a server over HTTP, if the client does not start the server"
    add("--url", type=_http_url, metavar="URL", help=url)
    skills = "install the skills into the client's folder instead of a server"
    add("--skills", action="store_true", help=skills)
    add("--dry-run", action="store_true", help="print the changes without making them")
    add("--json", action="store_true", help="print the result as JSON")


def _client(text: str) -> str:
    """Return the name of a client that promptkit can be installed in."""
    try:
        get_client(text, INSTALLABLE)
    except ValueError as error:
        raise ArgumentTypeError(str(error)) from None
    return text


def _variable(text: str) -> tuple[str, str]:
    """Parse ``NAME=VALUE``, a variable of the environment."""
    name, equals, value = text.partition("=")
    is_name = name.isidentifier() and name.isascii()
    refuse_unless(equals and is_name, f"{name!r} is not a variable name followed by '=': write NAME=VALUE")
    return name, value


def _entry_name(text: str) -> str:
    """Return the name of a server for a client's configuration."""
    name = as_name(text)
    refuse_unless(name == text, f"{text!r} is not 1 to 64 letters, digits, - or _: as in {name!r}")
    return text


def _http_url(text: str) -> str:
    """Return the URL of a server over HTTP."""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(text)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # the port is not a number
        is_http = False
    is_url = is_http and text.isprintable() and " " not in text
    refuse_unless(is_url, f"{text!r} is not a URL: write it as in http://127.0.0.1:8000/mcp")
    return text
