"""
Configuration: the table ``[tool.promptkit]`` of the ``pyproject.toml`` at the project's root.

It is looked for only where a command, or a test, is not told what to do.
"""

import os
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeGuard

from msgspec import Struct

from promptkit.clients.profiles import get_client
from promptkit.errors.exceptions import ConfigurationError, LoadError
from promptkit.errors.rules import rule_of
from promptkit.errors.suggestions import nearest
from promptkit.files.reading import is_foreign, read_regular_file
from promptkit.files.toml import parse_toml
from promptkit.loader.discovery import DEFAULT_FOLDERS
from promptkit.loader.targets import is_project

if TYPE_CHECKING:
    from pathlib import Path

#: Why the usual folder is not loaded where nothing is named.
NOT_MINE: Final = "it belongs to another user: name it if you trust what is in it"

#: Why their configuration is not read: a target in it is code to be run.
_THEIRS: Final = (
    "it belongs to another user, whose code it would run: "
    "name the recipes on the command line, and it is not read, or make it yours"
)

#: A larger file is no configuration that somebody wrote.
_MAX_BYTES: Final = 1 << 20

#: Why nothing can be loaded where nothing is named.
NO_FOLDER: Final = (
    f"there is no folder {' or '.join(DEFAULT_FOLDERS)} here: name one, or set target in [tool.promptkit]"
)


class Configuration(Struct, frozen=True):
    """
    What a project says of its prompts.

    Args:
        file:
            The ``pyproject.toml``, an absolute path; ``""`` if there is none.

        targets:
            The recipes: absolute paths, or modules; none if they are not said.

        clients:
            The clients that the prompts are meant for.

        ignore:
            The codes of the findings that are not reported.

        fail_on:
            The least severity of what ``promptkit check`` finds that makes it end with 1.

        serve:
            The options of ``promptkit serve``, by their names without the dashes in front, as they
            are written: whoever knows the options checks them, with `check_keys`.
    """

    file: str = ""
    targets: tuple[str, ...] = ()
    clients: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    fail_on: str = "error"
    serve: Mapping[str, Any] = {}


def find_configuration(start: "str | Path" = ".", *, only_own: bool = False) -> Configuration:
    """
    Return what the project says that *start* is in.

    Args:
        start:
            A folder. The ``pyproject.toml`` may lie in it, or in a folder above it. The search ends at the
            first folder with one, or with a ``.git``.

        only_own:
            Whether to go without a file that belongs to another user, in place of refusing it.

    Raises:
        ConfigurationError: If the file cannot be read, says what it cannot say, or belongs to another user.
    """
    folder = os.path.abspath(start)
    while not is_project(folder):
        if (above := os.path.dirname(folder)) == folder:
            return Configuration()
        folder = above
    file = os.path.join(folder, "pyproject.toml")
    is_theirs = is_foreign(file) or is_foreign(folder)
    table = None if is_theirs and only_own else _table(file)
    if table is None:
        return Configuration()
    if is_theirs:
        raise ConfigurationError(file, _THEIRS)
    return _configuration(file, table)


def find_targets(start: "str | Path" = ".") -> tuple[str, ...]:
    """
    Return the recipes to take where none are named.

    Args:
        start:
            The folder to start from.

    Returns:
        What the configuration says, or else the path of the folder ``recipes`` or ``prompts`` in *start*.

    Raises:
        ConfigurationError: As `find_configuration` does.

        LoadError: If there is nothing of it.
    """
    if targets := find_configuration(start).targets:
        return targets
    for name in DEFAULT_FOLDERS:
        if os.path.isdir(folder := os.path.join(start, name)):
            if is_foreign(folder):
                raise LoadError(folder, NOT_MINE)
            return (folder,)
    raise LoadError(os.path.join(start, DEFAULT_FOLDERS[0]), NO_FOLDER)


def check_keys(table: Mapping[str, Any], known: Collection[str], file: str, name: str) -> None:
    """
    Check that a table has no other keys than those that mean something.

    Args:
        table:
            What was read.

        known:
            The keys that it may have.

        file:
            Where it was read.

        name:
            What the table is called there, as in ``tool.promptkit``.

    Raises:
        ConfigurationError: With the first key that is unknown, and the nearest one.
    """
    for key in table:
        if key not in known:
            near = nearest(key, known)
            hint = f"did you mean {near!r}?" if near else f"there are {', '.join(known)}"
            raise ConfigurationError(file, f"[{name}] has no setting {key!r}: {hint}")


def _table(file: str) -> dict[str, Any] | None:
    """Return the table ``[tool.promptkit]`` of *file*; None if there is no such file, or table."""
    try:
        text = read_regular_file(file, _MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise ConfigurationError(file, f"it cannot be read: {error.strerror}") from None
    if b"promptkit" not in text:
        return None
    try:
        table = parse_toml(text).get("tool", {}).get("promptkit")
    except ValueError as error:  # no TOML, or no UTF-8
        raise ConfigurationError(file, f"it is not TOML: {error}") from None
    if table is not None and not isinstance(table, dict):
        raise ConfigurationError(file, "tool.promptkit is no table")
    return table


def _configuration(file: str, table: dict[str, Any]) -> Configuration:
    """Return what a table says. Raises ConfigurationError if a key or a value is none that it has."""
    check_keys(table, _SETTINGS, file, "tool.promptkit")
    for key, value in table.items():
        takes, fits = _SETTINGS[key]
        if not fits(value):
            raise ConfigurationError(file, f"[tool.promptkit] {key} takes {takes}, not {value!r}")
    lists = {key: tuple(table.get(key, ())) for key in ("clients", "ignore")}
    _check_names(file, **lists)
    targets = table.get("target", [])
    return Configuration(
        file,
        tuple(_located(target, file) for target in ([targets] if isinstance(targets, str) else targets)),
        **lists,
        fail_on=table.get("fail-on", "error"),
        serve=table.get("serve", {}),
    )


def _check_names(file: str, clients: Collection[str], ignore: Collection[str]) -> None:
    """Check that each client and each code is one. Few projects name any."""
    setting = "clients"
    try:
        if clients:
            for name in clients:
                get_client(name)
        setting = "ignore"
        if ignore:
            for code in ignore:
                rule_of(code)
    except ValueError as error:
        raise ConfigurationError(file, f"[tool.promptkit] {setting}: {error}") from None


def _located(target: str, file: str) -> str:
    """Return *target* as it can be found from anywhere: it is written as seen from the folder of *file*."""
    path = os.path.join(os.path.dirname(file), target)
    place, _, _ = path.rpartition(":") if not os.path.exists(path) else (path, "", "")
    return path if os.path.exists(place) else target


def _is_texts(value: object) -> TypeGuard[list[str]]:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _is_target(value: object) -> bool:
    targets = [value] if isinstance(value, str) else value
    return _is_texts(targets) and bool(targets) and all(targets)


#: The settings: what each takes, in words, and what tells whether a value is that.
_SETTINGS: Final[dict[str, tuple[str, Callable[[object], bool]]]] = {
    "target": ("a folder, a file or a module, or a list of them", _is_target),
    "clients": ("a list of names", _is_texts),
    "ignore": ("a list of codes", _is_texts),
    "fail-on": ("error or warning", lambda value: value in ("error", "warning")),
    "serve": ("a table of options", lambda value: isinstance(value, dict)),
}
