"""The configuration files of clients: their paths, and the servers in them."""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from platformdirs import user_config_path

from promptkit.clients import jsonc_edits, toml_edits, yaml_edits
from promptkit.clients.profiles import CLIENTS, INSTALLABLE, ClientConfiguration
from promptkit.files.edits import FileContents, FileEditError, check, read_file
from promptkit.files.folder import Folder
from promptkit.loader.targets import is_within

Scope: TypeAlias = Literal["user", "project"]

_BYTE_ORDER_MARK: Final = "\ufeff"

#: The placeholders in an entry's template that contain the program that the client starts.
_PROGRAMS: Final = ("{program}", "{command}")

#: The modules that read and edit each format.
_EDITORS: Final[Mapping[str, Any]] = {"json": jsonc_edits, "toml": toml_edits, "yaml": yaml_edits}


class ConfigurationFile(Struct, frozen=True):
    """
    A client's configuration file, which does not have to exist.

    Args:
        client:
            The name of the client, one of `INSTALLABLE`.

        scope:
            The scope of the file, one of the client's `scopes`.

        project:
            The project's folder, if the scope is ``project``.
    """

    client: str
    scope: Scope = "user"
    project: str = ""

    @property
    def title(self) -> str:
        """The display name of the client."""
        return CLIENTS[self.client].title

    @property
    def settings(self) -> ClientConfiguration:
        """The client's settings for configuration files."""
        return INSTALLABLE[self.client]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes that the client's configuration files can have."""
        return ("user", "project") if self.settings.project else ("user",)

    @property
    def path(self) -> Path:
        """The first of the client's paths at which a file exists, or the first path if no file exists."""
        settings = self.settings
        user = settings.windows if settings.windows and sys.platform == "win32" else settings.user
        files = [self._expand(file) for file in (user if self.scope == "user" else settings.project)]
        return next((file for file in files if os.path.lexists(file)), files[0])

    @property
    def is_client_found(self) -> bool:
        """Whether the client seems to be installed on this machine."""
        home = self.settings.home
        folder = self._expand(home) if home else ConfigurationFile(self.client).path.parent
        return folder.is_dir() or any(map(shutil.which, self.settings.programs))

    @property
    def skills(self) -> Path | None:
        """The client's skill folder, or None if the client does not read skills from folders."""
        folder = self.settings.skills.get(self.scope)
        return None if folder is None else self._expand(folder)

    def skills_folder(self) -> Folder:
        """
        Return the client's skill folder.

        In the user's folder, symbolic links are followed. In a project, they can come from another author, so
        they must not point outside the project.

        Raises:
            OSError: If a symbolic link points outside the project.
        """
        path = self._expand(self.settings.skills[self.scope])
        return Folder(path) if self.scope == "user" else Folder.inside(self.project, path)

    def read(self) -> FileContents:
        """Read the file, or return empty contents if it is missing. Raises `FileEditError` on failure."""
        return read_file(self.path, self.project if self.scope == "project" else None)

    def format_path(self, path: str) -> str:
        """Return *path* as the file refers to it: absolute, unless the file and *path* are in the project."""
        path = os.path.abspath(path)  # noqa: PTH100 (does not resolve links, whose targets may change)
        if self.scope == "user" or not is_within(path, self.project):
            return path
        within = path[len(self.project) :].replace(os.path.sep, "/").strip("/")
        return "/".join([self.settings.project_folder, *filter(None, [within])])

    def resolve_path(self, text: str) -> str:
        """Return the path that *text* in the file refers to."""
        if self.scope == "user":
            return text
        folder = f"{self.settings.project_folder}/"
        within = text[len(folder) :] if f"{text}/".startswith(folder) else text
        return os.path.join(self.project, within)  # noqa: PTH118 (text)

    def _expand(self, file: str) -> Path:
        home = Path.home()
        folders = {
            "home": home,
            "config": user_config_path(roaming=True),
            "xdg": os.environ.get("XDG_CONFIG_HOME") or home / ".config",
            "claude": os.environ.get("CLAUDE_CONFIG_DIR") or home,
            "claude_home": os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude",
            "cline": os.environ.get("CLINE_DIR") or home / ".cline",
            "codex": os.environ.get("CODEX_HOME") or home / ".codex",
            "copilot": os.environ.get("COPILOT_HOME") or home / ".copilot",
            "gemini": os.environ.get("GEMINI_CLI_HOME") or home,
            "qwen": os.environ.get("QWEN_HOME") or home / ".qwen",
            "project": self.project,
        }
        return Path(file.format_map(folders))


class ServerTable:
    """
    The servers in the text of a client's configuration.

    Args:
        settings:
            The client's settings for configuration files.

        text:
            The text of the file, or ``""`` if there is no file.

    Raises:
        FileEditError: If the text cannot be parsed.
    """

    def __init__(self, settings: ClientConfiguration, text: str) -> None:
        self._settings = settings
        self._mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
        self._text = text.removeprefix(_BYTE_ORDER_MARK)
        self._editor = _EDITORS[settings.format]
        self._data: dict[str, Any] = self._editor.read(self._text)
        self._path = self._servers_path()

    @property
    def entries(self) -> Mapping[str, Any]:
        """The entries, keyed by server name."""
        entries = _value_at(self._data, self._path)
        return entries if isinstance(entries, Mapping) else {}

    def with_entry(self, name: str, entry: Mapping[str, Any] | None) -> str:
        """
        Return the text with one entry changed, added or removed.

        Settings that users have added to the entry are kept, but comments in the entry are lost.

        Args:
            name:
                The name of the server.

            entry:
                The new entry, or None to remove the entry.

        Raises:
            FileEditError: If the change would affect other parts of the text.
        """
        merged = None if entry is None else self._merge(name, entry)
        path = (*self._path, name)
        try:
            text: str = self._editor.set_entry(self._text, path, merged)
            data = self._editor.read(text)
            is_valid = _value_at(data, path) == merged and _copy_without(data, path) == _copy_without(
                self._data, path
            )
        except (FileEditError, RecursionError, TypeError):  # the new entry is not valid in its context
            is_valid = False
        check(is_valid, "it cannot be changed without changing other parts of the file")
        return self._mark + text

    def _merge(self, name: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return *entry* with the settings that users have added to the current entry."""
        table: Any = self._data
        for key in self._path:
            table = table.get(key, {})
            if table is None and self._settings.format == "yaml":  # an empty value in YAML
                table = {}
            check(
                isinstance(table, Mapping),
                f"the server {name!r} cannot be added, because {key!r} is not a table",
            )
        # Remove the keys that are only for the other kind of server (stdio or HTTP).
        stale = {*self._settings.stdio, *(self._settings.url or ())} - entry.keys()
        if not any(key in entry for key, part in self._settings.stdio.items() if part in _PROGRAMS):
            stale.add(self._settings.env)
        current = table.get(name) or {}
        return {**{key: value for key, value in current.items() if key not in stale}, **entry}

    def _servers_path(self) -> tuple[str, ...]:
        alternative = self._settings.alternative_servers
        table = _value_at(self._data, alternative) if alternative else None
        # `servers` can also be the name of a server. The values in its entry are not all tables.
        is_table = isinstance(table, dict) and all(isinstance(value, dict) for value in table.values())
        return alternative if is_table else self._settings.servers


def read_servers(file: ConfigurationFile) -> Mapping[str, Any]:
    """Return a configuration file's entries, keyed by server name. Raises `FileEditError` on failure."""
    return ServerTable(file.settings, file.read().text).entries


def _value_at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _copy_without(data: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """Return a copy of *data* without the value at *path*, and without mappings that are then empty."""
    name, *below = path
    copy = dict(data or {})
    value = copy.pop(name, None)
    return {**copy, name: remaining} if below and (remaining := _copy_without(value, tuple(below))) else copy
