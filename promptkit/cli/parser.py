"""The command line as argparse reads it, with errors that say what to do. Help and shells need it, too."""

import argparse
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from promptkit.cli.option_types import target
from promptkit.cli.options import COMMANDS, EPILOG, HTTP_OPTIONS, SERVE_OPTIONS, limit_options

__all__ = ["Parser", "add_options", "add_target", "options_of", "parser_of", "settings_of", "suggestion"]

_TARGET_HELP: Final = (
    "a folder of recipes, a file, a module, or module:object, unless [tool.promptkit] in pyproject.toml "
    "names it (default: the folder recipes, else prompts)"
)


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

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Return the values of the options of a command line. Raises SystemExit if it is wrong."""
        # Options may stand between words. Only with several words does argparse need a second pass for that.
        has_words = len(self._get_positional_actions()) > 1
        read = self.parse_known_intermixed_args if has_words else self.parse_known_args
        known, unknown = read(words)
        if unknown:
            word = unknown[0].partition("=")[0]
            if not word.startswith("-"):
                self.error(f"unexpected argument {unknown[0]!r}")
            self.error(f"unknown option {word!r}{suggestion(word, self._option_string_actions)}")
        return vars(known)

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
    http = serve.add_argument_group("HTTP", "In place of standard input and output. It needs the extra http.")
    for name, settings in HTTP_OPTIONS.items():
        http.add_argument(name, **settings)
    group = serve.add_argument_group(
        "limits", "A request that exceeds a limit gets an error; later requests are served."
    )
    for name, settings in limit_options().items():
        group.add_argument(name, **settings)
