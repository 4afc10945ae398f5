"""Changes to a client's configuration, shown as a diff and then applied."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from promptkit.clients.configuration_files import ConfigurationFile, ServerTable
from promptkit.clients.servers import InstalledServer, url_in, was_added_by_promptkit
from promptkit.errors.suggestions import common_length
from promptkit.files.edits import FileContents, ForeignEntryError, replace_file

_Entry = Mapping[str, Any] | None


class EntryChange(Struct, frozen=True):
    """
    The addition, change or removal of one server in a configuration.

    Args:
        file:
            The configuration file.

        contents:
            The current contents of the file.

        after:
            The new text of the file.

        name:
            The server's name in the configuration.

        entry:
            The new entry, or None to remove the entry.

        is_client_found:
            Whether the client seems to be installed on this machine.
    """

    file: ConfigurationFile
    contents: FileContents
    after: str
    name: str
    entry: _Entry
    is_client_found: bool

    @property
    def is_needed(self) -> bool:
        """Whether the file would change."""
        return self.contents.text != self.after

    @property
    def diff(self) -> str:
        """A diff without context lines, because these could contain the secrets of other servers."""
        file = str(self.file.path)
        before = os.devnull if self.contents.data is None else file
        old, new = (text.splitlines(keepends=True) for text in (self.contents.text, self.after))
        lines = unified_diff(old, new, before, file)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def apply(self) -> Path | None:
        """
        Change the configuration.

        Returns:
            The backup of the old file, or None if there was no file.

        Raises:
            FileEditError: If the file cannot be changed, or has been changed since it was read.
        """
        return replace_file(self.contents, self.after.encode())


def plan_change(
    file: ConfigurationFile, name: str, server: Callable[[_Entry], InstalledServer] | None, url: str | None
) -> EntryChange:
    """
    Return the change that adds, changes or removes a server.

    Args:
        file:
            The configuration file.

        name:
            The server's name in the configuration.

        server:
            A function that takes the current entry and returns the new server, or None to remove the server.

        url:
            The URL of the server, or None if the client starts it. An entry with this URL can be changed.

    Raises:
        FileEditError: If the file cannot be read or changed, or contains a server with this name that
            promptkit did not write.
    """
    contents = file.read()
    table = ServerTable(file.settings, contents.text)
    current = table.entries.get(name)
    if current is not None:
        _require_own_entry(file, name, current, url)
    entry = server(current).entry(file.settings, current) if server else None
    after = contents.text if _contains(current, entry) else table.with_entry(name, entry)
    return EntryChange(file, contents, after, name, entry, file.is_client_found)


def unified_diff(old: list[str], new: list[str], before: str, after: str) -> Iterator[str]:
    """Yield the lines of a diff without context. Its only hunk extends from first to last difference."""
    if old == new:
        return
    start = common_length(old, new)
    old, new = old[start:], new[start:]
    end = common_length(old[::-1], new[::-1])
    left, right = old[: len(old) - end], new[: len(new) - end]
    yield from (f"--- {before}\n", f"+++ {after}\n")
    yield f"@@ -{_span(start, len(left))} +{_span(start, len(right))} @@\n"
    yield from (f"-{line}" for line in left)
    yield from (f"+{line}" for line in right)


def _span(start: int, length: int) -> str:
    """Return a range of lines in the syntax of a hunk's header, which omits a length of 1."""
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _require_own_entry(file: ConfigurationFile, name: str, entry: Any, url: str | None) -> None:
    if was_added_by_promptkit(file.settings, entry, url):
        return
    reason = "was not added by promptkit: choose another --name"
    if other_url := url_in(file.settings, entry):
        reason = f"has the URL {other_url}: choose another --name, or uninstall that URL first"
    msg = f"its server {name!r} {reason}"
    raise ForeignEntryError(msg)


def _contains(current: Any, entry: _Entry) -> bool:
    """Return whether *current* has all settings of *entry*, or whether both of them are None."""
    if entry is None:
        return current is None
    return isinstance(current, Mapping) and all(current.get(key) == value for key, value in entry.items())
