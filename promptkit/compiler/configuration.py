"""
Configuration: the table ``[tool.promptkit]`` in the ``pyproject.toml`` at the project's root.

Commands and tests use the table only for targets and options that are not given explicitly.
"""

import os
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final, TypeGuard

from msgspec import Struct

from promptkit.clients.profiles import get_client
from promptkit.errors.exceptions import ConfigurationError, LoadError
from promptkit.errors.rules import find_ignorable_rule
from promptkit.errors.suggestions import nearest
from promptkit.files.reading import has_untrusted_owner, read_regular_file
from promptkit.files.toml import parse_toml
from promptkit.loader.discovery import DEFAULT_FOLDERS
from promptkit.loader.targets import PREFIX_RULE, is_prefix, is_project, split_prefix, with_markdown

#: The error message for a default folder that another user owns.
NOT_MINE: Final = "it belongs to another user: pass its path explicitly if you trust its content"

#: The error message for a configuration that another user owns. Its targets are code that would be executed.
_FOREIGN_FILE: Final = (
    "it belongs to another user and could run that user's code: "
    "pass the recipes on the command line, so that it is not read, or take ownership of it"
)

#: Maximum size of the file. A larger file was not written by hand.
_MAX_BYTES: Final = 1 << 20

#: The error message if there is neither a target nor a default folder.
NO_FOLDER: Final = (
    f"there is no folder {' or '.join(DEFAULT_FOLDERS)} here: pass a target, or set one in [tool.promptkit]"
)


class Configuration(Struct, frozen=True):
    """
    A project's configuration.

    Args:
        file:
            The absolute path of the ``pyproject.toml``; ``""`` if there is none.

        targets:
            The recipes: absolute paths, or modules, with or without ``PREFIX=``; empty if not configured.

        markdown:
            Patterns, relative to the target, for additional Markdown files that are prompts.

        clients:
            The clients that the prompts are meant for.

        ignore:
            The codes of the diagnostics that are not reported.

        fail_on:
            The lowest severity that makes ``promptkit check`` exit with 1.

        elicit:
            The value of the option `elicit` for prompts that do not set it; None for the default.

        serve:
            The options of ``promptkit serve`` by name, without leading dashes and with unchecked values. The
            command checks them with `check_keys`.
    """

    file: str = ""
    targets: tuple[str, ...] = ()
    markdown: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "error"
    elicit: bool | None = None
    serve: Mapping[str, Any] = {}


def find_configuration(start: str | Path = ".", *, only_own: bool = False) -> Configuration:
    """
    Return the configuration of the project that contains *start*.

    Args:
        start:
            A folder. The search for a ``pyproject.toml`` starts there, continues in the folders above, and
            ends at the first folder with that file or a ``.git``.

        only_own:
            Whether to ignore a file that belongs to another user, instead of raising an error.

    Raises:
        ConfigurationError: If the file cannot be read, is invalid, or belongs to another user.
    """
    folder = os.path.abspath(start)
    while not is_project(folder):
        if (parent := os.path.dirname(folder)) == folder:
            return Configuration()
        folder = parent
    file = os.path.join(folder, "pyproject.toml")
    is_foreign_file = has_untrusted_owner(file) or has_untrusted_owner(folder)
    table = None if is_foreign_file and only_own else _read_table(file)
    if table is None:
        return Configuration()
    if is_foreign_file:
        raise ConfigurationError(file, _FOREIGN_FILE)
    return _parse_table(file, table)


def find_targets(start: str | Path = ".") -> tuple[str, ...]:
    """
    Return the default targets, for commands that are not given any.

    Args:
        start:
            The folder to start from.

    Returns:
        The configured targets, or the path of the folder ``recipes`` or ``prompts`` in *start*.

    Raises:
        ConfigurationError: For the same reasons as in `find_configuration`.

        LoadError: If no targets are configured and neither folder exists, or if another user owns the folder.
    """
    configuration = find_configuration(start)
    if targets := configuration.targets:
        return tuple(with_markdown(targets, configuration.markdown))
    for name in DEFAULT_FOLDERS:
        if os.path.isdir(folder := os.path.join(start, name)):
            if has_untrusted_owner(folder):
                raise LoadError(folder, NOT_MINE)
            return tuple(with_markdown([folder], configuration.markdown))
    raise LoadError(os.path.join(start, DEFAULT_FOLDERS[0]), NO_FOLDER)


def check_keys(table: Mapping[str, Any], known: Collection[str], file: str, name: str) -> None:
    """
    Check that all keys of a table are known.

    Args:
        table:
            The parsed table.

        known:
            The keys that the table may have.

        file:
            The file that contains the table.

        name:
            The name of the table in the file, such as ``tool.promptkit``.

    Raises:
        ConfigurationError: For the first unknown key, with the most similar known key as a hint.
    """
    for key in table:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near!r}?" if near else f"choose one of {', '.join(known)}"
            raise ConfigurationError(file, f"[{name}] has no setting {key!r}: {hint}")


def read_pyproject(file: str, keyword: bytes = b"") -> dict[str, Any] | None:
    """
    Return the content of a ``pyproject.toml``; None if the file does not exist or lacks *keyword*.

    Raises:
        ConfigurationError: If the file cannot be read, or is not TOML.
    """
    try:
        text = read_regular_file(file, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(file, f"it cannot be read: {error.strerror}") from None
    if keyword not in text:
        return None
    try:
        return parse_toml(text)
    except ValueError as error:  # not TOML, or not UTF-8
        raise ConfigurationError(file, f"it is not valid TOML: {error}") from None


def _read_table(file: str) -> dict[str, Any] | None:
    """Return the table ``[tool.promptkit]`` of *file*; None if the file or the table does not exist."""
    table = (read_pyproject(file, b"promptkit") or {}).get("tool", {}).get("promptkit")
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(file, "[tool.promptkit] must be a table")
    return table


def _parse_table(file: str, table: dict[str, Any]) -> Configuration:
    """Convert a table. Raises ConfigurationError for an unknown key or an invalid value."""
    check_keys(table, _SETTINGS, file, "tool.promptkit")
    for key, value in table.items():
        expected, is_valid = _SETTINGS[key]
        if not is_valid(value):
            raise ConfigurationError(file, f"[tool.promptkit] {key} must be {expected}, not {value!r}")
    clients, ignore = (tuple(table.get(key, ())) for key in ("clients", "ignore"))
    _check_names(file, clients, ignore)
    target, prefixed = table.get("target", []), table.get("targets", {})
    if invalid := [prefix for prefix in prefixed if not is_prefix(prefix)]:
        reason = f"{invalid[0]!r} is not a valid prefix: {PREFIX_RULE}"
        raise ConfigurationError(file, f"[tool.promptkit] targets: {reason}")
    targets = [_resolve_target(item, file) for item in ([target] if isinstance(target, str) else target)]
    targets += (f"{prefix}={_resolve_target(item, file)}" for prefix, item in prefixed.items())
    return Configuration(
        file,
        tuple(targets),
        markdown=tuple(table.get("markdown", ())),
        clients=clients,
        ignore=ignore,
        fail_on=table.get("fail-on", "error"),
        elicit=table.get("elicit"),
        serve=table.get("serve", {}),
    )


def _check_names(file: str, clients: Collection[str], ignore: Collection[str]) -> None:
    """Raise ConfigurationError for an unknown client or code."""
    setting = "clients"
    try:
        for name in clients:
            get_client(name)
        setting = "ignore"
        for code in ignore:
            find_ignorable_rule(code)
    except ValueError as error:
        raise ConfigurationError(file, f"[tool.promptkit] {setting}: {error}") from None


def _resolve_target(target: str, file: str) -> str:
    """Return *target* as a path relative to the folder of *file* if that path exists, otherwise unchanged."""
    path = os.path.join(os.path.dirname(file), target)
    existing, _, _ = path.rpartition(":") if not os.path.exists(path) else (path, "", "")
    if os.path.exists(existing):
        return path
    prefix, rest = split_prefix(target)
    return f"{prefix}={_resolve_target(rest, file)}" if prefix else target


def _is_list_of_strings(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_target(value: object) -> bool:
    targets = [value] if isinstance(value, str) else value
    return _is_list_of_strings(targets) and bool(targets) and all(targets)


def _is_table_of_targets(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and _is_target([*value.values()])


#: The settings: a description of the expected value, and a function that checks a value.
_SETTINGS: Final[dict[str, tuple[str, Callable[[object], bool]]]] = {
    "target": ("a folder, a file or a module, or a list of them", _is_target),
    "targets": ('a table of targets by prefix, such as {review = "team/prompts"}', _is_table_of_targets),
    "markdown": ("a list of patterns such as commands/*.md", _is_list_of_strings),
    "clients": ("a list of names", _is_list_of_strings),
    "ignore": ("a list of codes", _is_list_of_strings),
    "fail-on": ("error or warning", lambda value: value in ("error", "warning")),
    "elicit": ("true or false", lambda value: isinstance(value, bool)),
    "serve": ("a table of options", lambda value: isinstance(value, dict)),
    # The settings in this table are checked by promptkit.server.identity.
    "server": ("a table", lambda value: isinstance(value, dict)),
}
