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

# If the configuration names clients, every command imports this module, so it must import little.

#: Kinds of content.
Kind: TypeAlias = Literal["text", "image", "recording", "document", "link", "unknown"]

_Entry: TypeAlias = Mapping[str, Any]


class ClientConfiguration(Struct, frozen=True, forbid_unknown_fields=True):
    """
    The paths of a client's configuration files, and the format of the servers in them.

    Paths contain placeholders for folders: ``{home}``, ``{project}``, ``{config}`` for the platform's folder
    of settings, and folders that environment variables can override. Values of an entry can be placeholders:
    the ``{name}`` of the server, the ``{program}`` and the list of its ``{arguments}``, both of these as the
    list ``{command}``, or the ``{url}`` of the server.

    Args:
        user:
            The user's configuration files, in order of preference. The first is created if none exists.

        servers:
            The keys that lead to the table of servers in a file.

        stdio:
            The template of an entry for a server that the client starts.

        url:
            The template of an entry for a server over HTTP; None if the client does not support such servers.

        project:
            The project's configuration files, in order of preference; none if there is no project scope.

        windows:
            The value of `user` on Windows, if different.

        format:
            The format of the files.

        instead_of_url:
            A hint shown if *url* is None.

        token:
            The settings of an entry with a URL that send a bearer token from an environment variable, with
            ``{token_env}`` for the variable's name; empty if the client cannot send values of variables.

        header_hint:
            If *token* is empty, the reason and a hint for the user.

        programs:
            The names of the client's programs on the ``PATH``.

        home:
            A folder that exists if the client is installed; by default the folder of the `user` file.

        also_servers:
            The keys of an alternative table of servers, which is used if it exists.

        skills:
            The folders of skills, by scope; empty if the client does not read skills from folders.

        env:
            The key in an entry for environment variables of a server that the client starts.

        project_folder:
            How the configuration refers to the project's folder: with a variable of the client, or with a dot
            if the client starts servers in that folder.
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
    also_servers: tuple[str, ...] = ()
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

        most_arguments:
            The maximum number of arguments, because the client hides prompts with more; None if unlimited.

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

        cuts_at_blanks:
            Whether each argument receives one word of the text that the user types.

        keeps_rest:
            With `cuts_at_blanks`, whether the last argument receives all remaining words, which are lost
            otherwise.

        fills_in_text:
            Whether the client sends ``$1`` for the first argument, ``$2`` for the second and so on, and puts
            the user's words into the text that it receives.

        asks_for_all:
            Whether the client also asks for arguments that have defaults.

        own_names:
            Reserved names of arguments, which the client does not pass to prompts.

        command:
            What users type for a prompt, with ``{server}`` and ``{prompt}`` for the names; empty if this is
            unknown, or if users choose prompts from a menu.

        own_commands:
            Names of the client's own commands, which users cannot type for a skill, nor for a prompt if
            *command* does not contain the server.

        client_info:
            The names with which the client introduces itself to servers.

        refuses_missing:
            Whether the client itself rejects a prompt with missing required arguments, instead of asking the
            user for the arguments.

        configuration:
            How promptkit adds servers to the client; None if users must do so themselves.
    """

    title: str
    has_prompts: bool = True
    most_arguments: int | None = None
    unsupported: tuple[Kind, ...] = ()
    effect: str = "omits"
    sends_first_only: bool = False
    drops_roles: bool = False
    quotes_text: bool = False
    cuts_at_blanks: bool = False
    keeps_rest: bool = False
    fills_in_text: bool = False
    asks_for_all: bool = False
    own_names: tuple[str, ...] = ()
    command: str = ""
    own_commands: tuple[str, ...] = ()
    client_info: tuple[str, ...] = ()
    refuses_missing: bool = False
    configuration: ClientConfiguration | None = None

    @property
    def hides_prompts(self) -> bool:
        """Whether the client's own commands hide prompts of the same name."""
        return bool(self.own_commands and self.command) and "{server}" not in self.command

    @property
    def limitations(self) -> tuple[str, ...]:
        """The limitations for prompts, each a phrase with the client as its subject: ``hides prompts``."""
        if not self.has_prompts:
            return ("does not support prompts: it uses the tools that --tools adds",)
        limit, names = self.most_arguments, ", ".join(map(repr, self.own_names))
        applies = {
            f"hides prompts with more than {limit} argument{'' if limit == 1 else 's'}": limit is not None,
            f"{self.effect} {', '.join(f'{kind}s' for kind in self.unsupported)}": bool(self.unsupported),
            "sends only the first message of a prompt": self.sends_first_only,
            "sends assistant turns as user turns": self.drops_roles,
            "sends the text as a JSON string, with quotes and escapes": self.quotes_text,
            "gives each argument one word, and the last one the rest": self.cuts_at_blanks
            and self.keeps_rest,
            "gives each argument one word, and drops the rest": self.cuts_at_blanks and not self.keeps_rest,
            "never fills in optional arguments": self.fills_in_text,
            "also asks for arguments with defaults": self.asks_for_all,
            f"does not pass on arguments named {names}": bool(self.own_names),
        }
        return tuple(text for text, is_true in applies.items() if is_true)


#: All clients, by the name that commands accept, in alphabetical order.
CLIENTS: Final[Mapping[str, ClientProfile]] = MappingProxyType(
    msgspec.toml.decode(get_data(__name__, "profiles.toml") or b"", type=dict[str, ClientProfile])
)

#: The clients that promptkit can be added to.
INSTALLABLE: Final[Mapping[str, ClientConfiguration]] = MappingProxyType(
    {name: client.configuration for name, client in CLIENTS.items() if client.configuration is not None}
)


class UnknownClientError(ValueError):
    """
    A client is unknown.

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
    """Return the profile of the client that introduces itself by this name, or None if it is unknown."""
    return next((profile for profile in CLIENTS.values() if client_info_name in profile.client_info), None)


def get_client(name: str, known: Collection[str] | None = None) -> ClientProfile:
    """
    Return the profile of a client.

    Args:
        name:
            The name that commands accept.

        known:
            The valid names; all of `CLIENTS` by default.

    Raises:
        UnknownClientError: If *name* is not valid.
    """
    if name not in (known or CLIENTS):
        raise UnknownClientError(name, known or CLIENTS)
    return CLIENTS[name]
