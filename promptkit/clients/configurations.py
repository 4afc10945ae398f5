"""The configurations of clients: where they lie, and the servers in them, with one more, changed or less."""

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
from promptkit.files.folder import Folder
from promptkit.files.writing import FileContents, FileRefusedError, check, read_file
from promptkit.loader.targets import is_within

Scope: TypeAlias = Literal["user", "project"]

_BYTE_ORDER_MARK: Final = "\ufeff"

#: What stands in an entry for a program that is started.
_PROGRAMS: Final = ("{program}", "{command}")

#: What reads and changes texts of each format.
_EDITORS: Final[Mapping[str, Any]] = {"json": jsonc_edits, "toml": toml_edits, "yaml": yaml_edits}


class ConfigurationFile(Struct, frozen=True):
    """
    A configuration of a client, whether it exists or not.

    Args:
        client:
            The name of the client, one of `INSTALLABLE`.

        scope:
            What it holds for, one of its `scopes`.

        project:
            The folder of the project, for what holds for that.
    """

    client: str
    scope: Scope = "user"
    project: str = ""

    @property
    def title(self) -> str:
        """The name of the client for people."""
        return CLIENTS[self.client].title

    @property
    def settings(self) -> ClientConfiguration:
        """What is known of it."""
        return INSTALLABLE[self.client]

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What configurations of the client may hold for."""
        return ("user", "project") if self.settings.project else ("user",)

    @property
    def path(self) -> Path:
        """Where it lies."""
        settings = self.settings
        user = settings.windows if settings.windows and sys.platform == "win32" else settings.user
        files = [self._place(file) for file in (user if self.scope == "user" else settings.project)]
        return next((file for file in files if os.path.lexists(file)), files[0])

    @property
    def client_is_found(self) -> bool:
        """Whether the client seems to be installed on this machine."""
        home = self.settings.home
        folder = self._place(home) if home else ConfigurationFile(self.client).path.parent
        return folder.is_dir() or any(map(shutil.which, self.settings.programs))

    @property
    def skills(self) -> Path | None:
        """The folder in which the client looks for skills; None if it reads no folders."""
        folder = self.settings.skills.get(self.scope)
        return None if folder is None else self._place(folder)

    def skills_folder(self) -> Folder:
        """
        Return the folder in which the client looks for skills.

        Links lead to a user's folder if the user has made them. A project may have come with links of someone
        else, so these must not lead out of it.

        Raises:
            OSError: If a link leads out of the project.
        """
        path = self._place(self.settings.skills[self.scope])
        return Folder(path) if self.scope == "user" else Folder.inside(self.project, path)

    def read(self) -> FileContents:
        """Read it, whether it exists or not. Raises `FileRefusedError` if it cannot be read."""
        return read_file(self.path, self.project if self.scope == "project" else None)

    def written(self, path: str) -> str:
        """
        Return a path as it stands in it: absolute, but in a project's file as others have it, too.

        Args:
            path:
                A path. What lies outside of the project, nobody else has.
        """
        path = os.path.abspath(path)  # noqa: PTH100 (links stay: people may move what they lead to)
        if self.scope == "user" or not is_within(path, self.project):
            return path
        within = path[len(self.project) :].replace(os.path.sep, "/").strip("/")
        return "/".join([self.settings.project_folder, *filter(None, [within])])

    def found(self, text: str) -> str:
        """Return the path that stands in it as *text*."""
        if self.scope == "user":
            return text
        folder = f"{self.settings.project_folder}/"
        within = text[len(folder) :] if f"{text}/".startswith(folder) else text
        return os.path.join(self.project, within)  # noqa: PTH118 (text)

    def _place(self, file: str) -> Path:
        home = Path.home()
        folders = {
            "home": home,
            "config": user_config_path(roaming=True),
            "xdg": os.environ.get("XDG_CONFIG_HOME") or home / ".config",
            "claude": os.environ.get("CLAUDE_CONFIG_DIR") or home,
            "claude_home": os.environ.get("CLAUDE_CONFIG_DIR") or home / ".claude",
            "codex": os.environ.get("CODEX_HOME") or home / ".codex",
            "gemini": os.environ.get("GEMINI_CLI_HOME") or home,
            "project": self.project,
        }
        return Path(file.format_map(folders))


class ServerTable:
    """
    The servers in the text of a client's configuration.

    Args:
        settings:
            What is known of that configuration.

        text:
            What the file holds; nothing if there is no file.

    Raises:
        FileRefusedError: If the text cannot be read.
    """

    def __init__(self, settings: ClientConfiguration, text: str) -> None:
        self._settings = settings
        self._mark = _BYTE_ORDER_MARK if text.startswith(_BYTE_ORDER_MARK) else ""
        self._text = text.removeprefix(_BYTE_ORDER_MARK)
        self._editor = _EDITORS[settings.format]
        try:
            self._data: dict[str, Any] = self._editor.read(self._text)
        except RecursionError:
            msg = "it is nested too deeply to be read"
            raise FileRefusedError(msg) from None
        self._path = self._servers_path()

    @property
    def entries(self) -> Mapping[str, Any]:
        """The entries by name."""
        found = _at(self._data, self._path)
        return found if isinstance(found, Mapping) else {}

    def changed(self, name: str, entry: Mapping[str, Any] | None) -> str:
        """
        Return the text with an entry changed, added or taken out.

        What people have added to an entry is kept, but for comments.

        Args:
            name:
                The name of the server.

            entry:
                What is to stand there; None if it is taken out.

        Raises:
            FileRefusedError: If that cannot be done without touching something else.
        """
        wanted = None if entry is None else self._wanted(name, entry)
        path = (*self._path, name)
        try:
            text: str = self._editor.put(self._text, path, wanted)
            found = self._editor.read(text)
            is_done = _at(found, path) == wanted and _without(found, path) == _without(self._data, path)
        except (FileRefusedError, RecursionError, TypeError):  # what was written does not go with the rest
            is_done = False
        check(is_done, "it is written in a way that cannot be changed without touching something else")
        return self._mark + text

    def _wanted(self, name: str, entry: Mapping[str, Any]) -> Mapping[str, Any]:
        """An entry with what people have added to the one that is there. Raises `FileRefusedError`."""
        at: Any = self._data
        for key in self._path:
            at = at.get(key, {})
            if at is None and self._settings.format == "yaml":  # nothing is written there
                at = {}
            check(isinstance(at, Mapping), f"{name!r} has no place in it, as {key!r} holds something else")
        # What belongs to the other kind of entry, which is started or reached in the other way, goes.
        stale = {*self._settings.stdio, *(self._settings.url or ())} - entry.keys()
        if not any(key in entry for key, part in self._settings.stdio.items() if part in _PROGRAMS):
            stale.add(self._settings.env)
        found = at.get(name) or {}
        return {**{key: value for key, value in found.items() if key not in stale}, **entry}

    def _servers_path(self) -> tuple[str, ...]:
        also = self._settings.also_servers
        found = _at(self._data, also) if also else None
        # `servers` may also be the name of a server: then not all that it holds are tables.
        is_table = isinstance(found, dict) and all(isinstance(one, dict) for one in found.values())
        return also if is_table else self._settings.servers


def read_servers(file: ConfigurationFile) -> Mapping[str, Any]:
    """Return the entries in a configuration, by name. Raises `FileRefusedError` if it cannot be read."""
    return ServerTable(file.settings, file.read().text).entries


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _without(data: Any, path: tuple[str, ...]) -> dict[str, Any]:
    """A copy of data without what stands at a path, and without tables on the way that are empty then."""
    name, *rest = path
    copy = dict(data or {})
    below = copy.pop(name, None)
    return {**copy, name: left} if rest and (left := _without(below, tuple(rest))) else copy
