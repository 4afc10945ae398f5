"""What the configuration of the project says, for a command that was not told otherwise."""

import os
from argparse import Action, ArgumentTypeError, Namespace
from collections.abc import Sequence
from typing import Any, Final

from promptkit.cli.options import options_of, parse
from promptkit.compiler.configuration import (
    NO_FOLDER,
    NOT_MINE,
    Configuration,
    check_keys,
    find_configuration,
)
from promptkit.errors.exceptions import ConfigurationError, LoadError
from promptkit.errors.regular_files import is_foreign

__all__ = ["configure", "configured_target"]

#: Commands that may need no target: they look for it themselves.
_TARGET_LATER: Final = ("install", "uninstall")


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
    found = _find(only_own=options.has_target)
    defaults = _serve_defaults(found)
    if options.command == "serve" and defaults:
        options = parse(argv, defaults)
    if not options.has_target and options.command not in _TARGET_LATER:
        options.target = _target(options, found)
    if found.ignore:
        from promptkit.compiler.checks import rule_of  # few projects ignore anything

        options.ignore = frozenset(map(rule_of, found.ignore))
    options.configuration = found
    return options


def configured_target(options: Namespace) -> str:
    """
    Return the target of a command that may do without: what it was told, or what the configuration says.

    Args:
        options:
            What `configure` returned.

    Raises:
        LoadError: If neither names one, and the usual folders do not exist.
    """
    return str(options.target) if options.has_target else _target(options, options.configuration)


def _find(*, only_own: bool) -> Configuration:
    try:
        return find_configuration(only_own=only_own)
    except FileNotFoundError:  # the current folder is gone
        return Configuration()


def _target(options: Namespace, found: Configuration) -> str:
    """The recipes where the command line names none: those of the configuration, else the usual folder."""
    if found.target is not None:
        options.target_note = f"it is named by {found.file}"
        return found.target
    if is_foreign(options.target):
        raise LoadError(options.target, NOT_MINE)
    # A module of that name may lie anywhere. A server tells its client first, and looks for itself.
    if options.command == "serve":
        options.target_note = "nothing names another: name one, or set target in [tool.promptkit]"
    elif not os.path.isdir(options.target):  # noqa: PTH112 (pathlib imports slowly)
        raise LoadError(options.target, NO_FOLDER)
    return str(options.target)


def _serve_defaults(found: Configuration) -> dict[str, Any]:
    """The options of `serve` in a configuration, by the names that the parser gives to them."""
    if not found.serve:
        return {}
    actions = options_of("serve")
    check_keys(found.serve, actions, found.file, "tool.promptkit.serve")
    values = [
        (actions[name], _value(actions[name], name, value, found.file)) for name, value in found.serve.items()
    ]
    # Of two flags for one thing, the one that is false takes nothing back.
    return {action.dest: value for action, value in values if action.nargs != 0 or value != action.default}


def _value(action: Action, name: str, value: object, file: str) -> Any:
    """The value of one option, read as if it stood on the command line."""
    where = f"[tool.promptkit.serve] {name}"
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise ConfigurationError(file, f"{where} takes true or false, not {value!r}")
        return action.const if value else action.default
    if isinstance(value, list) and action.default is None and action.type is None:
        return [_value(action, name, item, file) for item in value]
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigurationError(file, f"{where} takes text or a number, not {value!r}")
    if not callable(action.type):
        return str(value)
    try:
        return action.type(str(value))
    except ArgumentTypeError as error:
        raise ConfigurationError(file, f"{where}: {error}") from None
