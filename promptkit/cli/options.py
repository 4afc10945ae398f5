"""
Parsing of the command line, and defaults from the configuration.

`render` accepts ``[TARGET] NAME [KEY=VALUE ...]``, where NAME can be a URI, and `complete` accepts
``NAME ARGUMENT [TYPED] [KEY=VALUE ...]``, where ``KEY=VALUE`` can come before TYPED.
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

#: The usage of a positional word, by its `nargs`.
_WORDS: Final[dict[Any, str]] = {
    None: "{0}",
    "?": "[{0}]",
    "*": "[{0} ...]",
    "+": "{0} [{0} ...]",
    argparse.PARSER: "{0} ...",
}


def refusal(program: str, words: Iterable[Action], message: str) -> str:
    """
    Return the message for an invalid command line: the usage with its positional *words*, and the reason.
    """
    message = message.replace("ignored explicit argument", "it takes no value, and has")
    return f"usage: {format_usage(program, words)}\n{program}: error: {escape_invisible(message)}\n"


def format_usage(program: str, words: Iterable[Action]) -> str:
    """Return the usage line of a command, with its *words*, and its options as one word."""
    # While argparse parses intermixed options, it moves `nargs` to `save_nargs`.
    formatted = [_WORDS[getattr(word, "save_nargs", word.nargs)].format(word.metavar) for word in words]
    return " ".join([program, "[OPTION ...]", *formatted])


def suggestion(word: str, known: Iterable[str]) -> str:
    """Return the end of an error message with the most similar word, if there is one."""
    similar = nearest(word, known)
    return f"; did you mean {similar!r}?" if similar else ""


def unknown_choice(value: object, choices: Iterable[object]) -> str:
    """Return the error message for an invalid choice."""
    named = list(map(str, choices))
    return f"{value!r} is not one of {', '.join(named)}{suggestion(str(value), named)}"


def missing_value(option: Action) -> str:
    """Return the error message for an option without a value."""
    value = option.metavar or "|".join(map(str, option.choices or ())) or option.dest.upper()
    return f"it needs a value, as in {option.option_strings[-1]} {value}"


#: Commands that can work without targets, and find the default ones themselves.
_TARGETS_LATER: Final = ("install", "uninstall")

_EPILOG: Final = """\
exit codes:
  0    success
  1    recipes have errors, a prompt failed, a row or file was skipped, or diff found a breaking change
  2    wrong usage: an unknown command, option, target, prompt, client or setting
  130  interrupted
"""

#: RFC 3986, section 3.1. Names of arguments have no colon.
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"


def parse(arguments: Sequence[str]) -> Namespace:
    """
    Parse the command line, and fill in the default targets.

    Args:
        arguments:
            The command-line arguments, without the program's name.

    Raises:
        SystemExit: If the command line asks for help, or is invalid.
    """
    if arguments and arguments[0] == "help":
        arguments = [*(word for word in arguments[1:] if word != "help"), "--help"]
    if not arguments or arguments[0] not in COMMANDS:
        _refuse_command(arguments)
    name, *words = arguments
    served = None  # the options for the server that `install` writes
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
    Return the options of a command, completed with the settings of ``[tool.promptkit]``.

    Args:
        options:
            The result of `parse`.

        argv:
            The command line, which is parsed again if the configuration has options of `serve`.

    Raises:
        ConfigurationError: If a setting, a value or a code is unknown or invalid.

        LoadError: If no target is given or configured, and no default folder exists.
    """
    try:
        configuration = find_configuration(only_own=options.has_targets)
    except FileNotFoundError:  # the current folder is gone
        configuration = Configuration()
    words = serve_words(configuration) if configuration.serve else []
    if options.command == "serve" and words:
        typed_options = options.typed_options
        options = parse([*argv[:1], *words, *argv[1:]])
        options.typed_options = typed_options
    if not options.has_targets and options.command not in _TARGETS_LATER:
        options.targets = _targets(options, configuration)
    if configuration.ignore:
        options.ignore = frozenset(map(rule_of, configuration.ignore))
    options.configuration = configuration
    return options


def configured_targets(options: Namespace) -> list[str]:
    """
    Return the given targets, or otherwise the configured targets, of a command that works without targets.

    Args:
        options:
            The result of `configure`.

    Raises:
        LoadError: If no target is given or configured, and no default folder exists.
    """
    named: list[str] = options.targets
    return named if options.has_targets else _targets(options, options.configuration)


def options_of(name: str) -> dict[str, Action]:
    """Return the options of a command, by their names without the leading dashes."""
    actions = _parser_of(name)._option_string_actions  # noqa: SLF001 (argparse offers no other way)
    return {
        option.removeprefix("--"): action
        for option, action in actions.items()
        if option.startswith("--") and option != "--help"
    }


def limits_of(options: Namespace) -> Limits:
    """Return the limits set on the command line of `serve`."""
    chosen = vars(options)
    return Limits(**{field: chosen[option.name.replace("-", "_")] for field, option in OPTIONS.items()})


def program_parser() -> "_Parser":
    """Return a parser for all commands, with all of their options."""
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
    """Return whether a word starts with a URI scheme; a later ``=`` is part of the URI."""
    return re.match(_SCHEME, word) is not None


def is_argument(word: str) -> bool:
    """Return whether a word is ``KEY=VALUE``."""
    return "=" in word and not is_uri(word)


class _Parser(argparse.ArgumentParser):
    """A parser whose errors show the usage, and suggest similar words."""

    def read(self, words: Sequence[str]) -> Namespace:
        # Options between words need the slower, intermixed parsing of argparse.
        has_words = len(self._get_positional_actions()) > 1
        read = self.parse_known_intermixed_args if has_words else self.parse_known_args
        options, unknown = read(words)
        if unknown and not has_words:
            options, unknown = self.parse_known_intermixed_args(words)
        if unknown:
            word = unknown[0].partition("=")[0]
            if not word.startswith("-"):
                self.error(f"unexpected argument {unknown[0]!r}")

            hint = suggestion(word, self._option_string_actions) or _commands_with(word)
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
            raise ArgumentError(action, missing_value(action)) from None


def _parser_of(name: str, *, helps: bool = False) -> _Parser:
    parser = _Parser(f"promptkit {name}", **_settings_of(name, helps=helps))
    _, add_options = COMMANDS[name]
    add_options(parser)
    if helps:
        parser.usage = format_usage(parser.prog, parser._get_positional_actions())  # noqa: SLF001 (as above)
    return parser


def _settings_of(name: str, *, helps: bool) -> dict[str, Any]:
    """Return the argparse settings for a command's parser; only help is as wide as the terminal."""
    summary, _ = COMMANDS[name]
    # Without a width, argparse queries the terminal for each option, which would double the parsing time.
    formatter = partial(argparse.RawDescriptionHelpFormatter, width=None if helps else 80)
    return {
        "description": f"{summary[0].upper()}{summary[1:]}.",
        "epilog": _EPILOG,
        "formatter_class": formatter,
        "allow_abbrev": False,
    }


def _commands_with(option: str) -> str:
    """Return the end of an error message with the commands that have an option, if there are any."""
    commands = [name for name in COMMANDS if option.removeprefix("--") in options_of(name)]
    return f"; it is an option of {', '.join(commands)}" if commands else ""


def _refuse_command(arguments: Sequence[str]) -> NoReturn:
    """Exit with the help of the program, or with the error of a line that does not start with a command."""
    parser = program_parser()
    word = arguments[0] if arguments else ""
    if word and not word.startswith("-"):
        hint = suggestion(word, (*COMMANDS, "help", "--version")) or f": there are {', '.join(COMMANDS)}"
        parser.error(f"unknown command {word!r}{hint}")
    _, unknown = parser.parse_known_args(arguments)
    if unknown:
        hint = suggestion(unknown[0], ("--help", "--version"))
        parser.error(f"unknown option {unknown[0]!r}{hint or '; options of a command follow its name'}")
    parser.error(f"name a command: {', '.join(COMMANDS)}")


def _find_target(options: Namespace) -> None:
    """Separate the target from the prompt's name, which comes last and is not ``KEY=VALUE``."""
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
    """Separate the typed text from the chosen arguments, which are ``KEY=VALUE``."""
    words = [*(() if options.typed is None else (options.typed,)), *options.arguments]
    typed = [word for word in words if not is_argument(word)]
    if typed[1:]:
        options.refuse(f"unexpected argument {typed[1]!r}: other arguments are written KEY=VALUE")
    options.typed = typed[0] if typed else None
    options.arguments = [word for word in words if is_argument(word)]


def _find_rows(options: Namespace) -> None:
    """Separate the rows from the prompt; with ``--join``, there is no prompt."""
    if options.join is not None and options.rows is None:
        options.name, options.rows = None, options.name
    if options.rows is None or (options.name is None) != (options.join is not None):
        options.refuse("write PROMPT ROWS, or --join RESULTS ROWS")
    if options.join is None and options.vendor is None:
        options.refuse("name a vendor with --for: each has files of its own")


def _targets(options: Namespace, configuration: Configuration) -> list[str]:
    """Return the configured targets, or otherwise the default folder."""
    if configuration.targets:
        options.target_note = f"it is named by {configuration.file}"
        return [*configuration.targets]
    (folder,) = options.targets
    if is_foreign(folder):
        raise LoadError(folder, NOT_MINE)
    if not os.path.isdir(folder):  # noqa: PTH112 (False for any text)
        # A module can have that name. `serve` looks for it after it has started to answer its client.
        if options.command != "serve":
            raise LoadError(folder, NO_FOLDER)
        options.no_target = NO_FOLDER
    return [folder]


def serve_words(configuration: Configuration) -> list[str]:
    """Return the configured options of `serve` as command-line arguments."""
    actions = options_of("serve")
    check_keys(configuration.serve, actions, configuration.file, "tool.promptkit.serve")
    words: list[str] = []
    for name, value in configuration.serve.items():
        takes_several = isinstance(value, list) and isinstance(actions[name].default, list)
        for item in value if takes_several else [value]:
            words += _words_for(actions[name], name, item, configuration.file)
    return words


def _words_for(action: Action, name: str, value: Any, file: str) -> list[str]:
    """Return the word that sets an option; none for a flag that is false."""
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
