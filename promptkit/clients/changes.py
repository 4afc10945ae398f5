"""
What a command would change in a client's configuration, and changing it.

The file of Claude Code is its memory, too: it is written again and again while Claude Code runs, which has a
lock for that. So its own command changes that file. Other clients leave theirs to people: those are edited.
"""

import difflib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from promptkit.clients.configurations import ConfigurationFile, ServerTable, read_servers
from promptkit.clients.servers import InstalledServer, is_ours, url_in
from promptkit.files.writing import (
    FileContents,
    FileRefusedError,
    ForeignEntryError,
    back_up,
    check,
    replace_file,
)

#: How long a command of a client may take.
_TIMEOUT_S: Final = 60

#: Number of lines that are compared with one another; more are shown as all removed, and all added.
_MAX_COMPARED: Final = 1000

_Entry = Mapping[str, Any] | None


class EntryChange(Struct, frozen=True):
    """
    What would be changed: one server is put into a configuration, or taken out.

    Args:
        place:
            The configuration.

        contents:
            What the file holds.

        after:
            What it is to hold.

        name:
            What the client calls the server.

        before:
            What stands there now; None if there is nothing.

        entry:
            What is to stand there; None if it is taken out.

        client_found:
            Whether the client is on this machine.

        commands:
            The client's own commands that change it; none if the file is written.
    """

    place: ConfigurationFile
    contents: FileContents
    after: str
    name: str
    before: _Entry
    entry: _Entry
    client_found: bool
    commands: Sequence[Sequence[str]] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything would change."""
        return self.contents.text != self.after

    @property
    def diff(self) -> str:
        """The lines that would change, and none beside them: those may hold the keys of others."""
        file = str(self.place.path)
        before = os.devnull if self.contents.data is None else file
        old, new = (text.splitlines(keepends=True) for text in (self.contents.text, self.after))
        shown = unified_diff(old, new, before, file)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in shown)

    def carry_out(self) -> Path | None:
        """
        Change the configuration.

        Returns:
            The backup of the file as it was; None if there was none.

        Raises:
            FileRefusedError: If it cannot be changed, or was changed meanwhile.
        """
        if not self.commands:
            return replace_file(self.contents, self.after.encode())
        try:
            backup = back_up(self.contents)
        except OSError as error:
            msg = f"no backup can be written: {error.strerror}"
            raise FileRefusedError(msg) from None
        for command in self.commands:
            _run(command)
        found = read_servers(self.place).get(self.name)
        # Another program may bear the client's name.
        check(_holds(found, self.entry), f"{self.commands[0][0]} has not changed it, and says nothing")
        return backup


def change_of(
    place: ConfigurationFile, name: str, server: Callable[[_Entry], InstalledServer] | None, url: str | None
) -> EntryChange:
    """
    Return what puts a server into a configuration, or takes it out. What is so already does not change.

    Args:
        place:
            The configuration.

        name:
            What the client calls the server.

        server:
            What is put in, for the entry that is there now; None if that is taken out.

        url:
            Where it is reached, if it is not started.

    Raises:
        FileRefusedError: If it cannot be read or changed, or has a server of that name that is somebody
            else's.
    """
    contents = place.read()
    table = ServerTable(place.settings, contents.text)
    found = table.entries.get(name)
    if found is not None:
        _check_ours(place, name, found, url)
    entry = server(found).entry(place.settings, found) if server else None
    after, commands = contents.text, list[list[str]]()
    if not _holds(found, entry):
        after = table.changed(name, entry)
        commands = _own_commands(place, name, found, ServerTable(place.settings, after).entries.get(name))
    return EntryChange(place, contents, after, name, found, entry, place.client_is_found, commands)


def unified_diff(old: Sequence[str], new: Sequence[str], before: str, after: str) -> Iterator[str]:
    """
    Yield the lines of a diff without context.

    Only the lines between the first and the last difference are compared, because `difflib` takes quadratic
    time over lines that repeat.
    """
    if old == new:
        return
    start, end, most = 0, 0, min(len(old), len(new))
    while start < most and old[start] == new[start]:
        start += 1
    while end < most - start and old[-1 - end] == new[-1 - end]:
        end += 1
    left, right = old[start : len(old) - end], new[start : len(new) - end]
    blocks: Sequence[tuple[str, int, int, int, int]] = [("replace", 0, len(left), 0, len(right))]
    if len(left) + len(right) <= _MAX_COMPARED:
        blocks = difflib.SequenceMatcher(None, left, right).get_opcodes()
    yield from (f"--- {before}\n", f"+++ {after}\n")
    for kind, i, i_end, j, j_end in blocks:
        if kind != "equal":
            yield f"@@ -{_span(start + i, i_end - i)} +{_span(start + j, j_end - j)} @@\n"
            yield from (f"-{line}" for line in left[i:i_end])
            yield from (f"+{line}" for line in right[j:j_end])


def _span(start: int, length: int) -> str:
    """Return the lines of a hunk as in the heads of diffs: without a length if it is one line."""
    first = start + 1 if length else start
    return f"{first}" if length == 1 else f"{first},{length}"


def _check_ours(place: ConfigurationFile, name: str, entry: Any, url: str | None) -> None:
    if is_ours(place.settings, entry, url):
        return
    reason = "is not promptkit's: choose another --name"
    if leads_to := url_in(place.settings, entry):
        reason = f"leads to {leads_to}: choose another --name, or uninstall that --url first"
    msg = f"its server {name!r} {reason}"
    raise ForeignEntryError(msg)


def _holds(found: Any, entry: _Entry) -> bool:
    """Whether all that is wanted stands there; people may have added to it."""
    if entry is None:
        return found is None
    return isinstance(found, Mapping) and all(found.get(key) == value for key, value in entry.items())


def _own_commands(place: ConfigurationFile, name: str, before: _Entry, after: _Entry) -> list[list[str]]:
    """The client's own commands that make an entry what it is to be; none if promptkit edits the file."""
    program = shutil.which("claude") if (place.client, place.scope) == ("claude-code", "user") else None
    if program is None:
        return []
    start = [program, "mcp"]
    remove = [*start, "remove", "--scope", "user", name]
    add = [*start, "add-json", "--scope", "user", name, json.dumps(after, ensure_ascii=False)]
    return [*([] if before is None else [remove]), *([] if after is None else [add])]


def _run(command: Sequence[str]) -> None:
    """Run a command that changes a file. Raises FileRefusedError with what it says, if it fails."""
    shown = " ".join(command[:3])
    try:
        ran = subprocess.run(  # noqa: S603 (the client's own command)
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        msg = f"{shown} failed: {error}"
        raise FileRefusedError(msg) from None
    said = (ran.stderr or ran.stdout).strip() or f"it ended with {ran.returncode}"
    check(ran.returncode == 0, f"{shown} failed: {said}")
