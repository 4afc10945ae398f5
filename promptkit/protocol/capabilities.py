"""What a server says of itself: its name and version, and what it can do."""

from typing import Any

from msgspec import Struct

from promptkit.protocol.revisions import Revision

__all__ = ["Capabilities", "ServerInfo"]


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
    """

    resources: bool = False
    changes: bool = False

    def declared(self, revision: Revision) -> dict[str, Any]:
        """
        The capabilities as *revision* spells them.
        """
        declared: dict[str, Any] = {"prompts": {"listChanged": self.changes}}
        if self.resources or revision.empty_lists:
            declared["resources"] = {"subscribe": self.changes, "listChanged": self.changes}
        if revision.empty_lists:
            declared["tools"] = {"listChanged": False}
        if revision.completions:
            declared["completions"] = {}
        return declared
