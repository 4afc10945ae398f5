"""
The command line: one module for each command, imported when it is called.

Exit codes are those of `Exit`, for every command.
"""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Sequence
from enum import IntEnum
from functools import partial
from importlib import import_module
from io import TextIOWrapper
from math import inf
from typing import Any, Final

from promptkit.version import VERSION

__all__ = ["Exit", "main"]


class Exit(IntEnum):
    """
    What a command tells the shell.
    """

    FINE = 0
    FAULTY = 1
    USAGE = 2
    INTERRUPTED = 130


_EPILOG = """\
exit codes:
  0    everything is fine
  1    recipes have faults, or a prompt failed
  2    wrong usage: an unknown command, option, target or prompt
  130  interrupted
"""

_TARGET = "a folder of recipes, a file, a module, or module:object (default: recipes)"


def main(argv: Sequence[str] | None = None) -> int:
    """
    Run one command.

    Args:
        argv:
            What stands after the program's name; that of the process if left out.

    Returns:
        The exit code, one of `Exit`.

    Raises:
        SystemExit: If *argv* asks for help, or cannot be understood.
    """
    options = _options(sys.argv[1:] if argv is None else argv)
    gc.disable()  # nothing that imports make becomes garbage, and looking for it takes time
    command = import_module(f"promptkit.cli.{options.command}")
    gc.enable()
    from promptkit.errors import LoadError

    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # what prompts say may hold anything
    try:
        code = int(command.run(options))
        if sys.stdout is not None:  # as it is where a server is started without
            sys.stdout.flush()
    except LoadError as error:
        print(f"promptkit: {error}", file=sys.stderr)
        return Exit.USAGE
    except KeyboardInterrupt:
        return Exit.INTERRUPTED
    except BrokenPipeError:  # `promptkit list | head` has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: PTH123, SIM115 (the interpreter flushes it at the end)
        return Exit.FAULTY
    return code


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """
    Return what the command line says. Raises SystemExit if it asks for help, or cannot be understood.
    """
    if not arguments or arguments[0] not in _COMMANDS:
        return _parser().parse_args(arguments)
    name, *rest = arguments
    look = _look(name)
    if {"-h", "--help"}.isdisjoint(rest):
        # To ask how wide the terminal is would take as long as all the rest.
        look["formatter_class"] = partial(argparse.RawDescriptionHelpFormatter, width=80)
    command = argparse.ArgumentParser(f"promptkit {name}", **look)
    _COMMANDS[name][1](command)
    return command.parse_args(rest, argparse.Namespace(command=name))


def _parser() -> argparse.ArgumentParser:
    """
    Return what understands the whole command line.
    """
    parser = argparse.ArgumentParser(
        prog="promptkit",
        description="Compile prompts that are written as Python functions, and serve them to MCP clients.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"promptkit {VERSION}")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, (summary, add_arguments) in _COMMANDS.items():
        add_arguments(commands.add_parser(name, help=summary, **_look(name)))
    return parser


def _look(name: str) -> dict[str, Any]:
    """
    Return what the help of a command looks like.
    """
    summary = _COMMANDS[name][0]
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": _EPILOG,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _add_serve(serve: argparse.ArgumentParser) -> None:
    serve.add_argument("target", nargs="?", default="recipes", metavar="TARGET", help=_TARGET)
    serve.add_argument("--strict", action="store_true", help="refuse to serve while any recipe has a fault")
    serve.add_argument(
        "--name", default="promptkit", help="what the server calls itself (default: promptkit)"
    )
    serve.add_argument(
        "--no-watch",
        dest="watch",
        action="store_false",
        help="serve the recipes as they are now, whatever becomes of their files",
    )
    serve.add_argument(
        "--no-cache",
        dest="cache",
        action="store_false",
        help="import all recipes before the first answer, and keep nothing on disk",
    )
    serve.add_argument(
        "--page-size",
        type=_whole_number,
        default=100,
        metavar="NUMBER",
        help="how many prompts or resources a page of a list holds (default: 100)",
    )
    serve.add_argument(
        "--grace",
        type=float,
        default=1.0,
        metavar="SECONDS",
        help="how long running prompts are waited for at the end (default: 1)",
    )
    serve.add_argument(
        "--audit", metavar="FILE", help="write a line of JSON to FILE for each request, without any value"
    )
    limits = serve.add_argument_group(
        "limits", "What goes beyond is refused with an error; the rest is served."
    )
    for name, type_, default, what in _LIMITS:
        metavar = "SECONDS" if name == "timeout" else "NUMBER"
        shown = f"{default:,}" if default else "none"
        limits.add_argument(
            f"--{name}", type=type_, default=default, metavar=metavar, help=f"{what} (default: {shown})"
        )


def _whole_number(text: str) -> int:
    """
    Return the number above zero that *text* stands for. Raises ArgumentTypeError if it is none.
    """
    if not text.isdecimal() or int(text) < 1:
        msg = f"{text!r} is no whole number above zero"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def _seconds(text: str) -> float:
    """
    Return the number above zero that *text* stands for. Raises ArgumentTypeError if it is none.
    """
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 0 < number < inf:
        msg = f"{text!r} is no number above zero"
        raise argparse.ArgumentTypeError(msg)
    return number


#: The limits of `serve`: each option, its type, its default, and what it limits.
_LIMITS: Final = (
    ("timeout", _seconds, 30.0, "how long a prompt may take if its author does not say"),
    ("max-renders", _whole_number, 64, "how many prompts may be rendered beside each other"),
    ("max-line", _whole_number, 64 * 1024 * 1024, "how many bytes a request may have"),
    ("max-depth", _whole_number, 100, "how deep the JSON of a request may be nested"),
    ("max-arguments", _whole_number, 1000, "how many arguments a request may have"),
    ("max-argument", _whole_number, 4 * 1024 * 1024, "how many characters an argument may have"),
    ("max-reply", _whole_number, 64 * 1024 * 1024, "how many bytes a reply may have"),
    ("rate", _seconds, None, "how many requests a second are answered, after as many at once"),
    ("completion-rate", _seconds, 500.0, "the same for requests for completion"),
)


def _add_list(listing: argparse.ArgumentParser) -> None:
    listing.add_argument("target", nargs="?", default="recipes", metavar="TARGET", help=_TARGET)
    listing.add_argument("--json", action="store_true", help="as a client receives them")


def _add_render(render: argparse.ArgumentParser) -> None:
    render.add_argument("target", metavar="TARGET", help=_TARGET.partition(" (")[0])
    render.add_argument("name", metavar="NAME", help="the prompt")
    render.add_argument(
        "arguments",
        nargs="*",
        metavar="KEY=VALUE",
        help="an argument as a client sends it; KEY=@FILE takes what a file holds, KEY=@@X is the text @X",
    )
    render.add_argument("--json", action="store_true", help="as a client receives it")


def _add_check(check: argparse.ArgumentParser) -> None:
    check.add_argument("target", nargs="?", default="recipes", metavar="TARGET", help=_TARGET)
    check.add_argument("--json", action="store_true", help="for machines")


#: Each command, a module of this package: what it does, and what adds its arguments.
_COMMANDS: Final[dict[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "serve": ("answer an MCP client on standard input and output", _add_serve),
    "list": ("show the prompts and their arguments", _add_list),
    "render": ("render one prompt and show it", _add_render),
    "check": ("report every fault in the recipes", _add_check),
}
