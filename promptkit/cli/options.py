"""
The options of a command: the command line as argparse reads it, and what the configuration says besides.

`render` takes ``[TARGET] NAME [KEY=VALUE ...]``, where NAME may be a URI, and `complete` takes
``NAME ARGUMENT [TYPED] [KEY=VALUE ...]``, where ``KEY=VALUE`` may stand before TYPED.
"""

import argparse
import os
import re
from argparse import Action, ArgumentError, ArgumentTypeError, Namespace
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final, NoReturn

from promptkit.cli.command_options import COMMANDS
from promptkit.compiler.configuration import (
    NO_FOLDER,
    NOT_MINE,
    Configuration,
    check_keys,
    find_configuration,
)
from promptkit.errors.exceptions import ConfigurationError, LoadError
from promptkit.errors.rules import rule_of
from promptkit.errors.suggestions import nearest
from promptkit.files.reading import is_foreign
from promptkit.fragments.invisible import escape_invisible
from promptkit.loader.discovery import DEFAULT_FOLDERS
from promptkit.protocol.limits import OPTIONS, Limits
from promptkit.version import VERSION

#: How a word is shown, by how many of it there may be.
_WORDS: Final[dict[Any, str]] = {
    None: "{0}",
    "?": "[{0}]",
    "*": "[{0} ...]",
    "+": "{0} [{0} ...]",
    argparse.PARSER: "{0} ...",
}


def refusal(program: str, words: Iterable[Action], message: str) -> str:
    """Return the lines that refuse a command line: its usage, with the *words* beside options, and why."""
    message = message.replace("ignored explicit argument", "it takes no value, and has")
    return f"usage: {usage_of(program, words)}\n{program}: error: {escape_invisible(message)}\n"


def usage_of(program: str, words: Iterable[Action]) -> str:
    """Return a line that shows a command with its *words*, and its options as one word."""
    # While argparse reads options between words, it keeps elsewhere how many of a word there may be.
    shown = [_WORDS[getattr(word, "save_nargs", word.nargs)].format(word.metavar) for word in words]
    return " ".join([program, "[OPTION ...]", *shown])


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of an error: the word that was probably meant, if any is near."""
    meant = nearest(word, known)
    return f"; did you mean {meant!r}?" if meant else ""


def unknown_choice(value: object, choices: Iterable[object]) -> str:
    """Return what is wrong with a value that is none of those that there are."""
    named = list(map(str, choices))
    return f"{value!r} is not one of {', '.join(named)}{suggestion(str(value), named)}"


def without_value(option: Action) -> str:
    """Return what is wrong with an option that has no value behind it."""
    value = option.metavar or "|".join(map(str, option.choices or ())) or option.dest.upper()
    return f"it needs a value, as in {option.option_strings[-1]} {value}"


#: Commands that may need no targets: they look for them themselves.
_TARGETS_LATER: Final = ("install", "uninstall")

_EPILOG: Final = """\
exit codes:
  0    everything is fine
  1    recipes have faults, a prompt failed, a row or a file was left out, or diff found what breaks callers
  2    wrong usage: an unknown command, option, target, prompt, client or setting
  130  interrupted
"""

#: RFC 3986, section 3.1. The names of arguments have no colon.
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"


def parse(arguments: Sequence[str]) -> Namespace:
    """
    Parse the command line, and fill in the default targets.

    Args:
        arguments:
            The words after the program's name.

    Raises:
        SystemExit: If the command line asks for help, or is invalid.
    """
    if arguments and arguments[0] == "help":
        arguments = [*(word for word in arguments[1:] if word != "help"), "--help"]
    if not arguments or arguments[0] not in COMMANDS:
        _refuse_command(arguments)
    name, *words = arguments
    served = None  # what the server is to be started with that is installed
    if name in _TARGETS_LATER and "--" in words:
        at = words.index("--")
        words, served = words[:at], words[at + 1 :]
    parser = _parser_of(name, helps=not {"-h", "--help"}.isdisjoint(words))
    parser.set_defaults(command=name, refuse=parser.error, ignore=frozenset())
    parser.set_defaults(target_note="", no_target="")
    parser.set_defaults(typed_options={word.partition("=")[0] for word in words}, served=served)
    options = parser.read(words)
    if name == "render":
        _find_target(options)
    elif name == "complete":
        _find_typed(options)
    elif name == "batch":
        _find_rows(options)
    elif name in _TARGETS_LATER:
        options.find_clients(options)
    if name not in ("import", "new"):  # they load no recipes
        options.has_targets = bool(options.targets)
        options.targets = options.targets or [
            next(filter(os.path.isdir, DEFAULT_FOLDERS), DEFAULT_FOLDERS[0])
        ]
    return options


def configure(options: Namespace, argv: Sequence[str]) -> Namespace:
    """
    Return the options of a command with what ``[tool.promptkit]`` says where the command line says nothing.

    Args:
        options:
            What `parse` made of the command line.

        argv:
            The command line, which is parsed again where the configuration has options of `serve`.

    Raises:
        ConfigurationError: If the configuration has a setting, a value or a code that does not exist.

        LoadError: If neither it nor the command line names a target, and the usual folders do not exist.
    """
    try:
        found = find_configuration(only_own=options.has_targets)
    except FileNotFoundError:  # the current folder is gone
        found = Configuration()
    words = words_of(found) if found.serve else []
    if options.command == "serve" and words:
        typed_options = options.typed_options
        options = parse([*argv[:1], *words, *argv[1:]])
        options.typed_options = typed_options
    if not options.has_targets and options.command not in _TARGETS_LATER:
        options.targets = _targets(options, found)
    if found.ignore:
        options.ignore = frozenset(map(rule_of, found.ignore))
    options.configuration = found
    return options


def configured_targets(options: Namespace) -> list[str]:
    """
    Return the targets of a command that may do without: those that are named, or those of the configuration.

    Args:
        options:
            What `configure` returned.

    Raises:
        LoadError: If neither names one, and the usual folders do not exist.
    """
    named: list[str] = options.targets
    return named if options.has_targets else _targets(options, options.configuration)


def options_of(name: str) -> dict[str, Action]:
    """Return the options of a command, by their names without the dashes in front."""
    actions = _parser_of(name)._option_string_actions  # noqa: SLF001 (argparse has no other way)
    return {
        option.removeprefix("--"): action
        for option, action in actions.items()
        if option.startswith("--") and option != "--help"
    }


def limits_of(options: Namespace) -> Limits:
    """Return the limits that the command line of `serve` sets."""
    chosen = vars(options)
    return Limits(**{field: chosen[option.name.replace("-", "_")] for field, option in OPTIONS.items()})


def program_parser() -> "_Parser":
    """Return a parser that knows all commands, and all of their options."""
    parser = _Parser(
        prog="promptkit",
        description="Compile prompts that are written as Python functions, and serve them to MCP clients.",
        epilog=f"promptkit help COMMAND shows the options of one.\n\n{_EPILOG}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"promptkit {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (summary, add_options) in COMMANDS.items():
        add_options(commands.add_parser(name, help=summary, **_settings_of(name, helps=True)))
    return parser


def is_uri(word: str) -> bool:
    """Whether a word begins with a scheme. A ``=`` behind that is part of the URI."""
    return re.match(_SCHEME, word) is not None


def is_argument(word: str) -> bool:
    """Whether a word is ``KEY=VALUE``."""
    return "=" in word and not is_uri(word)


class _Parser(argparse.ArgumentParser):
    """Its errors show a line of usage, and what was probably meant: they import `promptkit.cli.options`."""

    def read(self, words: Sequence[str]) -> Namespace:
        # Options may stand between words, for which argparse takes a second pass.
        has_words = len(self._get_positional_actions()) > 1
        read = self.parse_known_intermixed_args if has_words else self.parse_known_args
        options, unknown = read(words)
        if unknown and not has_words:
            options, unknown = self.parse_known_intermixed_args(words)
        if unknown:
            word = unknown[0].partition("=")[0]
            if not word.startswith("-"):
                self.error(f"unexpected argument {unknown[0]!r}")

            hint = suggestion(word, self._option_string_actions) or _who_has(word)
            self.error(f"unknown option {word!r}{hint or f'; {self.prog} --help shows all'}")
        return options

    def error(self, message: str) -> NoReturn:
        self.exit(2, refusal(self.prog, self._get_positional_actions(), message))

    def _check_value(self, action: Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            raise ArgumentError(action, unknown_choice(value, action.choices))

    def _match_argument(self, action: Action, arg_strings_pattern: str) -> int:
        try:
            return super()._match_argument(action, arg_strings_pattern)
        except ArgumentError:
            raise ArgumentError(action, without_value(action)) from None


def _parser_of(name: str, *, helps: bool = False) -> _Parser:
    """The parser of one command."""
    parser = _Parser(f"promptkit {name}", **_settings_of(name, helps=helps))
    _, add_options = COMMANDS[name]
    add_options(parser)
    if helps:
        parser.usage = usage_of(parser.prog, parser._get_positional_actions())  # noqa: SLF001 (as above)
    return parser


def _settings_of(name: str, *, helps: bool) -> dict[str, Any]:
    """What argparse takes to make the parser of a command; only help is as wide as the terminal."""
    summary, _ = COMMANDS[name]
    # For each option argparse asks for the width, which would take as long as everything else.
    formatter = partial(argparse.RawDescriptionHelpFormatter, width=None if helps else 80)
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": _EPILOG,
        "formatter_class": formatter,
        "allow_abbrev": False,
    }


def _who_has(option: str) -> str:
    """The end of an error: the commands that have an option, if there are any."""
    others = [name for name in COMMANDS if option.removeprefix("--") in options_of(name)]
    return f"; it is an option of {', '.join(others)}" if others else ""


def _refuse_command(arguments: Sequence[str]) -> NoReturn:
    """Print the help of the program, or what is wrong with a line that begins with no command."""
    parser = program_parser()
    word = arguments[0] if arguments else ""
    if word and not word.startswith("-"):
        hint = suggestion(word, (*COMMANDS, "help", "--version")) or f": there are {', '.join(COMMANDS)}"
        parser.error(f"unknown command {word!r}{hint}")
    _, unknown = parser.parse_known_args(arguments)
    if unknown:
        hint = suggestion(unknown[0], ("--help", "--version"))
        parser.error(f"unknown option {unknown[0]!r}{hint or '; options of a command stand behind its name'}")
    parser.error(f"name a command: {', '.join(COMMANDS)}")


def _find_target(options: Namespace) -> None:
    """Tell the target from the prompt's name: the name comes last, and is no ``KEY=VALUE``."""
    if is_argument(options.name):  # argparse took an argument for the name, and the name for the target
        words = [options.name, *options.arguments]
        options.target, options.name, options.arguments = None, options.target, words
    if options.name is None or is_argument(options.name):
        options.refuse("the following arguments are required: NAME")
    options.targets = []
    if options.target is not None:
        options.targets = [options.target]
        options.target_note = "the first of two words is TARGET; arguments are written KEY=VALUE"


def _find_typed(options: Namespace) -> None:
    """Tell what was typed from the arguments that were chosen: it is no ``KEY=VALUE``."""
    words = [*(() if options.typed is None else (options.typed,)), *options.arguments]
    typed = [word for word in words if not is_argument(word)]
    if typed[1:]:
        options.refuse(f"unexpected argument {typed[1]!r}: other arguments are written KEY=VALUE")
    options.typed = typed[0] if typed else None
    options.arguments = [word for word in words if is_argument(word)]


def _find_rows(options: Namespace) -> None:
    """Tell the rows from the prompt: who joins results names none."""
    if options.join is not None and options.rows is None:
        options.name, options.rows = None, options.name
    if options.rows is None or (options.name is None) != (options.join is not None):
        options.refuse("write PROMPT ROWS, or --join RESULTS ROWS")
    if options.join is None and options.vendor is None:
        options.refuse("name a vendor with --for: each has files of its own")


def _targets(options: Namespace, found: Configuration) -> list[str]:
    """The recipes where the command line names none: those of the configuration, else the usual folder."""
    if found.targets:
        options.target_note = f"it is named by {found.file}"
        return [*found.targets]
    (usual,) = options.targets
    if is_foreign(usual):
        raise LoadError(usual, NOT_MINE)
    if not os.path.isdir(usual):  # noqa: PTH112 (False for any text)
        # A module of that name may lie anywhere. A server tells its client first, and looks for itself.
        if options.command != "serve":
            raise LoadError(usual, NO_FOLDER)
        options.no_target = NO_FOLDER
    return [usual]


def words_of(found: Configuration) -> list[str]:
    """Return the options of `serve` in a configuration, as words of a command line."""
    actions = options_of("serve")
    check_keys(found.serve, actions, found.file, "tool.promptkit.serve")
    words: list[str] = []
    for name, value in found.serve.items():
        takes_several = isinstance(value, list) and isinstance(actions[name].default, list)
        for one in value if takes_several else [value]:
            words += _words_for(actions[name], name, one, found.file)
    return words


def _words_for(action: Action, name: str, value: Any, file: str) -> list[str]:
    """The word that gives an option a value; none for a flag that is false."""
    where, is_flag = f"[tool.promptkit.serve] {name}", action.nargs == 0
    if is_flag != isinstance(value, bool) or not isinstance(value, str | int | float):
        kind = "true or false" if is_flag else "text or a number"
        raise ConfigurationError(file, f"{where} takes {kind}, not {value!r}")
    if is_flag:
        return [f"--{name}"] if value else []
    try:
        if callable(action.type):
            action.type(str(value))
    except ArgumentTypeError as error:
        raise ConfigurationError(file, f"{where}: {error}") from None
    return [f"--{name}={value}"]
