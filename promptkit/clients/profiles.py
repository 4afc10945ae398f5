"""
Profiles of MCP clients, from ``profiles.toml``: their limitations, and the format of their configurations.
"""

from collections.abc import Collection, Iterable, Mapping
from pkgutil import get_data
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.errors.suggestions import nearest

# If the configuration names clients, every command imports this module, so it must import few other modules.

#: Kinds of content.
Kind: TypeAlias = Literal["text", "image", "recording", "document", "link", "unknown"]

_Entry: TypeAlias = Mapping[str, Any]


class ClientConfiguration(Struct, frozen=True, forbid_unknown_fields=True):
    """
    The paths of a client's configuration files, and the format of the servers in them.

    Paths contain placeholders for folders: ``{home}``, ``{project}``, ``{config}`` for the platform's
    settings folder, and folders that environment variables can override. The values in an entry can be
    placeholders: the server's ``{name}``, its ``{program}``, the list of the program's ``{arguments}``, the
    program and its arguments as one list ``{command}``, or the server's ``{url}``.

    Args:
        user:
            The user's configuration files, in order of preference. The first is created if none exists.

        servers:
            The keys that lead to the table of servers in a file.

        stdio:
            The template of an entry for a server that the client starts.

        url:
            The template of an entry for a server over HTTP, or None if the client does not support such
            servers.

        project:
            The project's configuration files, in order of preference. Empty if the client has no project
            scope.

        windows:
            The value of *user* on Windows, if it is different there.

        format:
            The format of the files.

        instead_of_url:
            A hint for the user if *url* is None.

        token:
            The settings with which an entry with a URL sends a bearer token from an environment variable.
            ``{token_env}`` is the variable's name. Empty if the client cannot insert variables into headers.

        header_hint:
            The reason why *token* is empty, and a hint for the user.

        programs:
            The names of the client's programs on the ``PATH``.

        home:
            A folder that exists if the client is installed. By default, this is the folder of the *user*
            file.

        alternative_servers:
            The keys that lead to an alternative table of servers, which is used if it exists.

        skills:
            The skill folders, keyed by scope. Empty if the client does not read skills from folders.

        env:
            The key in an entry for the environment variables of a server that the client starts.

        project_folder:
            How the configuration refers to the project's folder: by a variable of the client, or by a dot if
            the client starts servers in that folder.
    """

    user: tuple[str, ...]
    servers: tuple[str, ...] = ("mcpServers",)
    stdio: _Entry = MappingProxyType({"command": "{program}", "args": "{arguments}"})
    url: _Entry | None = None
    project: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    format: Literal["json", "toml", "yaml"] = "json"
    instead_of_url: str = ""
    token: _Entry = MappingProxyType({})
    header_hint: str = (
        "does not replace variables in headers: omit the option, and add the header to the entry yourself, "
        "as described in docs/clients.md"
    )
    programs: tuple[str, ...] = ()
    home: str = ""
    alternative_servers: tuple[str, ...] = ()
    skills: Mapping[Literal["user", "project"], str] = MappingProxyType({})
    env: str = "env"
    project_folder: str = "."


class ClientProfile(Struct, frozen=True, forbid_unknown_fields=True):
    """
    The profile of a client: its limitations for prompts, and its configuration.

    Args:
        title:
            The display name.

        has_prompts:
            Whether the client supports prompts at all.

        max_arguments:
            The maximum number of arguments, or None for no limit. The client hides prompts with more.

        unsupported:
            The kinds of content that the client does not deliver.

        effect:
            What the client does with content of an unsupported kind: ``omits``, ``fails on``, or ``does not
            show users``.

        sends_first_only:
            Whether all messages after the first one are lost.

        drops_roles:
            Whether the client sends assistant turns as user turns.

        quotes_text:
            Whether the text of a message arrives as a JSON string, with quotes and escapes.

        splits_at_spaces:
            Whether each argument receives one word of the text that the user types.

        keeps_rest:
            If *splits_at_spaces* is True, whether the last argument receives all remaining words, which are
            otherwise lost.

        fills_in_text:
            Whether the client sends ``$1`` for the first argument, ``$2`` for the second and so on, and then
            inserts the user's words into the text that it receives.

        asks_for_all:
            Whether the client also asks for arguments that have defaults.

        reserved_names:
            The names of arguments that the client reserves, and does not pass to prompts.

        command:
            What users type to run a prompt, with ``{server}`` and ``{prompt}`` in place of the names. Empty
            if this is unknown, or if users choose prompts from a menu.

        own_commands:
            The names of the client's own commands. A skill with such a name cannot be run, and neither can a
            prompt, unless *command* contains the server's name.

        client_info:
            The names with which the client introduces itself to servers.

        rejects_missing:
            Whether the client itself rejects a prompt if required arguments are missing, instead of asking
            the user for them.

        configuration:
            How promptkit adds servers to the client, or None if users must do so themselves.
    """

    title: str
    has_prompts: bool = True
    max_arguments: int | None = None
    unsupported: tuple[Kind, ...] = ()
    effect: str = "omits"
    sends_first_only: bool = False
    drops_roles: bool = False
    quotes_text: bool = False
    splits_at_spaces: bool = False
    keeps_rest: bool = False
    fills_in_text: bool = False
    asks_for_all: bool = False
    reserved_names: tuple[str, ...] = ()
    command: str = ""
    own_commands: tuple[str, ...] = ()
    client_info: tuple[str, ...] = ()
    rejects_missing: bool = False
    configuration: ClientConfiguration | None = None

    @property
    def hides_prompts(self) -> bool:
        """Whether the client's own commands hide prompts with the same names."""
        return bool(self.own_commands and self.command) and "{server}" not in self.command

    @property
    def limitations(self) -> tuple[str, ...]:
        """The limitations for prompts, as phrases whose subject is the client, such as ``hides prompts``."""
        if not self.has_prompts:
            return ("does not support prompts: it uses the tools that --tools adds",)
        limit, names = self.max_arguments, ", ".join(map(repr, self.reserved_names))
        applies = {
            f"hides prompts with more than {limit} argument{'' if limit == 1 else 's'}": limit is not None,
            f"{self.effect} {', '.join(f'{kind}s' for kind in self.unsupported)}": bool(self.unsupported),
            "sends only the first message of a prompt": self.sends_first_only,
            "sends assistant turns as user turns": self.drops_roles,
            "sends the text as a JSON string, with quotes and escapes": self.quotes_text,
            "gives each argument one word, and the last argument the rest": self.splits_at_spaces
            and self.keeps_rest,
            "gives each argument one word, and drops the rest": self.splits_at_spaces and not self.keeps_rest,
            "never fills in optional arguments": self.fills_in_text,
            "also asks for arguments with defaults": self.asks_for_all,
            f"does not pass on arguments named {names}": bool(self.reserved_names),
        }
        return tuple(text for text, is_true in applies.items() if is_true)


#: All clients in alphabetical order, keyed by the names that commands accept.
CLIENTS: Final[Mapping[str, ClientProfile]] = MappingProxyType(
    msgspec.toml.decode(get_data(__name__, "profiles.toml") or b"", type=dict[str, ClientProfile])
)

#: The configurations of the clients to which promptkit can add servers, keyed by client name.
INSTALLABLE: Final[Mapping[str, ClientConfiguration]] = MappingProxyType(
    {name: client.configuration for name, client in CLIENTS.items() if client.configuration is not None}
)


class UnknownClientError(ValueError):
    """
    The name of a client is unknown.

    Args:
        name:
            The unknown name.

        known:
            The valid names.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        suggestion = nearest(name, known)
        hint = f"did you mean {suggestion!r}?" if suggestion else f"choose one of {', '.join(known)}"
        super().__init__(f"unknown client {name!r}: {hint}")


def find_client(client_info_name: str) -> ClientProfile | None:
    """Return the profile of the client that introduces itself with this name, or None if it is unknown."""
    return next((profile for profile in CLIENTS.values() if client_info_name in profile.client_info), None)


def get_client(name: str, known: Collection[str] | None = None) -> ClientProfile:
    """
    Return the profile of a client.

    Args:
        name:
            The client's name, as commands accept it.

        known:
            The valid names. By default, these are all names in `CLIENTS`.

    Raises:
        UnknownClientError: If *name* is not valid.
    """
    if name not in (known or CLIENTS):
        raise UnknownClientError(name, known or CLIENTS)
    return CLIENTS[name]
