"""
Changes to a client's configuration, shown as a diff and then applied.

Claude Code also stores its state in its configuration file, and rewrites the file under a lock while it runs.
Therefore, that file is changed with the ``claude`` command if the command is installed. The files of other
clients are edited directly.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.clients.configuration_files import ConfigurationFile, ServerTable, read_servers
from promptkit.clients.servers import InstalledServer, is_ours, url_in
from promptkit.errors.suggestions import common_length
from promptkit.files.edits import (
    FileContents,
    FileEditError,
    ForeignEntryError,
    back_up,
    check,
    replace_file,
)

#: Timeout of a client's command, in seconds.
_TIMEOUT_S: Final = 60

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

        before:
            The current entry, if any.

        entry:
            The new entry; None to remove it.

        is_client_found:
            Whether the client is on this machine.

        commands:
            The client's commands that make the change; empty if promptkit edits the file.
    """

    file: ConfigurationFile
    contents: FileContents
    after: str
    name: str
    before: _Entry
    entry: _Entry
    is_client_found: bool
    commands: Sequence[Sequence[str]] = ()

    @property
    def is_needed(self) -> bool:
        """Whether the file would change."""
        return self.contents.text != self.after

    @property
    def diff(self) -> str:
        """A diff without context lines, which could contain the keys of other servers."""
        file = str(self.file.path)
        before = os.devnull if self.contents.data is None else file
        old, new = (text.splitlines(keepends=True) for text in (self.contents.text, self.after))
        lines = unified_diff(old, new, before, file)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def apply(self) -> Path | None:
        """
        Change the configuration.

        Returns:
            The backup of the old file; None if there was no file.

        Raises:
            FileEditError: If the file cannot be changed, or has been changed since it was read.
        """
        if not self.commands:
            return replace_file(self.contents, self.after.encode())
        try:
            backup = back_up(self.contents)
        except OSError as error:
            msg = f"cannot write a backup: {error.strerror}"
            raise FileEditError(msg) from None
        for command in self.commands:
            _run(command)
        entry = read_servers(self.file).get(self.name)
        # A different program might have the name of the client's command.
        check(
            _contains(entry, self.entry),
            f"{self.commands[0][0]} exited successfully, but did not change the file",
        )
        return backup


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
            A function that takes the current entry and returns the new server; None to remove the server.

        url:
            The URL of the server; None if the client starts it. Entries with this URL can be changed.

    Raises:
        FileEditError: If the file cannot be read or changed, or contains a server with this name that
            promptkit did not write.
    """
    contents = file.read()
    table = ServerTable(file.settings, contents.text)
    current = table.entries.get(name)
    if current is not None:
        _check_ours(file, name, current, url)
    entry = server(current).entry(file.settings, current) if server else None
    after, commands = contents.text, list[list[str]]()
    if not _contains(current, entry):
        after = table.with_entry(name, entry)
        commands = _own_commands(file, name, current, ServerTable(file.settings, after).entries.get(name))
    return EntryChange(file, contents, after, name, current, entry, file.is_client_found, commands)


def unified_diff(old: list[str], new: list[str], before: str, after: str) -> Iterator[str]:
    """Yield the lines of a diff without context, as one hunk from the first to the last difference."""
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
    """Return a range of lines as a hunk's header writes it, without a length of 1."""
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _check_ours(file: ConfigurationFile, name: str, entry: Any, url: str | None) -> None:
    if is_ours(file.settings, entry, url):
        return
    reason = "was not added by promptkit: choose another --name"
    if other_url := url_in(file.settings, entry):
        reason = f"has the URL {other_url}: choose another --name, or uninstall that URL first"
    msg = f"its server {name!r} {reason}"
    raise ForeignEntryError(msg)


def _contains(current: Any, entry: _Entry) -> bool:
    """Return whether *current* has all settings of *entry*, or is None if *entry* is None."""
    if entry is None:
        return current is None
    return isinstance(current, Mapping) and all(current.get(key) == value for key, value in entry.items())


def _own_commands(file: ConfigurationFile, name: str, before: _Entry, after: _Entry) -> list[list[str]]:
    """Return the client's commands that change the entry; an empty list if promptkit edits the file."""
    program = shutil.which("claude") if (file.client, file.scope) == ("claude-code", "user") else None
    if program is None:
        return []
    start = [program, "mcp"]
    remove = [*start, "remove", "--scope", "user", name]
    add = [*start, "add-json", "--scope", "user", name, json.dumps(after, ensure_ascii=False)]
    return [*([] if before is None else [remove]), *([] if after is None else [add])]


def _run(command: Sequence[str]) -> None:
    """Run a command that changes a file. Raises FileEditError with the command's output if it fails."""
    label = " ".join(command[:3])
    try:
        process = subprocess.run(  # noqa: S603 (the client's own command)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{label} failed: {error}"
        raise FileEditError(msg) from None
    output = (process.stderr or process.stdout).strip() or f"it exited with code {process.returncode}"
    check(process.returncode == 0, f"{label} failed: {output}")
