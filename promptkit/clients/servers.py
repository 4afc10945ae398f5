"""Servers that are added to clients, and their entries in configurations."""

import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import msgspec
from msgspec import Struct

from promptkit.clients.configuration_files import ConfigurationFile
from promptkit.clients.profiles import ClientConfiguration
from promptkit.clients.uvx import uvx_command
from promptkit.errors.exceptions import LoadError
from promptkit.loader.targets import (
    locate_target,
    project_of,
    split_prefix,
    split_target,
    suggest_folders,
    with_path,
)

#: Characters that some clients reject in a name. Claude Code allows only letters, digits, ``-`` and ``_``.
_INVALID_CHARACTERS: Final = re.compile(r"[^A-Za-z0-9_-]+")

_PROGRAM: Final = re.compile(r"(?:.*[/\\])?promptkit(?:\.exe)?", re.IGNORECASE | re.DOTALL)
_UVX: Final = re.compile(r"(?:.*[/\\])?uvx(?:\.exe)?", re.IGNORECASE | re.DOTALL)


class InstalledServer(Struct, frozen=True):
    """
    A server that the client starts, or to which it connects over HTTP.

    Args:
        name:
            The server's name in the configuration.

        command:
            The command that starts the server. Empty if the client connects to the server's URL.

        url:
            The URL of the server, or None if the client starts the server.

        variables:
            Additional environment variables for the server.

        token_env:
            The client's environment variable that contains the bearer token for the URL, or None if the
            server does not need a token.
    """

    name: str
    command: tuple[str, ...] = ()
    url: str | None = None
    variables: Mapping[str, str] = MappingProxyType({})
    token_env: str | None = None

    def entry(self, settings: ClientConfiguration, current: Any = None) -> dict[str, Any]:
        """
        Return the server's entry in the configuration of a client.

        Args:
            settings:
                The client's settings for configuration files.

            current:
                The current entry. Its other settings, such as a timeout, are kept, because users may have
                changed them.
        """
        template = settings.stdio if self.url is None else settings.url or {}
        values = {"{name}": self.name, "{url}": self.url, "{command}": list(self.command)}
        values |= {"{program}": next(iter(self.command), None), "{arguments}": list(self.command[1:])}
        existing = {key: value for key, value in (current or {}).items() if key != "type"}
        entry = {
            key: values[value] if isinstance(value, str) and value in values else existing.get(key, value)
            for key, value in template.items()
        }
        if self.url is None and (variables := {**variables_in(settings, current), **self.variables}):
            entry[settings.env] = variables
        if self.token_env is not None:
            header = msgspec.json.encode(settings.token)
            token = header.replace(b"{token_env}", self.token_env.encode())
            for key, value in msgspec.json.decode(token, type=dict[str, Any]).items():
                former = existing.get(key)
                headers = former if isinstance(value, dict) and isinstance(former, Mapping) else {}
                entry[key] = {**headers, **value} if isinstance(value, dict) else value
        return entry


def local_server(
    name: str, targets: Sequence[str], file: ConfigurationFile, variables: Mapping[str, str]
) -> InstalledServer:
    """
    Return a server that serves recipes and is started by the client.

    The server uses the current installation of promptkit or, in project scope, the project's installation.
    Clients start servers in a different folder and environment, so paths are absolute, or relative to the
    project's folder.

    Args:
        name:
            The server's name in the configuration.

        targets:
            The targets to serve.

        file:
            The configuration file for the server.

        variables:
            Additional environment variables for the server.

    Raises:
        LoadError: If a target does not exist, or is a module that can be imported only from the current
            folder.
    """
    paths = (_locate_target(target, file) for target in targets)
    return InstalledServer(name, (*_promptkit_command(file), "serve", *paths), variables=variables)


def default_name(targets: Sequence[str]) -> str:
    """Return a server's default name, from the project folder or the module of the first target."""
    _, first = split_prefix(targets[0])
    return to_server_name(os.path.basename(project_of(first) or first))  # noqa: PTH119 (it is text)


def to_server_name(text: str) -> str:
    """Convert a string to a valid server name, which contains only letters, digits, ``-`` and ``_``."""
    return _INVALID_CHARACTERS.sub("-", text).strip("-")[:64] or "promptkit"


def command_in(settings: ClientConfiguration, entry: Any) -> list[str] | None:
    """Return the command in an entry, or None if there is none."""
    command: list[str] = []
    for key, part in settings.stdio.items():
        value = entry.get(key) if isinstance(entry, Mapping) else None
        if part == "{program}" and isinstance(value, str):
            command.insert(0, value)
        elif part in ("{arguments}", "{command}") and isinstance(value, Sequence):
            command += [str(word) for word in value]
    return command or None


def url_in(settings: ClientConfiguration, entry: Any) -> str | None:
    """Return the URL in an entry, or None if there is none."""
    parts = (settings.url or {}).items() if isinstance(entry, Mapping) else ()
    url = next((entry.get(key) for key, part in parts if part == "{url}"), None)
    return url if isinstance(url, str) else None


def was_added_by_promptkit(settings: ClientConfiguration, entry: Any, url: str | None = None) -> bool:
    """
    Return whether an entry was written by promptkit.

    For an entry with a URL, return whether the URL is *url*, because nothing else identifies the entry.
    """
    if (entry_url := url_in(settings, entry)) is not None:
        return entry_url == url
    return serve_arguments_in(settings, entry) is not None


def serve_arguments_in(settings: ClientConfiguration, entry: Any) -> list[str] | None:
    """Return the arguments of ``serve`` in an entry, or None if the entry does not run ``serve``."""
    match command_in(settings, entry) or []:
        case [_, "-m", "promptkit", "serve", *words]:
            return words
        case [program, "serve", *words] if _PROGRAM.fullmatch(program):
            return words
        case [program, *words] if _UVX.fullmatch(program) and "promptkit" in words:
            subcommand, *served = [*words[words.index("promptkit") + 1 :], ""]
            return served[:-1] if subcommand == "serve" else None
    return None


def variables_in(settings: ClientConfiguration, entry: Any) -> Mapping[str, Any]:
    """Return the environment variables in an entry."""
    variables = entry.get(settings.env) if isinstance(entry, Mapping) else None
    return variables if isinstance(variables, Mapping) else {}


def _promptkit_command(file: ConfigurationFile) -> tuple[str, ...]:
    """Return a command that starts promptkit from any folder."""
    if uvx := uvx_command():
        return uvx if file.scope == "user" else ("uvx", *uvx[1:])
    program = shutil.which("promptkit", path=sysconfig.get_path("scripts"))
    start = (program,) if program else (sys.executable, "-m", "promptkit")
    if file.scope == "user":
        return start
    path = file.format_path(start[0])
    return ("promptkit",) if Path(path).is_absolute() else (path, *start[1:])


def _locate_target(target: str, file: ConfigurationFile) -> str:
    name, _ = split_target(target)
    if locate_target(target) is not None:
        return with_path(target, file.format_path(name))
    if os.path.sep in name or not _is_installed(name):
        reason = "it is not a folder, a file, or a module that a client can import"
        raise LoadError(target, f"{reason}{suggest_folders(name)}")
    return target


def _is_installed(module: str) -> bool:
    """Return whether a module can be imported from any folder."""
    here = os.getcwd()  # noqa: PTH109 (text)
    paths = [path for path in sys.path if path and os.path.abspath(path) != here]  # noqa: PTH100 (text)
    name = module.partition(".")[0]
    return any(finder.find_spec(name, paths) for finder in sys.meta_path)
