"""The server that is put into a client: how it is started or reached, and how that looks in an entry."""

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from msgspec import Struct

from promptkit.clients.configurations import ConfigurationFile
from promptkit.clients.profiles import ClientConfiguration
from promptkit.errors.exceptions import LoadError
from promptkit.loader.targets import is_project, locate_target, project_root, split_target, suggest

#: What no client takes in a name: Claude Code has letters, digits, ``-`` and ``_`` alone.
_NO_NAME: Final = re.compile(r"[^A-Za-z0-9_-]+")

_PROGRAM: Final = re.compile(r"(?:.*[/\\])?promptkit(?:\.exe)?", re.IGNORECASE | re.DOTALL)


class InstalledServer(Struct, frozen=True):
    """
    A server: one that the client starts, or one that is reached over HTTP.

    Args:
        name:
            What the client calls it.

        command:
            What starts it; nothing if it has a URL.

        url:
            Where it is reached; None if it is started.

        variables:
            What is added to the environment that it is started with.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    variables: Mapping[str, str] = MappingProxyType({})

    def entry(self, settings: ClientConfiguration, found: Any = None) -> dict[str, Any]:
        """
        Return what stands for it in the configuration of a client.

        Args:
            settings:
                What is known of that configuration.

            found:
                The entry that is there now. Its other settings, such as a timeout, are kept, as people may
                have changed them.
        """
        template = settings.stdio if self.url is None else settings.url or {}
        values = {"{name}": self.name, "{url}": self.url, "{command}": list(self.command)}
        values |= {"{program}": next(iter(self.command), None), "{arguments}": list(self.command[1:])}
        kept = {key: value for key, value in (found or {}).items() if key != "type"}
        entry = {
            key: values[value] if value in values else kept.get(key, value) for key, value in template.items()
        }
        if self.url is None and (variables := {**variables_in(settings, found), **self.variables}):
            entry[settings.env] = variables
        return entry


def local_server(
    name: str, targets: Sequence[str], place: ConfigurationFile, variables: Mapping[str, str]
) -> InstalledServer:
    """
    Return the server of recipes, which is started by the promptkit that runs now, or in a project by theirs.

    A client starts it in a folder and with an environment of its own, so the paths are absolute, or begin
    with what stands for the folder of the project.

    Args:
        name:
            What the client calls it.

        targets:
            The recipes.

        place:
            The configuration that it is written into.

        variables:
            What is added to the environment that it is started with.

    Raises:
        LoadError: If there is nothing at a target, or a module that is found from here alone.
    """
    located = (_located(target, place) for target in targets)
    return InstalledServer(name, (*_promptkit(place), "serve", *located), variables=variables)


def default_name(targets: Sequence[str]) -> str:
    """Return what a server of recipes is called: as the folder of the first's project, or as the module."""
    target = targets[0]
    place = locate_target(target)
    if place is None:
        return as_name(target)
    folder, _ = place
    project = folder if is_project(folder) else project_root(folder)
    return as_name(os.path.basename(project))  # noqa: PTH119 (it is text)


def as_name(text: str) -> str:
    """Return a text as the name of a server: letters, digits, ``-`` and ``_``."""
    return _NO_NAME.sub("-", text).strip("-")[:64] or "promptkit"


def command_in(settings: ClientConfiguration, entry: Any) -> list[str] | None:
    """Return what an entry in a configuration starts; None if it starts nothing."""
    found: list[str] = []
    for key, part in settings.stdio.items():
        value = entry.get(key) if isinstance(entry, Mapping) else None
        if part == "{program}" and isinstance(value, str):
            found.insert(0, value)
        elif part in ("{arguments}", "{command}") and isinstance(value, Sequence):
            found += [str(word) for word in value]
    return found or None


def url_in(settings: ClientConfiguration, entry: Any) -> str | None:
    """Return the URL of an entry in a configuration; None if it has none."""
    parts = (settings.url or {}).items() if isinstance(entry, Mapping) else ()
    found = next((entry.get(key) for key, part in parts if part == "{url}"), None)
    return found if isinstance(found, str) else None


def is_ours(settings: ClientConfiguration, entry: Any, url: str | None = None) -> bool:
    """
    Return whether an entry is one of promptkit's.

    Args:
        settings:
            What is known of the configuration that it stands in.

        entry:
            The entry.

        url:
            A URL that is known to be a server of promptkit's, as nothing else tells that of a URL.
    """
    if (found := url_in(settings, entry)) is not None:
        return found == url
    return served_in(settings, entry) is not None


def served_in(settings: ClientConfiguration, entry: Any) -> list[str] | None:
    """Return what follows ``serve`` in an entry; None if it does not start promptkit."""
    match command_in(settings, entry) or []:
        case [_, "-m", "promptkit", "serve", *words]:
            return words
        case [program, "serve", *words] if _PROGRAM.fullmatch(program):
            return words
    return None


def variables_in(settings: ClientConfiguration, entry: Any) -> Mapping[str, Any]:
    """Return what an entry adds to the environment of what it starts."""
    found = entry.get(settings.env) if isinstance(entry, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _promptkit(place: ConfigurationFile) -> tuple[str, ...]:
    """What starts the promptkit of this environment, wherever it is started; that of others by its name."""
    program = shutil.which("promptkit", path=sysconfig.get_path("scripts"))
    start = (program,) if program else (sys.executable, "-m", "promptkit")
    if place.scope == "user":
        return start
    written = place.written(start[0])
    return ("promptkit",) if Path(written).is_absolute() else (written, *start[1:])


def _located(target: str, place: ConfigurationFile) -> str:
    name, attribute = split_target(target)
    if locate_target(target) is not None:
        path = place.written(name)
        return f"{path}:{attribute}" if attribute else path
    if os.path.sep in name or not _is_installed(name):
        reason = "there is no such folder or file, nor such a module that a client could import"
        raise LoadError(target, f"{reason}{suggest(name)}")
    return target


def _is_installed(module: str) -> bool:
    """Whether a module can be imported in any folder."""
    here = os.getcwd()  # noqa: PTH109 (text)
    everywhere = [path for path in sys.path if path and os.path.abspath(path) != here]  # noqa: PTH100 (text)
    name = module.partition(".")[0]
    return any(finder.find_spec(name, everywhere) for finder in sys.meta_path)
