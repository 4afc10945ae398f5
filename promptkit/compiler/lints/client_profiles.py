"""What is known of each client that gets in the way of prompts."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from promptkit.errors.exceptions import nearest

if TYPE_CHECKING:  # a configuration that names clients is read by every command: this is imported quickly
    from promptkit.compiler.lints.conversations import Kind

__all__ = ["CLIENTS", "ClientProfile", "UnknownClient", "client_of"]

_MEDIA: Final[tuple["Kind", ...]] = ("image", "recording", "document", "link")


class ClientProfile(Struct, frozen=True):
    """
    What is known of a client that gets in the way of prompts.

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


#: By the name that commands take. Of those with a title alone, nothing is known that gets in the way.
CLIENTS: Final[Mapping[str, ClientProfile]] = MappingProxyType(
    {
        "ai-sdk": ClientProfile("AI SDK", lost=("recording",), loses="fails at"),
        "claude-code": ClientProfile("Claude Code", drops_roles=True, cuts_at_blanks=True, types_titles=True),
        "claude-desktop": ClientProfile("Claude Desktop", lost=("document",), loses="does not show people"),
        "cline": ClientProfile("Cline"),
        "codex": ClientProfile("Codex", has_prompts=False),
        "copilot-cli": ClientProfile("Copilot CLI", has_prompts=False),
        "cursor": ClientProfile("Cursor"),
        "gemini-cli": ClientProfile("Gemini CLI", lost=_MEDIA, sends_first_only=True),
        "goose": ClientProfile("goose"),
        "langchain": ClientProfile("langchain-mcp-adapters", lost=_MEDIA, loses="fails at"),
        "llama-index": ClientProfile("LlamaIndex", lost=("recording", "document", "link"), loses="fails at"),
        "lm-studio": ClientProfile("LM Studio", has_prompts=False),
        "opencode": ClientProfile("opencode", joins_words=True, placeholder="$1"),
        "qwen-code": ClientProfile("Qwen Code", lost=_MEDIA, sends_first_only=True),
        "semantic-kernel": ClientProfile(
            "Semantic Kernel", lost=("link",), loses="fails at", asks_for_all=True, own_names=("service",)
        ),
        "vscode": ClientProfile("VS Code"),
        "windsurf": ClientProfile("Windsurf"),
        "zed": ClientProfile("Zed", most_arguments=1),
    }
)


class UnknownClient(ValueError):
    """
    Nothing is known of a client of that name.

    Args:
        name:
            The name that was given.
    """

    def __init__(self, name: str) -> None:
        meant = nearest(name, CLIENTS)
        known = f"did you mean {meant!r}?" if meant else f"there are {', '.join(CLIENTS)}"
        super().__init__(f"there is no client {name!r}: {known}")


def client_of(name: str) -> ClientProfile:
    """
    Return what is known of a client.

    Raises:
        UnknownClient: If it is none of `CLIENTS`.
    """
    if name not in CLIENTS:
        raise UnknownClient(name)
    return CLIENTS[name]
