"""The commands, what each does, and its options as argparse takes them."""

from argparse import ArgumentParser
from collections.abc import Callable
from math import inf
from typing import Any, Final

from promptkit.cli import option_types as types
from promptkit.protocol.limits import GRACE_S, OPTIONS, PAGE_SIZE, Limits

__all__ = ["COMMANDS", "VENDORS"]

#: The forms of `render` that are a vendor's: `promptkit.exports` makes them, and imports slowly.
VENDORS: Final = ("openai-chat", "openai-responses", "anthropic", "gemini")

_TARGET: Final[dict[str, Any]] = {
    "type": types.target,
    "metavar": "TARGET",
    "help": "a folder of recipes, a file, a module, or module:object, unless [tool.promptkit] in "
    "pyproject.toml names it (default: the folder recipes, else prompts)",
}
_FORMAT_HELP: Final = (
    "text for people, JSON for other programs, or annotations for GitHub Actions (default: text)"
)
_CLIENT: Final[dict[str, Any]] = {
    "type": types.installable,
    "metavar": "CLIENT",
    "help": "the client: as install --list names it",
}


def _add_target(command: ArgumentParser) -> None:
    command.add_argument("target", nargs="?", **_TARGET)


def _add_serve(serve: ArgumentParser) -> None:
    _add_target(serve)
    add = serve.add_argument
    add("--strict", action="store_true", help="refuse to serve while any recipe has a fault")
    add(
        "--no-watch", dest="watch", action="store_false", help="do not reload recipes when their files change"
    )
    no_cache = "import all recipes before the first reply, and keep nothing on disk"
    add("--no-cache", dest="cache", action="store_false", help=no_cache)
    compiled = "start from what build wrote, which is only read; say so if it is stale"
    add("--compiled", metavar="FILE", help=compiled)
    _add_lists(serve)
    grace = f"how long to wait for running prompts at shutdown (default: {GRACE_S:g}, over HTTP 10)"
    add("--grace", type=types.number_or_zero, metavar="SECONDS", help=grace)
    audit = "write one line of JSON per request to FILE, without the values of arguments"
    add("--audit", metavar="FILE", help=audit)
    add("--otel", action="store_true", help="tell OpenTelemetry of each request (the extra otel)")
    _add_http(serve)
    _add_limits(serve)


def _add_lists(command: ArgumentParser) -> None:
    """Add what the lists of a server depend on, also those that are built before."""
    add = command.add_argument
    name = "the server's name, which clients show (default: promptkit)"
    add("--name", type=types.server_name, default="promptkit", help=name)
    size = f"how many prompts or resources one page of a list holds (default: {PAGE_SIZE})"
    add("--page-size", type=types.whole_number, default=PAGE_SIZE, metavar="NUMBER", help=size)
    tools = "offer each prompt as a tool, too, for clients without prompts and for models themselves"
    add("--tools", action="store_const", const=True, default=False, help=tools)
    search = "offer two tools in place of one for each prompt: they find prompts, and get one"
    add("--tools-search", dest="tools", action="store_const", const="search", default=False, help=search)
    scopes = "what the client may do, where no token says it: SCOPE, or several in quotes"
    add("--scopes", type=types.scopes, metavar="SCOPES", help=scopes)


def _add_http(serve: ArgumentParser) -> None:
    http = serve.add_argument_group("HTTP", "In place of standard input and output. It needs the extra http.")
    add = http.add_argument
    where = "serve clients at this address (default host: 127.0.0.1); port 0 takes one that is free"
    add("--http", type=types.address, metavar="[HOST:]PORT", help=where)
    add("--uds", metavar="PATH", help="serve clients at this Unix socket")
    socket = "serve clients at this inherited socket; the word systemd means those that it passes"
    add("--fd", type=types.descriptor, metavar="NUMBER", help=socket)
    workers = "how many processes serve (default: 1)"
    add("--workers", type=types.whole_number, default=1, metavar="NUMBER", help=workers)
    add("--no-auth", action="store_true", help="let everybody who reaches the server use it, from anywhere")
    add("--issuer", metavar="URL", help="who issues the tokens that each request needs, with --public-url")
    add("--token-file", metavar="FILE", help="the tokens that requests need: NAME TOKEN [SCOPE ...] a line")
    repeated: dict[str, Any] = {"action": "append", "default": []}
    add("--require-scope", metavar="SCOPE", help="of each token; may be repeated", **repeated)
    add("--allow-host", metavar="HOST", help="a name of the server; may be repeated", **repeated)
    add("--allow-origin", metavar="ORIGIN", help="of web pages; may be repeated", **repeated)
    add("--public-url", metavar="URL", help="the URL that clients use, which allows its host and origin")
    add("--state-keys", metavar="FILE", help="the keys that all replicas of this server share")
    size = "how large a body may be (default: 4 MiB)"
    add("--max-body", type=types.whole_number, metavar="BYTES", help=size)
    add("--max-connections", type=types.whole_number, metavar="NUMBER", help="of a worker (default: 10,000)")
    idle = "how long a connection may be idle (default: 30)"
    add("--keep-alive", type=types.positive_number, metavar="SECONDS", help=idle)
    actions = http._group_actions  # noqa: SLF001 (argparse has no other way)
    serve.set_defaults(http_options=frozenset(name for action in actions for name in action.option_strings))


def _add_limits(serve: ArgumentParser) -> None:
    about = "A request that exceeds a limit gets an error; later requests are served."
    group = serve.add_argument_group("limits", about)
    for field, option in OPTIONS.items():
        default = getattr(Limits(), field)
        group.add_argument(
            f"--{option.name}",
            type=types.whole_number if isinstance(default, int) else types.positive_number,
            default=default,
            metavar=option.unit,
            help=f"{option.help} (default: {'none' if default == inf else f'{default:,.15g}'})",
        )


def _add_list(listing: ArgumentParser) -> None:
    _add_target(listing)
    _add_json(listing, "print the JSON that a client receives")


def _add_render(render: ArgumentParser) -> None:
    _add_target(render)
    add = render.add_argument
    add("name", metavar="NAME", help="the prompt, or the URI of a resource")
    arguments = (
        "an argument, as a client sends it; KEY=@FILE reads the value from a file, KEY=@- from "
        "standard input, and KEY=@@X is the text @X"
    )
    add("arguments", nargs="*", default=[], metavar="KEY=VALUE", help=arguments)
    form = (
        "how to show it: turn by turn, as Markdown, as the JSON that a client receives, or as the JSON "
        "that a vendor of models takes (default: transcript)"
    )
    _add_format(render, ("transcript", "markdown", "json", *VENDORS), form)
    add("--lossy", action="store_true", help="show text in place of what the vendor does not take")
    add("--out", metavar="DIR", help="write images, recordings and other files into this folder, too")
    add("--watch", action="store_true", help="show it again whenever a file changes")
    no_input = "do not ask for arguments that are missing, on a terminal neither"
    add("--no-input", dest="asks", action="store_false", help=no_input)


def _add_check(check: ArgumentParser) -> None:
    _add_target(check)
    add = check.add_argument
    clients = "also find what this client cannot show; may be repeated (default: those of the configuration)"
    add("--client", action="append", type=types.client, default=[], metavar="NAME", help=clients)
    _add_format(check)
    examples = "also render every prompt, and read every resource, for its examples"
    add("--render", action="store_true", help=examples)
    fail_on = "the least that ends with 1 (default: that of the configuration, else error)"
    add("--fail-on", choices=("error", "warning"), help=fail_on)
    add("--compiled", metavar="FILE", help="also report if what build wrote is stale")


def _add_complete(complete: ArgumentParser) -> None:
    add = complete.add_argument
    add("name", metavar="NAME", help="the prompt, or the URI template of a resource")
    add("argument", metavar="ARGUMENT", help="the argument, or the variable")
    add("typed", metavar="TYPED", nargs="?", help="what was typed so far")
    chosen = "another argument that has been chosen, as for render; ARGUMENT=TYPED is what was typed, too"
    add("arguments", nargs="*", default=[], metavar="KEY=VALUE", help=chosen)
    complete.add_argument("--target", **_TARGET)
    _add_json(complete, "print the JSON that a client receives")


def _add_dev(dev: ArgumentParser) -> None:
    _add_target(dev)
    number = "the port of the page; 0 takes one that is free (default: 8137, or one that is free)"
    dev.add_argument("--port", type=types.port, metavar="NUMBER", help=number)
    no_open = "print the address, and open no browser"
    dev.add_argument("--no-open", dest="opens", action="store_false", help=no_open)


def _add_diff(diff: ArgumentParser) -> None:
    revision = (
        "a commit, a branch or a tag (default: HEAD); this imports the recipes of that revision, and renders "
        "their examples: its code runs as yours does"
    )
    diff.add_argument("revision", nargs="?", default="HEAD", metavar="REF", help=revision)
    diff.add_argument("--target", **_TARGET)
    _add_format(diff)
    summary = "also append what has changed to this file, as Markdown"
    diff.add_argument("--summary", metavar="FILE", help=summary)


def _add_build(build: ArgumentParser) -> None:
    _add_target(build)
    out = "where to write it (default: beside the target, with .compiled)"
    build.add_argument("--out", metavar="FILE", help=out)
    _add_lists(build)


def _add_new(new: ArgumentParser) -> None:
    folder = "where to write (default: the current folder)"
    new.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help=folder)
    _add_json(new, "print the files and the next commands as JSON")


def _add_install(install: ArgumentParser) -> None:
    install.add_argument("client", nargs="?", **_CLIENT)
    _add_entry(install)
    listing = "show which clients are on this machine, or one of them, and what they start"
    install.add_argument("--list", action="store_true", help=listing)


def _add_uninstall(uninstall: ArgumentParser) -> None:
    uninstall.add_argument("client", **_CLIENT)
    uninstall.set_defaults(list=False)
    _add_entry(uninstall)


def _add_entry(command: ArgumentParser) -> None:
    """Add what says which server in which configuration."""
    _add_target(command)
    add = command.add_argument
    name = "what the client calls the server (default: as the project's folder; with --url, as the host)"
    add("--name", type=types.entry_name, help=name)
    scope = "whether it is there for you everywhere, or for everybody in this project (default: user)"
    add("--scope", choices=("user", "project"), default="user", help=scope)
    url = "where it is served over HTTP, if the client does not start it"
    add("--url", type=types.http_url, metavar="URL", help=url)
    add("--dry-run", action="store_true", help="print what would change, and change nothing")
    _add_json(command, "print it as JSON")


def _add_format(
    command: ArgumentParser, forms: tuple[str, ...] = ("text", "json", "github"), summary: str = _FORMAT_HELP
) -> None:
    """Add the option for the form of what is printed; the first form is the default."""
    group = command.add_mutually_exclusive_group()
    group.add_argument("--format", choices=forms, default=forms[0], help=summary)
    group.add_argument(
        "--json", action="store_const", dest="format", const="json", help="short for --format json"
    )


def _add_json(command: ArgumentParser, summary: str) -> None:
    command.add_argument("--json", action="store_true", help=summary)


#: What each command does, and what adds its options to a parser.
COMMANDS: Final[dict[str, tuple[str, Callable[[ArgumentParser], None]]]] = {
    "serve": ("answer an MCP client on standard input and output, or many over HTTP", _add_serve),
    "list": ("show the prompts and resources, and their arguments", _add_list),
    "render": ("render one prompt and show it", _add_render),
    "check": ("report every fault in the recipes", _add_check),
    "complete": ("show what a client would be offered for an argument", _add_complete),
    "dev": ("show on a page what prompts say, while they are written", _add_dev),
    "diff": ("show what clients would see differently from a git revision", _add_diff),
    "build": ("write what a server of the recipes starts from, for deployment", _add_build),
    "new": ("make a folder with one prompt, its test and the configuration", _add_new),
    "install": ("put a server of prompts into the configuration of a client", _add_install),
    "uninstall": ("take a server of prompts out of the configuration of a client", _add_uninstall),
}
