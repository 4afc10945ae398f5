"""What a command would change in a client's configuration, and changing it."""

import difflib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from promptkit.cli.clients.documents import ServerTable
from promptkit.cli.clients.errors import DocumentError, FileRefused, NotOurs
from promptkit.cli.clients.files import FileContents, back_up, read_file, replace_file
from promptkit.cli.clients.own_command import adding, carry_out, own_program, removing
from promptkit.cli.clients.servers import Server, is_ours, url_in
from promptkit.cli.clients.table import CLIENTS, Client, Scope

__all__ = ["Change", "Place", "install", "read_servers", "uninstall"]


class Place(Struct, frozen=True):
    """
    A configuration of a client.

    Args:
        client:
            The name of the client, as in `CLIENTS`.

        scope:
            What it holds for.

        project:
            The folder of the project, for what holds for that.
    """

    client: str
    scope: Scope
    project: str

    @property
    def profile(self) -> Client:
        """What is known of the client."""
        return CLIENTS[self.client]

    @property
    def file(self) -> Path:
        """The file, whether it exists or not."""
        return self.profile.file(self.scope, self.project)


class Change(Struct, frozen=True):
    """
    What would be changed: one server is put into a configuration, or taken out.

    Args:
        place:
            The configuration.

        contents:
            What the file holds.

        before:
            The same as text.

        after:
            What it is to hold.

        name:
            What the client calls the server.

        entry:
            What is to stand there; None if it is taken out.

        client_found:
            Whether the client is on this machine.

        commands:
            The client's own commands that change it; none if the file is written.
    """

    place: Place
    contents: FileContents
    before: str
    after: str
    name: str
    entry: Mapping[str, Any] | None
    client_found: bool
    commands: Sequence[Sequence[str]] = ()

    @property
    def is_needed(self) -> bool:
        """Whether anything would change."""
        return self.before != self.after

    @property
    def diff(self) -> str:
        """The lines that would change, and none beside them: those may hold the keys of others."""
        file = str(self.contents.file)
        before = os.devnull if self.contents.data is None else file
        old, new = self.before.splitlines(keepends=True), self.after.splitlines(keepends=True)
        shown = difflib.unified_diff(old, new, before, file, n=0)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in shown)

    def carry_out(self) -> Path | None:
        """
        Change the configuration.

        Returns:
            The backup of the file as it was; None if there was none.

        Raises:
            FileRefused: If it cannot be changed, or was changed meanwhile.
        """
        if not self.commands:
            return replace_file(self.contents, self.after.encode())
        try:
            backup = back_up(self.contents)
        except OSError as error:
            raise FileRefused(self.contents.file, f"no backup can be written: {error.strerror}") from None
        carry_out(self.commands, self.contents.file)
        found = read_servers(self.place)[2].entries.get(self.name)
        is_changed = found is None if self.entry is None else _holds(found, self.entry)
        if not is_changed:  # another program may bear the client's name
            raise FileRefused(
                self.contents.file, f"{self.commands[0][0]} has not changed it, and says nothing"
            )
        return backup


def read_servers(place: Place) -> tuple[FileContents, str, ServerTable]:
    """
    Read a configuration.

    Returns:
        The file, its text, and its servers.

    Raises:
        FileRefused: If it cannot be read.
    """
    contents = read_file(place.file, place.project if place.scope == "project" else None)
    try:
        text = (contents.data or b"").decode()
        return contents, text, ServerTable(place.profile, text)
    except UnicodeDecodeError:
        raise FileRefused(contents.file, "it is not UTF-8") from None
    except DocumentError as error:
        raise _refused(contents, error) from None


def install(place: Place, server: Server) -> Change:
    """
    Return what puts a server into a configuration.

    Raises:
        FileRefused: If it cannot be read or changed, or has a server of that name that is somebody else's.
    """
    is_found = place.profile.is_found  # before a folder of its own is made
    contents, text, table = read_servers(place)
    found = table.entries.get(server.name)
    if found is not None:
        _check_ours(place, contents, server.name, found, server.url)
    entry = server.entry(place.profile, found)
    if _holds(found, entry):
        return Change(place, contents, text, text, server.name, entry, is_found)
    try:
        after = table.with_entry(server.name, entry)
    except DocumentError as error:
        raise _refused(contents, error) from None
    commands: list[list[str]] = []
    if program := own_program(place.client, place.scope):
        whole = ServerTable(place.profile, after).entries[server.name]
        commands = [removing(program, server.name)] if found is not None else []
        commands.append(adding(program, server.name, whole))
    return Change(place, contents, text, after, server.name, entry, is_found, commands)


def uninstall(place: Place, name: str, url: str | None) -> Change:
    """
    Return what takes a server out of a configuration. Where there is none of that name, nothing changes.

    Args:
        place:
            The configuration.

        name:
            What the client calls the server.

        url:
            Where it is reached, if it is not started.

    Raises:
        FileRefused: If it cannot be read or changed, or if that server is somebody else's.
    """
    is_found = place.profile.is_found
    contents, text, table = read_servers(place)
    found = table.entries.get(name)
    if found is None:
        return Change(place, contents, text, text, name, None, is_found)
    _check_ours(place, contents, name, found, url)
    try:
        after = table.without(name)
    except DocumentError as error:
        raise _refused(contents, error) from None
    program = own_program(place.client, place.scope)
    commands = [removing(program, name)] if program else []
    return Change(place, contents, text, after, name, None, is_found, commands)


def _refused(contents: FileContents, error: DocumentError) -> FileRefused:
    return FileRefused(contents.file, error.reason, f":{error.line}:{error.column}" if error.line else "")


def _check_ours(place: Place, contents: FileContents, name: str, entry: Any, url: str | None) -> None:
    if is_ours(place.profile, entry, url):
        return
    if leads_to := url_in(place.profile, entry):
        reason = (
            f"its server {name!r} leads to {leads_to}: choose another --name, or uninstall that --url first"
        )
    else:
        reason = f"its server {name!r} is not promptkit's: choose another --name"
    raise NotOurs(contents.file, reason)


def _holds(found: Any, entry: Mapping[str, Any]) -> bool:
    """Whether all that is wanted stands there; people may have added to it."""
    return isinstance(found, Mapping) and all(found.get(key) == value for key, value in entry.items())
