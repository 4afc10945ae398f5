"""
The clients: what of each gets in the way of prompts, and where and how a server is put into it.

What is known of them stands in ``profiles.toml``.
"""

from collections.abc import Collection, Iterable, Mapping
from pkgutil import get_data
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

import msgspec
from msgspec import Struct

from promptkit.errors.suggestions import nearest

# A configuration that names clients is read by every command, so this imports little.

#: Kinds of content.
Kind: TypeAlias = Literal["text", "image", "recording", "document", "link", "unknown"]

_Entry: TypeAlias = Mapping[str, Any]


class ClientConfiguration(Struct, frozen=True):
    """
    Where the configuration of a client lies, and how a server is written into it.

    In the paths of files, what stands in braces is a folder: ``home``, ``project``, ``config`` where programs
    keep their settings, or one that a variable of the environment may move. In an entry, a value in braces
    stands for ``{name}`` of the server, for the ``{program}`` that is started and the list of its
    ``{arguments}``, for both as one list, ``{command}``, or for the ``{url}`` where the server is reached.

    Args:
        user:
            The files that hold a person's configuration, by preference. The first is taken if none exists.

        servers:
            The keys that lead to the table of servers in such a file.

        stdio:
            The entry of a server that the client starts.

        url:
            The entry of a server that is reached over HTTP; None if there is no such entry.

        project:
            The files that hold a project's configuration, by preference; none if there is no such thing.

        windows:
            What `user` is on Windows, where that is another file.

        format:
            How the files are written.

        instead_of_url:
            What to do in place of an entry with a URL.

        programs:
            What the client is called on the path.

        home:
            A folder that is there if the client is; else that of its file.

        also_servers:
            Where the table of servers may be instead; entries go there if it exists.

        skills:
            Where it looks for skills: a folder of yours, and one of a project; none if it reads no folders.

        env:
            The key of an entry that holds variables of the environment of a server that the client starts.

        project_folder:
            What stands for the folder of a project in its configuration: a variable of the client's, or a dot
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
    programs: tuple[str, ...] = ()
    home: str = ""
    also_servers: tuple[str, ...] = ()
    skills: Mapping[Literal["user", "project"], str] = MappingProxyType({})
    env: str = "env"
    project_folder: str = "."


class ClientProfile(Struct, frozen=True):
    """
    What is known of a client. But for its title and its configuration, all of it gets in the way of prompts.

    Args:
        title:
            Its name for people.

        has_prompts:
            Whether it offers prompts at all.

        most_arguments:
            How many arguments a prompt may have before it is hidden; None if any number.

        lost:
            The kinds of content that do not arrive.

        loses:
            What it does with these: ``leaves out``, ``fails at``, or ``does not show people``.

        sends_first_only:
            Whether messages behind the first one are lost.

        drops_roles:
            Whether turns of the assistant arrive as the user's.

        cuts_at_blanks:
            Whether an argument ends at the first blank, unless it is the last.

        joins_words:
            Whether the first argument gets all the words, and the others none.

        placeholder:
            What it sends for each argument before people have typed any.

        asks_for_all:
            Whether it asks for arguments that have defaults, too.

        own_names:
            Names of arguments that it keeps for itself.

        types_titles:
            Whether the title may be the command that people type.

        configuration:
            How promptkit is put into it; None if people do that.
    """

    title: str
    has_prompts: bool = True
    most_arguments: int | None = None
    lost: tuple[Kind, ...] = ()
    loses: str = "leaves out"
    sends_first_only: bool = False
    drops_roles: bool = False
    cuts_at_blanks: bool = False
    joins_words: bool = False
    placeholder: str | None = None
    asks_for_all: bool = False
    own_names: tuple[str, ...] = ()
    types_titles: bool = False
    configuration: ClientConfiguration | None = None

    @property
    def limitations(self) -> tuple[str, ...]:
        """What gets in the way of prompts, each as it is said of the client: it ``hides prompts``."""
        if not self.has_prompts:
            return ("offers people no prompts: it uses what is served with --tools",)
        most, names = self.most_arguments, ", ".join(map(repr, self.own_names))
        said = {
            f"hides prompts of more than {most} argument{'' if most == 1 else 's'}": most is not None,
            f"{self.loses} {', '.join(f'{kind}s' for kind in self.lost)}": bool(self.lost),
            "sends the first message of a prompt alone": self.sends_first_only,
            "sends turns of the assistant as the user's": self.drops_roles,
            "ends an argument at its first blank, unless it is the last": self.cuts_at_blanks,
            "gives all words to the first argument, and none to the others": self.joins_words,
            f"sends {self.placeholder!r} for each argument when it starts": self.placeholder is not None,
            "asks for arguments that have defaults, too": self.asks_for_all,
            f"keeps arguments for itself that are called {names}": bool(self.own_names),
            "may make the title of a prompt its command": self.types_titles,
        }
        return tuple(text for text, holds in said.items() if holds)


#: By the name that commands take, in the order of the names.
CLIENTS: Final[Mapping[str, ClientProfile]] = MappingProxyType(
    msgspec.toml.decode(get_data(__name__, "profiles.toml") or b"", type=dict[str, ClientProfile])
)

#: How a server is put into the clients that promptkit can be put into.
INSTALLABLE: Final[Mapping[str, ClientConfiguration]] = MappingProxyType(
    {name: client.configuration for name, client in CLIENTS.items() if client.configuration is not None}
)


class UnknownClientError(ValueError):
    """
    Nothing is known of a client of that name.

    Args:
        name:
            The name that was given.

        known:
            The names that there are.
    """

    def __init__(self, name: str, known: Iterable[str]) -> None:
        meant = nearest(name, known)
        hint = f"did you mean {meant!r}?" if meant else f"there are {', '.join(known)}"
        super().__init__(f"there is no client {name!r}: {hint}")


def client_of(name: str, known: Collection[str] | None = None) -> ClientProfile:
    """
    Return what is known of a client.

    Args:
        name:
            The name that commands take.

        known:
            The names that may be meant; all of `CLIENTS` by default.

    Raises:
        UnknownClientError: If it is none of them.
    """
    if name not in (known or CLIENTS):
        raise UnknownClientError(name, known or CLIENTS)
    return CLIENTS[name]
