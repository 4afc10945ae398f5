"""
The command line: its commands and options, and the errors about it.

A server parses it before its first reply. To save time, only the parser of the given command is built.
"""

import argparse
import os
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final, NoReturn

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
from promptkit.protocol.limits import GRACE_S, OPTIONS, PAGE_SIZE, Limits

__all__ = [
    "COMMANDS",
    "EPILOG",
    "HTTP_OPTIONS",
    "SERVE_OPTIONS",
    "Parser",
    "add_options",
    "add_target",
    "options_of",
    "parse",
    "parser_of",
    "settings_of",
    "suggestion",
]

EPILOG: Final = """\
exit codes:
  0    everything is fine
  1    recipes have faults, a prompt failed, a file was left as it is, or diff found what breaks callers
  2    wrong usage: an unknown command, option, target, prompt, client or setting
  130  interrupted
"""

#: The default target is the first of these folders that exists.
_FOLDERS: Final = ("recipes", "prompts")

_TARGET_HELP: Final = (
    "a folder of recipes, a file, a module, or module:object, unless [tool.promptkit] in pyproject.toml "
    "names it (default: the folder recipes, else prompts)"
)


def parse(arguments: Sequence[str], defaults: Mapping[str, Any] | None = None) -> argparse.Namespace:
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
    command = parser_of(name, helps=not {"-h", "--help"}.isdisjoint(rest))
    command.set_defaults(**(defaults or {}))
    options = argparse.Namespace(command=name, refuse=command.error, ignore=frozenset(), target_note="")
    options = command.parse(rest, options)
    options.told = {word.partition("=")[0] for word in rest}
    if name in ("render", "complete"):
        from promptkit.cli.words import find_target, find_typed

        (find_target if name == "render" else find_typed)(options)
    if name == "new":
        return options
    options.has_target = options.target is not None
    if not options.has_target:
        options.target = next(filter(os.path.isdir, _FOLDERS), _FOLDERS[0])
    return options


def parser_of(name: str, *, helps: bool = False) -> "Parser":
    """
    Return the parser of one command.

    Args:
        name:
            The command.

        helps:
            Whether it is to print its help, which needs the width of the terminal.
    """
    settings = settings_of(name)
    if not helps:
        # Asking for the width would take as long as everything else.
        settings["formatter_class"] = partial(argparse.RawDescriptionHelpFormatter, width=80)
    command = Parser(f"promptkit {name}", **settings)
    add_options(name, command)
    return command


def options_of(name: str) -> dict[str, argparse.Action]:
    """Return the options of a command, by their names without the dashes in front."""
    actions = parser_of(name)._option_string_actions  # noqa: SLF001 (argparse has no other way)
    return {
        option.removeprefix("--"): action
        for option, action in actions.items()
        if option.startswith("--") and option != "--help"
    }


class Parser(argparse.ArgumentParser):
    """Its errors suggest the option that was probably meant, and escape control characters."""

    def parse(self, arguments: Sequence[str], options: argparse.Namespace) -> argparse.Namespace:
        """Return *options* with those of a command line. Raises SystemExit if it is wrong."""
        # Options may stand between words. Only with several words does argparse need a second pass for that.
        has_words = len(self._get_positional_actions()) > 1
        read = self.parse_known_intermixed_args if has_words else self.parse_known_args
        known, unknown = read(arguments, options)
        if unknown:
            word = unknown[0].partition("=")[0]
            if not word.startswith("-"):
                self.error(f"unexpected argument {unknown[0]!r}")
            self.error(f"unknown option {word!r}{suggestion(word, self._option_string_actions)}")
        return known

    def error(self, message: str) -> NoReturn:
        """Print what is wrong, and end the program."""
        from promptkit.fragments.invisible import escape_invisible

        super().error(escape_invisible(message))


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of an error: the word that was probably meant, if any is similar."""
    from promptkit.errors.exceptions import nearest

    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def settings_of(name: str) -> dict[str, Any]:
    """Return what argparse is told about the parser of a command."""
    summary = COMMANDS[name]
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": EPILOG,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def add_options(name: str, command: argparse.ArgumentParser) -> None:
    """Add the options of a command to its parser."""
    if name == "serve":
        _add_serve(command)
        return
    from promptkit.cli.command_options import ADDED  # a server needs none of them

    ADDED[name](command)


def add_target(command: argparse.ArgumentParser, name: str = "target", **settings: Any) -> None:
    """Add what to serve, or to look at; *settings* are those of argparse."""
    command.add_argument(name, type=target, metavar="TARGET", help=_TARGET_HELP, **settings)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    add_target(serve, nargs="?")
    for name, settings in SERVE_OPTIONS.items():
        serve.add_argument(name, **settings)
    http = serve.add_argument_group(
        "HTTP", "In place of standard input and output. It needs promptkit[http]."
    )
    for name, settings in HTTP_OPTIONS.items():
        http.add_argument(name, **settings)
    group = serve.add_argument_group(
        "limits", "A request that exceeds a limit gets an error; later requests are served."
    )
    defaults, readers = Limits(), {int: whole_number, float: positive_number}
    for field, (type_, option) in OPTIONS.items():
        default = getattr(defaults, field)
        group.add_argument(
            f"--{option.name}",
            type=readers[type_],
            default=default,
            metavar=option.unit,
            help=f"{option.help} (default: {'none' if default == inf else f'{default:,.15g}'})",
        )


#: The options of `serve` besides its limits, as arguments for argparse.
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
    "--otel": {"action": "store_true", "help": "tell OpenTelemetry of each request (promptkit[otel])"},
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
