"""The options of the commands that people run. A server imports none of them."""

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any, Final

from promptkit.cli.option_types import client, entry_name, http_url, port
from promptkit.cli.options import SERVE_OPTIONS
from promptkit.cli.parser import add_target

__all__ = ["ADDED", "VENDORS"]

#: The forms of `render` that are a vendor's: `promptkit.exports` makes them, and imports slowly.
VENDORS: Final = ("openai-chat", "openai-responses", "anthropic", "gemini")

_CLIENT_HELP: Final = "the client: as install --list names it"


def _add_list(listing: ArgumentParser) -> None:
    add_target(listing, nargs="?")
    _add_json(listing, "print the JSON that a client receives")


def _add_render(render: ArgumentParser) -> None:
    add_target(render, nargs="?")
    render.add_argument("name", metavar="NAME", help="the prompt, or the URI of a resource")
    render.add_argument(
        "arguments",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="an argument, as a client sends it; KEY=@FILE reads the value from a file, KEY=@- from "
        "standard input, and KEY=@@X is the text @X",
    )
    form = render.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=("transcript", "markdown", "json", *VENDORS),
        default="transcript",
        help="how to show it: turn by turn, as Markdown, as the JSON that a client receives, or as the JSON "
        "that a vendor of models takes (default: transcript)",
    )
    _add_json(form, "short for --format json")
    render.add_argument(
        "--lossy", action="store_true", help="show text in place of what the vendor does not take"
    )
    render.add_argument(
        "--out", metavar="DIR", help="write images, recordings and other files into this folder, too"
    )
    render.add_argument("--watch", action="store_true", help="show it again whenever a file changes")
    render.add_argument(
        "--no-input",
        dest="asks",
        action="store_false",
        help="do not ask for arguments that are missing, on a terminal neither",
    )


def _add_check(check: ArgumentParser) -> None:
    add_target(check, nargs="?")
    check.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help="also find what this client cannot show; may be repeated (default: those of the configuration)",
    )
    _add_format(check)
    check.add_argument(
        "--render",
        action="store_true",
        help="also render every prompt, and read every resource, for its examples",
    )
    check.add_argument(
        "--fail-on",
        choices=("error", "warning"),
        help="the least that ends with 1 (default: that of the configuration, else error)",
    )
    check.add_argument("--compiled", metavar="FILE", help="also report if what build wrote is stale")


def _add_complete(complete: ArgumentParser) -> None:
    complete.add_argument("name", metavar="NAME", help="the prompt, or the URI template of a resource")
    complete.add_argument("argument", metavar="ARGUMENT", help="the argument, or the variable")
    complete.add_argument("typed", metavar="TYPED", nargs="?", help="what was typed so far")
    complete.add_argument(
        "arguments",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="another argument that has been chosen, as for render; ARGUMENT=TYPED is what was typed, too",
    )
    add_target(complete, "--target")
    _add_json(complete, "print the JSON that a client receives")


def _add_diff(diff: ArgumentParser) -> None:
    diff.add_argument(
        "revision",
        nargs="?",
        default="HEAD",
        metavar="REF",
        help="a commit, a branch or a tag (default: HEAD); this imports the recipes of that revision, and "
        "renders their examples: its code runs as yours does",
    )
    add_target(diff, "--target")
    _add_format(diff)
    diff.add_argument(
        "--summary", metavar="FILE", help="also append what has changed to this file, as Markdown"
    )


def _add_dev(dev: ArgumentParser) -> None:
    add_target(dev, nargs="?")
    dev.add_argument(
        "--port",
        type=port,
        metavar="NUMBER",
        help="the port of the page; 0 takes one that is free (default: 8137, or one that is free)",
    )
    dev.add_argument(
        "--no-open", dest="opens", action="store_false", help="print the address, and open no browser"
    )


def _add_format(command: ArgumentParser) -> None:
    form = command.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="text for people, JSON for other programs, or annotations for GitHub Actions (default: text)",
    )
    _add_json(form, "short for --format json")


def _add_json(group: Any, summary: str) -> None:
    group.add_argument("--json", action="store_true", help=summary)


def _add_build(build: ArgumentParser) -> None:
    add_target(build, nargs="?")
    build.add_argument(
        "--out", metavar="FILE", help="where to write it (default: beside the target, with .compiled)"
    )
    for name in ("--name", "--page-size", "--tools", "--tools-search", "--scopes"):
        build.add_argument(name, **SERVE_OPTIONS[name])


def _add_new(new: ArgumentParser) -> None:
    new.add_argument(
        "folder",
        nargs="?",
        default=".",
        metavar="FOLDER",
        help="where to write (default: the current folder)",
    )
    _add_json(new, "print the files and the next commands as JSON")


def _add_install(install: ArgumentParser) -> None:
    install.add_argument("client", nargs="?", type=client, metavar="CLIENT", help=_CLIENT_HELP)
    _add_entry(install)
    install.add_argument(
        "--list",
        action="store_true",
        help="show which clients are on this machine, or one of them, and what they start",
    )


def _add_uninstall(uninstall: ArgumentParser) -> None:
    uninstall.add_argument("client", type=client, metavar="CLIENT", help=_CLIENT_HELP)
    _add_entry(uninstall)


def _add_entry(command: ArgumentParser) -> None:
    """Add what says which server in which configuration."""
    add_target(command, nargs="?")
    command.add_argument(
        "--name",
        type=entry_name,
        help="what the client calls the server (default: as the project's folder; with --url, as the host)",
    )
    command.add_argument(
        "--scope",
        choices=("user", "project"),
        default="user",
        help="whether it is there for you everywhere, or for everybody in this project (default: user)",
    )
    command.add_argument(
        "--url",
        type=http_url,
        metavar="URL",
        help="where it is served over HTTP, if the client does not start it",
    )
    command.add_argument("--dry-run", action="store_true", help="print what would change, and change nothing")
    _add_json(command, "print it as JSON")


#: What adds the options of each command to its parser.
ADDED: Final[dict[str, Callable[[ArgumentParser], None]]] = {
    "list": _add_list,
    "render": _add_render,
    "check": _add_check,
    "complete": _add_complete,
    "dev": _add_dev,
    "diff": _add_diff,
    "build": _add_build,
    "new": _add_new,
    "install": _add_install,
    "uninstall": _add_uninstall,
}
