"""The clients: what of each gets in the way of prompts, and where and how a server is put into it."""

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from msgspec import Struct

from promptkit.errors.exceptions import nearest

if TYPE_CHECKING:  # a configuration that names clients is read by every command: this is imported quickly
    from promptkit.compiler.lints.conversations import Kind

__all__ = [
    "CLIENTS",
    "INSTALLABLE",
    "ClientConfiguration",
    "ClientProfile",
    "UnknownClient",
    "client_of",
]

_MEDIA: Final[tuple["Kind", ...]] = ("image", "recording", "document", "link")

_Entry: TypeAlias = Mapping[str, Any]

_STDIO: Final[_Entry] = MappingProxyType({"command": "{program}", "args": "{arguments}"})
_TYPED_STDIO: Final[_Entry] = {"type": "stdio", **_STDIO}
_URL: Final[_Entry] = MappingProxyType({"url": "{url}"})
_TYPED_URL: Final[_Entry] = {"type": "http", **_URL}

#: What goose says of an extension besides how it is reached; the timeout is its own default.
_GOOSE: Final[_Entry] = {"enabled": True, "name": "{name}", "description": "Prompts", "timeout": 300}


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
    """

    user: tuple[str, ...]
    servers: tuple[str, ...] = ("mcpServers",)
    stdio: _Entry = _STDIO
    url: _Entry | None = None
    project: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    format: Literal["json", "toml", "yaml"] = "json"
    instead_of_url: str = ""
    programs: tuple[str, ...] = ()
    home: str = ""
    also_servers: tuple[str, ...] = ()


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
    lost: tuple["Kind", ...] = ()
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


#: By the name that commands take. Of those with a title alone, nothing is known that gets in the way.
CLIENTS: Final[Mapping[str, ClientProfile]] = MappingProxyType(
    {
        "ai-sdk": ClientProfile("AI SDK", lost=("recording",), loses="fails at"),
        "claude-code": ClientProfile(
            "Claude Code",
            drops_roles=True,
            cuts_at_blanks=True,
            types_titles=True,
            configuration=ClientConfiguration(
                ("{claude}/.claude.json",),
                stdio=_TYPED_STDIO,
                url=_TYPED_URL,
                project=("{project}/.mcp.json",),
                programs=("claude",),
                home="{home}/.claude",
            ),
        ),
        "claude-desktop": ClientProfile(
            "Claude Desktop",
            lost=("document",),
            loses="does not show people",
            configuration=ClientConfiguration(
                ("{config}/Claude/claude_desktop_config.json",),
                instead_of_url="add it in Claude Desktop under Settings, Connectors",
            ),
        ),
        "cline": ClientProfile("Cline"),
        "codex": ClientProfile(
            "Codex",
            has_prompts=False,
            configuration=ClientConfiguration(
                ("{codex}/config.toml",),
                ("mcp_servers",),
                url=_URL,
                project=("{project}/.codex/config.toml",),
                format="toml",
                programs=("codex",),
            ),
        ),
        "copilot-cli": ClientProfile("Copilot CLI", has_prompts=False),
        "cursor": ClientProfile(
            "Cursor",
            configuration=ClientConfiguration(
                ("{home}/.cursor/mcp.json",),
                url=_URL,
                project=("{project}/.cursor/mcp.json",),
                programs=("cursor",),
            ),
        ),
        "gemini-cli": ClientProfile(
            "Gemini CLI",
            lost=_MEDIA,
            sends_first_only=True,
            configuration=ClientConfiguration(
                ("{gemini}/.gemini/settings.json",),
                url={"httpUrl": "{url}"},
                project=("{project}/.gemini/settings.json",),
                programs=("gemini",),
            ),
        ),
        "goose": ClientProfile(
            "goose",
            configuration=ClientConfiguration(
                ("{xdg}/goose/config.yaml",),
                ("extensions",),
                stdio={"type": "stdio", **_GOOSE, "cmd": "{program}", "args": "{arguments}"},
                url={"type": "streamable_http", **_GOOSE, "uri": "{url}"},
                windows=("{config}/Block/goose/config/config.yaml",),
                format="yaml",
                programs=("goose",),
            ),
        ),
        "langchain": ClientProfile("langchain-mcp-adapters", lost=_MEDIA, loses="fails at"),
        "llama-index": ClientProfile("LlamaIndex", lost=("recording", "document", "link"), loses="fails at"),
        "lm-studio": ClientProfile(
            "LM Studio",
            has_prompts=False,
            configuration=ClientConfiguration(("{home}/.lmstudio/mcp.json",), url=_URL, programs=("lms",)),
        ),
        "opencode": ClientProfile(
            "opencode",
            joins_words=True,
            placeholder="$1",
            configuration=ClientConfiguration(
                ("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc"),
                ("mcp",),
                stdio={"type": "local", "command": "{command}"},
                url={"type": "remote", "url": "{url}"},
                project=("{project}/opencode.json", "{project}/opencode.jsonc"),
                programs=("opencode",),
                also_servers=("mcp", "servers"),
            ),
        ),
        "qwen-code": ClientProfile("Qwen Code", lost=_MEDIA, sends_first_only=True),
        "semantic-kernel": ClientProfile(
            "Semantic Kernel", lost=("link",), loses="fails at", asks_for_all=True, own_names=("service",)
        ),
        "vscode": ClientProfile(
            "VS Code",
            configuration=ClientConfiguration(
                ("{config}/Code/User/mcp.json",),
                ("servers",),
                stdio=_TYPED_STDIO,
                url=_TYPED_URL,
                project=("{project}/.vscode/mcp.json",),
                programs=("code",),
            ),
        ),
        "windsurf": ClientProfile(
            "Windsurf",
            configuration=ClientConfiguration(
                ("{home}/.codeium/windsurf/mcp_config.json",),
                url={"serverUrl": "{url}"},
                programs=("windsurf",),
            ),
        ),
        "zed": ClientProfile(
            "Zed",
            most_arguments=1,
            configuration=ClientConfiguration(
                ("{xdg}/zed/settings.json",),
                ("context_servers",),
                url=_URL,
                project=("{project}/.zed/settings.json",),
                windows=("{config}/Zed/settings.json",),
                programs=("zed", "zeditor"),
            ),
        ),
    }
)


#: How a server is put into the clients that promptkit can be put into.
INSTALLABLE: Final[Mapping[str, ClientConfiguration]] = MappingProxyType(
    {name: client.configuration for name, client in CLIENTS.items() if client.configuration is not None}
)


class UnknownClient(ValueError):
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
        UnknownClient: If it is none of them.
    """
    if name not in (known or CLIENTS):
        raise UnknownClient(name, known or CLIENTS)
    return CLIENTS[name]
