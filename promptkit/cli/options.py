"""
The command line: its commands and options, and what a server is told with them.

A server reads its options before its first reply. Plain words are read here, by the same table that
`promptkit.cli.parser` has; it reads all others, and says what is wrong.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast

from promptkit.cli.option_types import (
    address,
    descriptor,
    number_or_zero,
    positive_number,
    scopes,
    server_name,
    target,
    whole_number,
)
from promptkit.compiler.loading.recipe_files import DEFAULT_FOLDERS
from promptkit.protocol.limits import GRACE_S, OPTIONS, PAGE_SIZE, Limits

if TYPE_CHECKING:
    from argparse import Namespace

__all__ = ["COMMANDS", "EPILOG", "HTTP_OPTIONS", "SERVE_OPTIONS", "limit_options", "parse"]

EPILOG: Final = """\
exit codes:
  0    everything is fine
  1    recipes have faults, a prompt failed, a file was left as it is, or diff found what breaks callers
  2    wrong usage: an unknown command, option, target, prompt, client or setting
  130  interrupted
"""


def parse(arguments: Sequence[str], defaults: Mapping[str, Any] | None = None) -> "Namespace":
    """
    Parse the command line, and fill in the default target.

    Args:
        arguments:
            The words after the program's name.

        defaults:
            The values of options that the line does not have, where they are others than usual.

    Raises:
        SystemExit: If the command line asks for help, or is invalid.
    """
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] not in COMMANDS:
        from promptkit.cli.program import refuse_command

        return refuse_command(arguments)
    name, *rest = arguments
    options = SimpleNamespace(command=name, refuse=partial(_refuse, name), ignore=frozenset(), target_note="")
    options.told = {word.partition("=")[0] for word in rest}
    values = read_plainly(rest) if name == "serve" and not defaults else None
    vars(options).update(_read(name, rest, defaults or {}) if values is None else values)
    if name in ("render", "complete"):
        from promptkit.cli.words import find_target, find_typed

        (find_target if name == "render" else find_typed)(cast("Namespace", options))
    if name != "new":
        options.has_target = options.target is not None
        if not options.has_target:
            options.target = next(filter(os.path.isdir, DEFAULT_FOLDERS), DEFAULT_FOLDERS[0])
    return cast("Namespace", options)


def read_plainly(words: Sequence[str]) -> dict[str, Any] | None:
    """
    Return the values of the options of `serve`, as argparse would read them.

    It is None for what argparse has to look at: anything but a target, whole names of options, and valid
    values behind them.
    """
    table = {**SERVE_OPTIONS, **HTTP_OPTIONS, **limit_options()}
    values = {_destination(name, settings): _default(settings) for name, settings in table.items()}
    values["target"] = None
    left = iter(words)
    try:
        for word in left:
            if word in table:
                values[_destination(word, table[word])] = _value(table[word], left)
            elif values["target"] is None and not word.startswith("-"):
                values["target"] = target(word)
            else:
                return None
    except Exception:  # noqa: BLE001 (argparse reads it again, and says what is wrong)
        return None
    return values


def _destination(name: str, settings: Mapping[str, Any]) -> str:
    return str(settings.get("dest") or name.removeprefix("--").replace("-", "_"))


def _default(settings: Mapping[str, Any]) -> Any:
    return settings.get("default", {"store_true": False, "store_false": True}.get(settings.get("action", "")))


def _value(settings: Mapping[str, Any], left: Iterator[str]) -> Any:
    """What an option stands for, with the word behind it if it takes one. Raises ValueError for argparse."""
    match settings.get("action"):
        case "store_true":
            return True
        case "store_false":
            return False
        case "store_const":
            return settings["const"]
        case None if not (word := next(left, "-")).startswith("-"):
            return settings.get("type", str)(word)
    raise ValueError


def _read(name: str, words: Sequence[str], defaults: Mapping[str, Any]) -> dict[str, Any]:
    from promptkit.cli.parser import parser_of  # it imports argparse, which is slow

    command = parser_of(name, helps=not {"-h", "--help"}.isdisjoint(words))
    command.set_defaults(**defaults)
    return command.read(words)


def _refuse(name: str, message: str) -> NoReturn:
    from promptkit.cli.parser import parser_of

    parser_of(name).error(message)


def limit_options() -> dict[str, dict[str, Any]]:
    """Return the options of `serve` for its limits, as argparse takes them."""
    defaults, readers = Limits(), {int: whole_number, float: positive_number}
    found = {}
    for field, option in OPTIONS.items():
        default = getattr(defaults, field)
        found[f"--{option.name}"] = {
            "type": readers[type(default)],
            "default": default,
            "metavar": option.unit,
            "help": f"{option.help} (default: {'none' if default == inf else f'{default:,.15g}'})",
        }
    return found


#: The options of `serve` besides its limits, as argparse takes them.
SERVE_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--strict": {"action": "store_true", "help": "refuse to serve while any recipe has a fault"},
    "--name": {
        "type": server_name,
        "default": "promptkit",
        "help": "the server's name, which clients show (default: promptkit)",
    },
    "--no-watch": {
        "dest": "watch",
        "action": "store_false",
        "help": "do not reload recipes when their files change",
    },
    "--no-cache": {
        "dest": "cache",
        "action": "store_false",
        "help": "import all recipes before the first reply, and keep nothing on disk",
    },
    "--compiled": {
        "metavar": "FILE",
        "help": "start from what build wrote, which is only read; say so if it is stale",
    },
    "--page-size": {
        "type": whole_number,
        "default": PAGE_SIZE,
        "metavar": "NUMBER",
        "help": f"how many prompts or resources one page of a list holds (default: {PAGE_SIZE})",
    },
    "--tools": {
        "dest": "tools",
        "action": "store_const",
        "const": True,
        "default": False,
        "help": "offer each prompt as a tool, too, for clients without prompts and for models themselves",
    },
    "--tools-search": {
        "dest": "tools",
        "action": "store_const",
        "const": "search",
        "default": False,
        "help": "offer two tools in place of one for each prompt: they find prompts, and get one",
    },
    "--scopes": {
        "type": scopes,
        "metavar": "SCOPES",
        "help": "what the client may do, where no token says it: SCOPE, or several in quotes",
    },
    "--grace": {
        "type": number_or_zero,
        "metavar": "SECONDS",
        "help": f"how long to wait for running prompts at shutdown (default: {GRACE_S:g}, over HTTP 10)",
    },
    "--audit": {
        "metavar": "FILE",
        "help": "write one line of JSON per request to FILE, without the values of arguments",
    },
    "--otel": {"action": "store_true", "help": "tell OpenTelemetry of each request (the extra otel)"},
}

#: The options of `serve` over HTTP.
HTTP_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--http": {
        "type": address,
        "metavar": "[HOST:]PORT",
        "help": "serve clients at this address (default host: 127.0.0.1); port 0 takes one that is free",
    },
    "--uds": {"metavar": "PATH", "help": "serve clients at this Unix socket"},
    "--fd": {
        "type": descriptor,
        "metavar": "NUMBER",
        "help": "serve clients at this inherited socket; the word systemd means those that it passes",
    },
    "--workers": {"type": whole_number, "metavar": "NUMBER", "help": "how many processes serve (default: 1)"},
    "--no-auth": {"action": "store_true", "help": "let whoever reaches the server use it, from anywhere"},
    "--issuer": {
        "metavar": "URL",
        "help": "who issues the tokens that each request needs, with --public-url",
    },
    "--token-file": {
        "metavar": "FILE",
        "help": "the tokens that requests need: NAME TOKEN [SCOPE ...] a line",
    },
    "--require-scope": {"action": "append", "metavar": "SCOPE", "help": "of each token; may be repeated"},
    "--allow-host": {"action": "append", "metavar": "HOST", "help": "a name of the server; may be repeated"},
    "--allow-origin": {"action": "append", "metavar": "ORIGIN", "help": "of web pages; may be repeated"},
    "--public-url": {"metavar": "URL", "help": "the URL that clients use, which allows its host and origin"},
    "--state-keys": {"metavar": "FILE", "help": "the keys that all replicas of this server share"},
    "--max-body": {
        "type": whole_number,
        "metavar": "BYTES",
        "help": "how large a body may be (default: 4 MiB)",
    },
    "--max-connections": {"type": whole_number, "metavar": "NUMBER", "help": "of a worker (default: 10,000)"},
    "--keep-alive": {
        "type": positive_number,
        "metavar": "SECONDS",
        "help": "how long a connection may be idle (default: 30)",
    },
}

#: Each command is a module of this package; here is what it does.
COMMANDS: Final[dict[str, str]] = {
    "serve": "answer an MCP client on standard input and output, or many over HTTP",
    "list": "show the prompts and resources, and their arguments",
    "render": "render one prompt and show it",
    "check": "report every fault in the recipes",
    "complete": "show what a client would be offered for an argument",
    "dev": "show on a page what prompts say, while they are written",
    "diff": "show what clients would see differently from a git revision",
    "build": "write what a server of the recipes starts from, for deployment",
    "new": "make a folder with one prompt, its test and the configuration",
    "install": "put a server of prompts into the configuration of a client",
    "uninstall": "take a server of prompts out of the configuration of a client",
}
