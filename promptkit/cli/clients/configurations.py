"""The configurations of clients: where they lie, and the servers in them, with one more, changed or less."""

import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from platformdirs import user_config_path

from promptkit.cli.clients import jsonc, toml, yaml
from promptkit.cli.clients.files import FileContents, FileRefused, read_file
from promptkit.cli.clients.texts import DocumentError, cannot_be_changed
from promptkit.compiler.lints.client_profiles import CLIENTS, INSTALLABLE, ClientConfiguration

__all__ = ["ConfigurationFile", "Scope", "ServerTable", "read_servers", "refusing", "text_of"]

Scope: TypeAlias = Literal["user", "project"]

_MARK: Final = "\ufeff"

#: What reads and changes texts of each format.
_EDITORS: Final[Mapping[str, Any]] = {"json": jsonc, "toml": toml, "yaml": yaml}


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

    def _place(self, file: str) -> Path:
        home = Path.home()
        folders = {
            "home": home,
            "config": user_config_path(roaming=True),
            "xdg": os.environ.get("XDG_CONFIG_HOME") or home / ".config",
            "claude": os.environ.get("CLAUDE_CONFIG_DIR") or home,
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
        DocumentError: If the text cannot be read.
    """

    def __init__(self, settings: ClientConfiguration, text: str) -> None:
        self._settings = settings
        self._mark = _MARK if text.startswith(_MARK) else ""
        self._text = text.removeprefix(_MARK)
        self._editor = _EDITORS[settings.format]
        with _reading():
            self._data: dict[str, Any] = self._editor.read(self._text)
        self._path = self._servers_path()

    @property
    def entries(self) -> Mapping[str, Any]:
        """The entries by name."""
        found = _at(self._data, self._path)
        return found if isinstance(found, Mapping) else {}

    def with_entry(self, name: str, entry: Mapping[str, Any]) -> str:
        """
        Return the text with an entry. What people have added to one that exists is kept, but for comments.

        Args:
            name:
                The name of the server.

            entry:
                What is to stand there.

        Raises:
            DocumentError: If that cannot be done without touching something else.
        """
        self._check_place(name)
        # What belongs to the other kind of entry, which is started or reached in the other way, goes.
        stale = {*self._settings.stdio, *(self._settings.url or ())} - entry.keys()
        found = self.entries.get(name) or {}
        wanted = {**{key: value for key, value in found.items() if key not in stale}, **entry}
        path = (*self._path, name)
        with _reading():
            return self._checked(self._editor.put(self._text, path, wanted), path, wanted)

    def without(self, name: str) -> str:
        """
        Return the text without an entry.

        Args:
            name:
                The name of the server, which has one.

        Raises:
            DocumentError: If that cannot be done without touching something else.
        """
        path = (*self._path, name)
        with _reading():
            return self._checked(self._editor.take(self._text, path), path, None)

    def _servers_path(self) -> tuple[str, ...]:
        also = self._settings.also_servers
        found = _at(self._data, also) if also else None
        # A server of that name would hold more than other servers.
        is_table = isinstance(found, dict) and all(isinstance(one, dict) for one in found.values())
        return also if is_table else self._settings.servers

    def _check_place(self, name: str) -> None:
        at: Any = self._data
        for key in self._path:
            at = at.get(key, {})
            if at is None and self._settings.format == "yaml":  # nothing is written there
                return
            if not isinstance(at, Mapping):
                msg = f"{name!r} has no place in it, as {key!r} holds something else"
                raise DocumentError(msg)

    def _checked(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """The text, if it says what it said before, and the entry."""
        try:
            found = _with(self._editor.read(text), path, value)
            is_kept = found == _with(self._data, path, value) and _at(found, path) == value
        except (DocumentError, RecursionError):  # what was written does not go with the rest
            is_kept = False
        if not is_kept:
            raise cannot_be_changed()
        return self._mark + text


def text_of(settings: ClientConfiguration, name: str, entry: Mapping[str, Any]) -> str:
    """Return what a configuration holds that has one server and nothing else."""
    return ServerTable(settings, "").with_entry(name, entry)


def read_servers(file: ConfigurationFile) -> tuple[FileContents, str, ServerTable]:
    """
    Read a configuration.

    Returns:
        The file, its text, and its servers.

    Raises:
        FileRefused: If it cannot be read.
    """
    contents = read_file(file.path, file.project if file.scope == "project" else None)
    try:
        text = (contents.data or b"").decode()
    except UnicodeDecodeError:
        raise FileRefused(contents.file, "it is not UTF-8") from None
    with refusing(contents):
        return contents, text, ServerTable(file.settings, text)


@contextmanager
def refusing(contents: FileContents) -> Iterator[None]:
    """
    Refuse a file whose text cannot be read or changed.

    Raises:
        FileRefused: In place of a `DocumentError`.
    """
    try:
        yield
    except DocumentError as error:
        place = f":{error.line}:{error.column}" if error.line else ""
        raise FileRefused(contents.file, error.reason, place) from None


@contextmanager
def _reading() -> Iterator[None]:
    """Refuse what is nested more deeply than what reads, compares and copies it can go down."""
    try:
        yield
    except RecursionError:
        msg = "it is nested too deeply to be read"
        raise DocumentError(msg) from None


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data


def _with(data: Any, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of data with something else at a path; tables on the way that hold nothing do not count."""
    name, *rest = path
    copy = dict(data or {})
    below = _with(copy.get(name), tuple(rest), value) if rest else value
    copy.pop(name, None)
    return {**copy, name: below} if below else copy
