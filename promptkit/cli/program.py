"""The parser of the whole program: its help, its completion, and the errors about its commands."""

import argparse
from collections.abc import Sequence
from typing import NoReturn

from promptkit.cli.options import COMMANDS, EPILOG
from promptkit.cli.parser import Parser, add_options, settings_of, suggestion
from promptkit.version import VERSION

__all__ = ["program_parser", "refuse_command"]


def program_parser() -> Parser:
    """Return a parser that knows all commands, and all of their options."""
    parser = Parser(
        prog="promptkit",
        description="Compile prompts that are written as Python functions, and serve them to MCP clients.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"promptkit {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, summary in COMMANDS.items():
        add_options(name, commands.add_parser(name, help=summary, **settings_of(name)))
    return parser


def refuse_command(arguments: Sequence[str]) -> NoReturn:
    """
    Print the help of the program, or the error in its command.

    Args:
        arguments:
            A command line that begins with no command.

    Raises:
        SystemExit: Always.
    """
    parser = program_parser()
    word = arguments[0] if arguments else ""
    if word and not word.startswith("-"):
        hint = suggestion(word, (*COMMANDS, "help", "--version")) or f": there are {', '.join(COMMANDS)}"
        parser.error(f"unknown command {word!r}{hint}")
    _, unknown = parser.parse_known_args(arguments)
    if unknown:
        parser.error(f"unknown option {unknown[0]!r}{suggestion(unknown[0], ('--help', '--version'))}")
    parser.error(f"name a command: {', '.join(COMMANDS)}")
