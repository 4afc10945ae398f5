"""What a server says of itself: its name and version, and what it can do."""

from typing import Any, Literal, TypeAlias

from msgspec import Struct

from promptkit.protocol.revisions import Revision

__all__ = ["Capabilities", "ServerInfo", "ToolMode"]

#: Whether prompts are offered as tools, too: each as one, or all of them behind two that find and get one.
ToolMode: TypeAlias = bool | Literal["search"]


class ServerInfo(Struct, frozen=True):
    """
    The server's name and version.

    Args:
        instructions:
            What a model should know about the server.
    """

    name: str
    version: str
    instructions: str | None = None


class Capabilities(Struct, frozen=True):
    """
    What a server declares that it can do.

    Args:
        resources:
            Whether it has any resources.

        changes:
            Whether its lists and resources may change while it runs, and clients are notified.

        tools:
            Whether it offers prompts as tools.
    """

    resources: bool = False
    changes: bool = False
    tools: ToolMode = False

    def declared(self, revision: Revision) -> dict[str, Any]:
        """
        The capabilities as *revision* spells them.
        """
        declared: dict[str, Any] = {"prompts": {"listChanged": self.changes}}
        if self.resources or revision.empty_lists:
            declared["resources"] = {"subscribe": self.changes, "listChanged": self.changes}
        if self.tools or revision.empty_lists:
            declared["tools"] = {"listChanged": bool(self.tools) and self.changes}
        if revision.completions:
            declared["completions"] = {}
        return declared
