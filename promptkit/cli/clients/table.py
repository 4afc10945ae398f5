"""The clients that prompts can be put into: where their configuration lies, and how an entry looks."""

import os
import shutil
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, TypeAlias

from msgspec import Struct
from platformdirs import user_config_path

from promptkit.errors.exceptions import nearest

__all__ = ["CLIENTS", "Client", "Format", "Part", "Scope", "client_named"]

Scope: TypeAlias = Literal["user", "project"]
Format: TypeAlias = Literal["json", "toml", "yaml"]


class Part(Enum):
    """What stands in an entry in place of these."""

    NAME = "the name of the server"
    PROGRAM = "the program that is started"
    ARGUMENTS = "what the program is told, a list"
    COMMAND = "the program and what it is told, one list"
    URL = "the URL of the server"


_Entry: TypeAlias = Mapping[str, Any]

_STDIO: Final[_Entry] = MappingProxyType({"command": Part.PROGRAM, "args": Part.ARGUMENTS})
_TYPED_STDIO: Final[_Entry] = {"type": "stdio", **_STDIO}
_TYPED_URL: Final[_Entry] = {"type": "http", "url": Part.URL}

#: What goose says of an extension besides how it is reached; the timeout is its own default.
_GOOSE: Final[_Entry] = {"enabled": True, "name": Part.NAME, "description": "Prompts", "timeout": 300}


class Client(Struct, frozen=True):
    """
    A client, and how a server gets into its configuration.

    Args:
        title:
            Its name for people.

        user:
            The files that hold a person's configuration, by preference. The first is taken if none exists.
            What stands in braces is a folder of `_folders`.

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
            What it is called on the path.

        home:
            A folder that is there if the client is; else that of its file.

        also_servers:
            Where the table of servers may be instead; entries go there if it exists.
    """

    title: str
    user: tuple[str, ...]
    servers: tuple[str, ...] = ("mcpServers",)
    stdio: _Entry = _STDIO
    url: _Entry | None = None
    project: tuple[str, ...] = ()
    windows: tuple[str, ...] = ()
    format: Format = "json"
    instead_of_url: str = ""
    programs: tuple[str, ...] = ()
    home: str = ""
    also_servers: tuple[str, ...] = ()

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """What its configuration may hold for."""
        return ("user", "project") if self.project else ("user",)

    def file(self, scope: Scope, project: str) -> Path:
        """
        Return the file that holds its configuration, whether it exists or not.

        Args:
            scope:
                One of `scopes`.

            project:
                The folder of the project.
        """
        user = self.windows if self.windows and sys.platform == "win32" else self.user
        files = [_place(file, project) for file in (user if scope == "user" else self.project)]
        return next((file for file in files if os.path.lexists(file)), files[0])

    @property
    def is_found(self) -> bool:
        """Whether it seems to be installed on this machine."""
        home = _place(self.home, "") if self.home else self.file("user", "").parent
        return home.is_dir() or any(map(shutil.which, self.programs))


#: By the name that commands take.
CLIENTS: Final[Mapping[str, Client]] = MappingProxyType(
    {
        "claude-code": Client(
            "Claude Code",
            ("{claude}/.claude.json",),
            stdio=_TYPED_STDIO,
            url=_TYPED_URL,
            project=("{project}/.mcp.json",),
            programs=("claude",),
            home="{home}/.claude",
        ),
        "claude-desktop": Client(
            "Claude Desktop",
            ("{config}/Claude/claude_desktop_config.json",),
            instead_of_url="add it in Claude Desktop under Settings, Connectors",
        ),
        "codex": Client(
            "Codex",
            ("{codex}/config.toml",),
            ("mcp_servers",),
            format="toml",
            url={"url": Part.URL},
            project=("{project}/.codex/config.toml",),
            programs=("codex",),
        ),
        "cursor": Client(
            "Cursor",
            ("{home}/.cursor/mcp.json",),
            url={"url": Part.URL},
            project=("{project}/.cursor/mcp.json",),
            programs=("cursor",),
        ),
        "gemini-cli": Client(
            "Gemini CLI",
            ("{gemini}/.gemini/settings.json",),
            url={"httpUrl": Part.URL},
            project=("{project}/.gemini/settings.json",),
            programs=("gemini",),
        ),
        "goose": Client(
            "goose",
            ("{xdg}/goose/config.yaml",),
            ("extensions",),
            format="yaml",
            stdio={"type": "stdio", **_GOOSE, "cmd": Part.PROGRAM, "args": Part.ARGUMENTS},
            url={"type": "streamable_http", **_GOOSE, "uri": Part.URL},
            windows=("{config}/Block/goose/config/config.yaml",),
            programs=("goose",),
        ),
        "lm-studio": Client(
            "LM Studio", ("{home}/.lmstudio/mcp.json",), url={"url": Part.URL}, programs=("lms",)
        ),
        "opencode": Client(
            "opencode",
            ("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc"),
            ("mcp",),
            stdio={"type": "local", "command": Part.COMMAND},
            url={"type": "remote", "url": Part.URL},
            project=("{project}/opencode.json", "{project}/opencode.jsonc"),
            programs=("opencode",),
            also_servers=("mcp", "servers"),
        ),
        "vscode": Client(
            "VS Code",
            ("{config}/Code/User/mcp.json",),
            ("servers",),
            stdio=_TYPED_STDIO,
            url=_TYPED_URL,
            project=("{project}/.vscode/mcp.json",),
            programs=("code",),
        ),
        "windsurf": Client(
            "Windsurf",
            ("{home}/.codeium/windsurf/mcp_config.json",),
            url={"serverUrl": Part.URL},
            programs=("windsurf",),
        ),
        "zed": Client(
            "Zed",
            ("{xdg}/zed/settings.json",),
            ("context_servers",),
            url={"url": Part.URL},
            project=("{project}/.zed/settings.json",),
            windows=("{config}/Zed/settings.json",),
            programs=("zed", "zeditor"),
        ),
    }
)


def client_named(name: str) -> Client:
    """
    Return a client.

    Args:
        name:
            The name that commands take.

    Raises:
        ValueError: If there is none of that name.
    """
    if name not in CLIENTS:
        meant = nearest(name, CLIENTS)
        known = f"did you mean {meant!r}?" if meant else f"there are {', '.join(CLIENTS)}"
        msg = f"there is no client {name!r}: {known}"
        raise ValueError(msg)
    return CLIENTS[name]


def _place(file: str, project: str) -> Path:
    return Path(file.format_map(_folders(project)))


def _folders(project: str) -> dict[str, str]:
    """The folders that clients keep their files in. Some can be moved by a variable of the environment."""
    home = str(Path.home())
    return {
        "home": home,
        "config": str(user_config_path(roaming=True)),
        "xdg": os.environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"),  # noqa: PTH118 (text)
        "claude": os.environ.get("CLAUDE_CONFIG_DIR") or home,
        "codex": os.environ.get("CODEX_HOME") or os.path.join(home, ".codex"),  # noqa: PTH118 (text)
        "gemini": os.environ.get("GEMINI_CLI_HOME") or home,
        "project": project,
    }
