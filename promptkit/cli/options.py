"""
The parser of the command line, which also fills in defaults from the configuration.

`render` accepts ``[TARGET] NAME [KEY=VALUE ...]``, where NAME can be a URI, and `complete` accepts
``NAME ARGUMENT [TYPED] [KEY=VALUE ...]``, where ``KEY=VALUE`` can come before TYPED. ``PREFIX=TARGET`` has
the same form as ``KEY=VALUE``, so these two commands accept it only with ``--target``.
"""

import os
import re
from argparse import Action, ArgumentParser, ArgumentTypeError, Namespace, RawDescriptionHelpFormatter
from collections.abc import Sequence
from typing import Any, Final, NoReturn

from promptkit.cli.parsers import COMMANDS, POSITIONAL_USAGE
from promptkit.compiler.configuration import (
    NO_FOLDER,
    NOT_MINE,
    Configuration,
    check_keys,
    find_configuration,
)
from promptkit.errors.exceptions import ConfigurationError, LoadError
from promptkit.errors.rules import find_ignorable_rule
from promptkit.errors.suggestions import nearest
from promptkit.files.reading import has_untrusted_owner
from promptkit.loader.discovery import DEFAULT_FOLDERS
from promptkit.loader.targets import split_prefix, with_markdown
from promptkit.protocol.limits import OPTIONS, Limits
from promptkit.version import VERSION

#: Commands that do not always need targets, and that look up the default targets themselves.
_TARGETS_LATER: Final = ("install", "uninstall")

_EPILOG: Final = """\
exit codes:
  0    success
  1    recipes have errors, a prompt failed, a row or file was skipped, or diff found a breaking change
  2    wrong usage: an unknown command, option, target, prompt, client or setting
  130  interrupted
"""

#: RFC 3986, section 3.1. Argument names contain no colon.
_SCHEME: Final = r"[A-Za-z][A-Za-z0-9+.-]*:"


def parse(arguments: Sequence[str]) -> Namespace:
    """
    Parse the command line, and fill in the default targets.

    Args:
        arguments:
            The command-line arguments, without the program's name.

    Raises:
        SystemExit: If the command line requests help, or is invalid.
    """
    if not arguments or arguments[0] == "help":
        arguments = [*(word for word in arguments[1:] if word != "help"), "--help"]
    if arguments[0] not in COMMANDS:
        _exit_without_command(arguments[0])
    name, *words = arguments
    served = None  # the options of `serve` for the server that `install` adds
    if name in _TARGETS_LATER and "--" in words:
        at = words.index("--")
        words, served = words[:at], words[at + 1 :]
    parser = _create_parser(name)
    parser.set_defaults(command=name, error=parser.error, ignore=frozenset(), elicit=None, target_note="")
    parser.set_defaults(servers=[])
    parser.set_defaults(typed_options={word.partition("=")[0] for word in words}, served=served)
    # Options can come between words. Given --, argparse would parse the words after it as options.
    parse_words = parser.parse_known_args if "--" in words else parser.parse_known_intermixed_args
    options, unknown = parse_words(words)
    if unknown:
        _report_unknown_word(parser, name, unknown[0])
    if name == "render":
        _separate_target(options)
    elif name == "complete":
        _split_completion_input(options)
    elif name == "batch":
        _check_batch(options)
    elif name in _TARGETS_LATER:
        options.separate_clients(options)
    if name not in ("import", "new"):  # these two load no recipes
        _use_servers(options)
        options.has_targets = bool(options.targets)
        targets = options.targets or [next(filter(os.path.isdir, DEFAULT_FOLDERS), DEFAULT_FOLDERS[0])]
        options.targets = with_markdown(targets, options.markdown) if options.has_targets else targets
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
    configuration = find_configuration(only_own=options.has_targets)
    words = serve_arguments(configuration) if configuration.serve else []
    if options.command == "serve" and words:
        typed_options = options.typed_options
        options = parse([*argv[:1], *words, *argv[1:]])
        options.typed_options = typed_options
    if not options.has_targets and options.command not in _TARGETS_LATER:
        options.targets = _resolve_targets(options, configuration)
    if configuration.ignore:
        options.ignore = frozenset(map(find_ignorable_rule, configuration.ignore))
    options.elicit = configuration.elicit
    options.configuration = configuration
    return options


def configured_targets(options: Namespace) -> list[str]:
    """
    Return the given targets or, if there are none, the configured targets.

    Args:
        options:
            The result of `configure`.

    Raises:
        LoadError: If no target is given or configured, and no default folder exists.
    """
    named: list[str] = options.targets
    return named if options.has_targets else _resolve_targets(options, options.configuration)


def options_of(name: str) -> dict[str, Action]:
    """Return the options of a command, keyed by their names without the leading dashes."""
    actions = _create_parser(name)._option_string_actions  # noqa: SLF001 (argparse has no public table of them)
    return {
        option.removeprefix("--"): action
        for option, action in actions.items()
        if option.startswith("--") and option != "--help"
    }


def limits_of(options: Namespace) -> Limits:
    """Return the limits set on the command line of `serve`."""
    chosen = vars(options)
    return Limits(**{field: chosen[option.name.replace("-", "_")] for field, option in OPTIONS.items()})


def create_program_parser() -> ArgumentParser:
    """Return a parser for all commands, with all of their options."""
    parser = ArgumentParser(
        prog="promptkit",
        usage="promptkit [OPTION ...] COMMAND ...",
        description="Compile prompts that are written as Python functions, and serve them to MCP clients.",
        epilog=f"Run promptkit help COMMAND for the options of a command.\n\n{_EPILOG}",
        formatter_class=RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"promptkit {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (summary, add_options) in COMMANDS.items():
        add_options(commands.add_parser(name, help=summary))
    return parser


def is_uri(word: str) -> bool:
    """Return whether a word starts with a URI scheme; a later ``=`` is part of the URI."""
    return re.match(_SCHEME, word) is not None


def is_argument(word: str) -> bool:
    """Return whether a word has the form ``KEY=VALUE``."""
    return "=" in word and not is_uri(word)


def _create_parser(name: str) -> ArgumentParser:
    summary, add_options = COMMANDS[name]
    parser = ArgumentParser(
        prog=f"promptkit {name}",
        usage=f"promptkit {name} [OPTION ...] {POSITIONAL_USAGE.get(name, '[TARGET ...]')}",
        description=f"{summary[0].upper()}{summary[1:]}.",
        epilog=_EPILOG,
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add_options(parser)
    return parser


def _report_unknown_word(parser: ArgumentParser, command: str, word: str) -> NoReturn:
    """Exit with the error for an option or an argument that a command does not have."""
    option = word.partition("=")[0]
    if not option.startswith("-"):
        parser.error(f"unexpected argument {word!r}")
    similar = nearest(option, [f"--{name}" for name in options_of(command)])
    hint = f"did you mean {similar!r}?" if similar else f"run 'promptkit {command} --help' to see all options"
    parser.error(f"unknown option {option!r}; {hint}")


def _exit_without_command(word: str) -> NoReturn:
    """Print the help, the version or an error, and exit, because the first word is not a command."""
    parser = create_program_parser()
    if word.startswith("-"):
        parser.parse_known_args([word])  # exits for --help and --version
        parser.error(f"unknown option {word!r}; write the options of a command after its name")
    similar = nearest(word, (*COMMANDS, "help", "--version"))
    hint = f"; did you mean {similar!r}?" if similar else f": choose one of {', '.join(COMMANDS)}"
    parser.error(f"unknown command {word!r}{hint}")


def _separate_target(options: Namespace) -> None:
    """Separate the target from the prompt's name, which comes last and is not ``KEY=VALUE``."""
    if is_argument(options.name):  # argparse parsed an argument as the name, and the name as the target
        words = [options.name, *options.arguments]
        options.target, options.name, options.arguments = None, options.target, words
    if options.name is None or is_argument(options.name):
        options.error("the following arguments are required: NAME")
    if options.target is None:
        return
    if split_prefix(options.target)[0]:
        hint = f"if it is a target with a prefix, write --target {options.target}"
        options.error(f"{options.target!r} comes before NAME: write arguments after NAME; {hint}")
    if options.targets:
        options.error(f"unexpected argument {options.target!r}: --target already names the target")
    options.targets = [options.target]
    options.target_note = f"{options.target!r} was parsed as TARGET; write arguments as KEY=VALUE"


def _split_completion_input(options: Namespace) -> None:
    """Split the words for `complete` into the text to complete and arguments of the form ``KEY=VALUE``."""
    words = [*(() if options.typed is None else (options.typed,)), *options.arguments]
    typed = [word for word in words if not is_argument(word)]
    if typed[1:]:
        options.error(f"unexpected argument {typed[1]!r}: write other arguments as KEY=VALUE")
    options.typed = typed[0] if typed else None
    options.arguments = [word for word in words if is_argument(word)]


def _check_batch(options: Namespace) -> None:
    """Raise a usage error unless there is a prompt and a vendor, or ``--join``."""
    if options.name is None and options.join is None:
        options.error("PROMPT is missing: write PROMPT ROWS, or --join RESULTS ROWS")
    if options.join is None and options.vendor is None:
        options.error("specify a vendor with --for, because each vendor has its own file format")


def _use_servers(options: Namespace) -> None:
    """Check the options for servers, if any, and record the servers as the targets to name in messages."""
    if not options.servers:
        return
    if options.targets or options.markdown:
        options.error("--server cannot be combined with a target or --markdown: omit one of them")
    if options.command != "diff" and len(options.servers) > 1:
        options.error("only diff accepts more than one --server")
    options.targets = [f"--server={server}" for server in options.servers]


def _resolve_targets(options: Namespace, configuration: Configuration) -> list[str]:
    """Return the configured targets or, if there are none, the default folder; and all Markdown patterns."""
    patterns = (*configuration.markdown, *options.markdown)
    if configuration.targets:
        options.target_note = f"it is configured in {configuration.file}"
        return with_markdown(configuration.targets, patterns)
    (folder,) = options.targets
    if has_untrusted_owner(folder):
        raise LoadError(folder, NOT_MINE)
    if not os.path.isdir(folder):  # noqa: PTH112 (False for any text)
        raise LoadError(folder, NO_FOLDER)
    return with_markdown([folder], patterns)


def serve_arguments(configuration: Configuration) -> list[str]:
    """Return the configured options of `serve` as command-line arguments."""
    actions = options_of("serve")
    check_keys(configuration.serve, actions, configuration.file, "tool.promptkit.serve")
    words: list[str] = []
    for name, value in configuration.serve.items():
        is_repeatable = isinstance(value, list) and isinstance(actions[name].default, list)
        for item in value if is_repeatable else [value]:
            words += _arguments_for(actions[name], name, item, configuration.file)
    return words


def _arguments_for(action: Action, name: str, value: Any, file: str) -> list[str]:
    """Return a list with the command-line argument that sets an option; empty for a flag that is false."""
    where, is_flag = f"[tool.promptkit.serve] {name}", action.nargs == 0
    if action.nargs == "?" and value is True:
        return [f"--{name}="]
    if is_flag != isinstance(value, bool) or not isinstance(value, str | int | float):
        kind = "true or false" if is_flag else "text or a number"
        raise ConfigurationError(file, f"{where} must be {kind}, not {value!r}")
    if is_flag:
        return [f"--{name}"] if value else []
    try:
        if callable(action.type):
            action.type(str(value))
    except ArgumentTypeError as error:
        raise ConfigurationError(file, f"{where}: {error}") from None
    return [f"--{name}={value}"]
