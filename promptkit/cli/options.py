"""
The command line: its commands and options, and the errors about it.

A server parses it before its first reply. To save time, only the parser of the given command is built.
"""

import argparse
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final, NoReturn

from promptkit.cli.option_types import number_or_zero, positive_number, server_name, target, whole_number
from promptkit.protocol.limits import GRACE_S, OPTIONS, PAGE_SIZE, Limits

__all__ = ["COMMANDS", "EPILOG", "Parser", "options_of", "parse", "parser_of", "settings_of", "suggestion"]

EPILOG: Final = """\
exit codes:
  0    everything is fine
  1    recipes have faults, or a prompt failed
  2    wrong usage: an unknown command, option, target, prompt or setting
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
    options = argparse.Namespace(command=name, refuse=command.error, ignore=frozenset(), configuration="")
    options = command.parse(rest, options)
    if name in ("render", "complete"):
        from promptkit.cli.words import find_target, find_typed

        (find_target if name == "render" else find_typed)(options)
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
    COMMANDS[name][1](command)
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
    summary = COMMANDS[name][0]
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": EPILOG,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", nargs="?", type=target, metavar="TARGET", help=_TARGET_HELP)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    _add_target(serve)
    for name, settings in _SERVE_OPTIONS.items():
        serve.add_argument(name, **settings)
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


def _add_list(listing: argparse.ArgumentParser) -> None:
    _add_target(listing)
    _add_json(listing, "print the JSON that a client receives")


def _add_render(render: argparse.ArgumentParser) -> None:
    _add_target(render)
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
        choices=("transcript", "markdown", "json"),
        default="transcript",
        help="how to show it: turn by turn, as Markdown, or as the JSON that a client receives "
        "(default: transcript)",
    )
    _add_json(form, "short for --format json")
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


def _add_check(check: argparse.ArgumentParser) -> None:
    _add_target(check)
    check.add_argument(
        "--client",
        action="append",
        default=[],
        metavar="NAME",
        help="also find what this client cannot show; may be repeated (default: those of the configuration)",
    )
    form = check.add_mutually_exclusive_group()
    form.add_argument(
        "--format",
        choices=("text", "json", "github"),
        default="text",
        help="text for people, JSON for other programs, or annotations for GitHub Actions (default: text)",
    )
    _add_json(form, "short for --format json")
    check.add_argument(
        "--render",
        action="store_true",
        help="also render every prompt, and read every resource, for its examples",
    )
    check.add_argument("--compiled", metavar="FILE", help="also report if what build wrote is stale")


def _add_complete(complete: argparse.ArgumentParser) -> None:
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
    complete.add_argument("--target", type=target, metavar="TARGET", help=_TARGET_HELP)
    _add_json(complete, "print the JSON that a client receives")


def _add_json(group: Any, summary: str) -> None:
    group.add_argument("--json", action="store_true", help=summary)


def _add_build(build: argparse.ArgumentParser) -> None:
    _add_target(build)
    build.add_argument(
        "--out", metavar="FILE", help="where to write it (default: beside the target, with .compiled)"
    )
    for name in ("--name", "--page-size"):
        build.add_argument(name, **_SERVE_OPTIONS[name])


#: The options of `serve` besides its limits, as arguments for argparse.
_SERVE_OPTIONS: Final[dict[str, dict[str, Any]]] = {
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
    "--grace": {
        "type": number_or_zero,
        "default": GRACE_S,
        "metavar": "SECONDS",
        "help": f"how long to wait for running prompts at shutdown (default: {GRACE_S:g})",
    },
    "--audit": {
        "metavar": "FILE",
        "help": "write one line of JSON per request to FILE, without the values of arguments",
    },
}

#: Each command is a module of this package; here is what it does, and what adds its options.
COMMANDS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "serve": ("answer an MCP client on standard input and output", _add_serve),
    "list": ("show the prompts and resources, and their arguments", _add_list),
    "render": ("render one prompt and show it", _add_render),
    "check": ("report every fault in the recipes", _add_check),
    "complete": ("show what a client would be offered for an argument", _add_complete),
    "build": ("write what a server of the recipes starts from, for deployment", _add_build),
}
