"""
The command line: its commands and options, and the errors about it.

A server parses it before its first reply, so only the parser of the command at hand is built.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from functools import partial
from math import inf
from typing import Any, Final, NoReturn

from promptkit.protocol.limits import GRACE_S, OPTIONS, PAGE_SIZE, Limits
from promptkit.version import VERSION

__all__ = ["parse"]

_EPILOG: Final = """\
exit codes:
  0    everything is fine
  1    recipes have faults, or a prompt failed
  2    wrong usage: an unknown command, option, target or prompt
  130  interrupted
"""

#: Default targets: the first of these folders that exists.
_FOLDERS: Final = ("recipes", "prompts")

_TARGET_HELP: Final = (
    "a folder of recipes, a file, a module, or module:object (default: the folder recipes, else prompts)"
)

#: Larger values are typing errors, and clocks and counters cannot take them.
_MAX_NUMBER: Final = 10**12
_MAX_SECONDS: Final = 10**9


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """
    Parse the command line, and fill in the default target.

    Args:
        arguments:
            What follows the program's name.

    Raises:
        SystemExit: If the line asks for help, or is wrong.
    """
    if arguments and arguments[0] == "help":
        arguments = [*arguments[1:], "--help"]
    if not arguments or arguments[0] not in _COMMANDS:
        return _refuse_command(arguments)
    name, *rest = arguments
    settings = _parser_settings(name)
    if {"-h", "--help"}.isdisjoint(rest):
        # Asking for the width of the terminal would take as long as everything else.
        settings["formatter_class"] = partial(argparse.RawDescriptionHelpFormatter, width=80)
    command = _Parser(f"promptkit {name}", **settings)
    _COMMANDS[name][1](command)
    options = command.parse(rest, argparse.Namespace(command=name, refuse=command.error))
    if name == "render":
        _find_target(options)
    options.has_target = options.target is not None
    if not options.has_target:
        options.target = next(filter(os.path.isdir, _FOLDERS), _FOLDERS[0])
    return options


class _Parser(argparse.ArgumentParser):
    """Suggests the option that was probably meant, and prints no control characters."""

    def parse(self, arguments: Sequence[str], options: argparse.Namespace) -> argparse.Namespace:
        # Options may stand anywhere. With one word or none, that takes no second pass.
        has_words = len(self._get_positional_actions()) > 1
        read = self.parse_known_intermixed_args if has_words else self.parse_known_args
        known, unknown = read(arguments, options)
        if unknown:
            word = unknown[0].partition("=")[0]
            if not word.startswith("-"):
                self.error(f"unexpected argument {unknown[0]!r}")
            self.error(f"unknown option {word!r}{_suggestion(word, self._option_string_actions)}")
        return known

    def error(self, message: str) -> NoReturn:
        from promptkit.fragments.invisible import escape_invisible

        super().error(escape_invisible(message))


def _suggestion(word: str, known: Sequence[str] | dict[str, Any]) -> str:
    from promptkit.errors.exceptions import nearest

    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def _refuse_command(arguments: Sequence[str]) -> NoReturn:
    """Print the help of the whole program, or the error in the command."""
    parser = _Parser(
        prog="promptkit",
        description="Compile prompts that are written as Python functions, and serve them to MCP clients.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"promptkit {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (summary, _) in _COMMANDS.items():
        commands.add_parser(name, help=summary, **_parser_settings(name))
    word = arguments[0] if arguments else ""
    if word and not word.startswith("-"):
        parser.error(f"unknown command {word!r}{_suggestion(word, _COMMANDS)}")
    _, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}{_suggestion(unknown[0], ('--help', '--version'))}")
    parser.error(f"name a command: {', '.join(_COMMANDS)}")


def _parser_settings(name: str) -> dict[str, Any]:
    summary = _COMMANDS[name][0]
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": _EPILOG,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _find_target(options: argparse.Namespace) -> None:
    """Tell the target of `render` from the prompt's name: the name comes last, and has no ``=``."""
    if "=" in options.name:  # argparse took an argument for the name, and the name for the target
        words = [options.name, *options.arguments]
        options.target, options.name, options.arguments = None, options.target, words
    if options.name is None or "=" in options.name:
        options.refuse("the following arguments are required: NAME")


def _add_target(command: argparse.ArgumentParser) -> None:
    command.add_argument("target", nargs="?", type=_target, metavar="TARGET", help=_TARGET_HELP)


def _add_serve(serve: argparse.ArgumentParser) -> None:
    _add_target(serve)
    for name, settings in _SERVE_OPTIONS.items():
        serve.add_argument(name, **settings)
    group = serve.add_argument_group(
        "limits", "A request beyond a limit is refused with an error; the next one is served."
    )
    defaults, readers = Limits(), {int: _whole_number, float: _positive_number}
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
    listing.add_argument("--json", action="store_true", help="print the JSON that a client receives")


def _add_render(render: argparse.ArgumentParser) -> None:
    _add_target(render)
    render.add_argument("name", metavar="NAME", help="the prompt")
    render.add_argument(
        "arguments",
        nargs="*",
        default=[],
        metavar="KEY=VALUE",
        help="an argument, as a client sends it; KEY=@FILE reads the value from a file, KEY=@- from "
        "standard input, and KEY=@@X is the text @X",
    )
    render.add_argument("--json", action="store_true", help="print the JSON that a client receives")


def _add_check(check: argparse.ArgumentParser) -> None:
    _add_target(check)
    check.add_argument("--json", action="store_true", help="print JSON, for other programs")
    check.add_argument("--compiled", metavar="FILE", help="report, too, if what build wrote is stale")


def _add_build(build: argparse.ArgumentParser) -> None:
    _add_target(build)
    build.add_argument(
        "--out", metavar="FILE", help="where to write it (default: beside the target, with .compiled)"
    )
    for name in ("--name", "--page-size"):
        build.add_argument(name, **_SERVE_OPTIONS[name])


def _target(text: str) -> str:
    if not text:
        msg = "it is empty: name a folder, a file or a module"
        raise argparse.ArgumentTypeError(msg)
    return text


def _name(text: str) -> str:
    if not text.strip():
        msg = "it is empty: clients show this name"
        raise argparse.ArgumentTypeError(msg)
    if not text.isprintable():
        from promptkit.fragments.invisible import escape_invisible

        if escape_invisible(text, one_line=True) != text:
            msg = f"{text!r} has characters that clients cannot show"
            raise argparse.ArgumentTypeError(msg)
    return text


def _whole_number(text: str) -> int:
    # Python itself refuses to read very many digits.
    if not (text.isascii() and text.isdigit() and len(text) <= 20 and 1 <= int(text) <= _MAX_NUMBER):
        msg = f"{text!r} is not a whole number from 1 to {_MAX_NUMBER:,}"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _positive_number(text: str) -> float:
    number = _number(text)
    if not 0 < number <= _MAX_SECONDS:
        msg = f"{text!r} is not a number above 0 and up to {_MAX_SECONDS:,}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _number_or_zero(text: str) -> float:
    number = _number(text)
    if not 0 <= number <= _MAX_SECONDS:
        msg = f"{text!r} is not a number from 0 to {_MAX_SECONDS:,}"
        raise argparse.ArgumentTypeError(msg)
    return number


def _number(text: str) -> float:
    """The number, or -1 if *text* is none: no option takes that."""
    try:
        return float(text)
    except ValueError:
        return -1.0


#: The options of `serve` beside its limits, as argparse takes them.
_SERVE_OPTIONS: Final[dict[str, dict[str, Any]]] = {
    "--strict": {"action": "store_true", "help": "refuse to serve while any recipe has a fault"},
    "--name": {
        "type": _name,
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
        "type": _whole_number,
        "default": PAGE_SIZE,
        "metavar": "NUMBER",
        "help": f"how many prompts or resources one page of a list holds (default: {PAGE_SIZE})",
    },
    "--grace": {
        "type": _number_or_zero,
        "default": GRACE_S,
        "metavar": "SECONDS",
        "help": f"how long to wait for running prompts at the end (default: {GRACE_S:g})",
    },
    "--audit": {
        "metavar": "FILE",
        "help": "write one line of JSON per request to FILE, without the values of arguments",
    },
}

#: Each command is a module of this package; here is what it does, and what adds its options.
_COMMANDS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "serve": ("answer an MCP client on standard input and output", _add_serve),
    "list": ("show the prompts and resources, and their arguments", _add_list),
    "render": ("render one prompt and show it", _add_render),
    "check": ("report every fault in the recipes", _add_check),
    "build": ("write what a server of the recipes starts from, for deployment", _add_build),
}
