"""The table of servers in a client's configuration, and texts with one entry more, changed or less."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Final, Protocol, cast

from promptkit.cli.clients.errors import DocumentError
from promptkit.cli.clients.table import Client, Format

__all__ = ["ServerTable", "text_of"]

_MARK: Final = "\ufeff"

_MODULES: Final[Mapping[Format, str]] = {"json": "jsonc", "toml": "toml", "yaml": "yaml"}


@contextmanager
def _reading() -> Iterator[None]:
    """Refuse what is nested more deeply than what reads, compares and copies it can go down."""
    try:
        yield
    except RecursionError:
        msg = "it is nested too deeply to be read"
        raise DocumentError(msg) from None


class _Editor(Protocol):
    """What the module of a format does."""

    def read(self, text: str) -> dict[str, Any]: ...

    def put(self, text: str, path: tuple[str, ...], value: Any) -> str: ...

    def take(self, text: str, path: tuple[str, ...]) -> str: ...


class ServerTable:
    """
    The servers in the text of a client's configuration.

    Args:
        client:
            Whose configuration it is.

        text:
            What the file holds; nothing if there is no file.

    Raises:
        DocumentError: If the text cannot be read.
    """

    def __init__(self, client: Client, text: str) -> None:
        self._mark = _MARK if text.startswith(_MARK) else ""
        self._text = text.removeprefix(_MARK)
        self._client = client
        # Each needs a library of its own.
        self._editor = cast("_Editor", import_module(f"promptkit.cli.clients.{_MODULES[client.format]}"))
        with _reading():
            self._data = self._editor.read(self._text)
        self._path = self._servers_path()

    @property
    def entries(self) -> Mapping[str, Any]:
        """The entries by name."""
        found = _at(self._data, self._path)
        return found if isinstance(found, Mapping) else {}

    @_reading()
    def with_entry(self, name: str, entry: Mapping[str, Any]) -> str:
        """
        Return the text with an entry. What else stands in one that exists is kept.

        Args:
            name:
                The name of the server.

            entry:
                What is to stand there.

        Raises:
            DocumentError: If that cannot be done without touching something else.
        """
        path = (*self._path, name)
        found = self.entries.get(name)
        if found is None:
            return self._checked(self._editor.put(self._text, path, dict(entry)), path, dict(entry))
        stale = self._stale(entry)
        text, wanted = self._text, {key: value for key, value in found.items() if key not in stale}
        for key in found.keys() - wanted.keys():
            text = self._editor.take(text, (*path, key))
        for key, value in entry.items():
            if key not in wanted or wanted[key] != value:
                text = self._editor.put(text, (*path, key), value)
        return self._checked(text, path, {**wanted, **entry})

    @_reading()
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
        return self._checked(self._editor.take(self._text, path), path, None)

    def _servers_path(self) -> tuple[str, ...]:
        also = self._client.also_servers
        found = _at(self._data, also) if also else None
        # A server of that name would hold more than other servers.
        is_table = isinstance(found, dict) and all(isinstance(one, dict) for one in found.values())
        return also if is_table else self._client.servers

    def _stale(self, entry: Mapping[str, Any]) -> set[str]:
        """What belongs to the other kind of entry, which is started or reached in the other way."""
        return {*self._client.stdio, *(self._client.url or ())} - entry.keys()

    def _checked(self, text: str, path: tuple[str, ...], value: Any) -> str:
        """The text, if it says what it said before, and the entry."""
        try:
            found = _with(self._editor.read(text), path, value)
            is_kept = found == _with(self._data, path, value) and _at(found, path) == value
        except (DocumentError, RecursionError):  # what was written does not go with the rest
            is_kept = False
        if not is_kept:
            msg = "it is written in a way that cannot be changed without touching something else"
            raise DocumentError(msg)
        return self._mark + text


def _with(data: Any, path: tuple[str, ...], value: Any) -> dict[str, Any]:
    """A copy of data with something else at a path; tables on the way that hold nothing do not count."""
    name, *rest = path
    copy = _copied(data or {})
    below = _with(copy.get(name), tuple(rest), value) if rest else value
    copy.pop(name, None)
    return {**copy, name: below} if below else copy


def _copied(data: Any) -> Any:
    """A copy in which nothing is shared, as what stands behind an alias of YAML is."""
    if isinstance(data, Mapping):
        return {key: _copied(value) for key, value in data.items()}
    return [_copied(one) for one in data] if isinstance(data, list) else data


def text_of(client: Client, name: str, entry: Mapping[str, Any]) -> str:
    """Return what the configuration of *client* holds that has one server and nothing else."""
    return ServerTable(client, "").with_entry(name, entry)


def _at(data: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        data = data.get(key) if isinstance(data, Mapping) else None
    return data
