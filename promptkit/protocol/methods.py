"""The methods that clients may call, and when."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final, TypeAlias

from msgspec import Raw, Struct, UnsetType
from msgspec.json import Decoder

from promptkit.protocol import wire
from promptkit.protocol.jsonrpc import MethodNotFound
from promptkit.protocol.revisions import Revision

__all__ = ["METHODS", "TOOL_METHODS", "Method", "PageKey", "method_not_found"]


class Method(Struct, frozen=True, dict=True):
    """
    What is known of a method.

    Args:
        params:
            What its params are.

        handshake:
            Whether sessions opened with a handshake have it.

        modern:
            Whether requests that name their own revision have it.

        opens:
            Whether it may come before the handshake.

        enveloped:
            Whether a request for it may name its own revision.

        served:
            Whether the server answers it, and not the connection itself.

        static:
            The result, if it is always the same.
    """

    params: type[wire.Params]
    handshake: bool = True
    modern: bool = True
    opens: bool = False
    enveloped: bool = True
    served: bool = True
    static: bytes | None = None

    @cached_property
    def decode(self) -> Callable[[bytes | Raw], wire.Params]:
        """
        Decodes its params; made when a client first calls it.
        """
        return Decoder(self.params).decode


#: Every method that there always is. Nothing else checks when one may be called.
#:
#: Some clients ask for every kind of list and give up on an error, so empty lists are answered, too.
METHODS: Final[Mapping[str, Method]] = {
    "initialize": Method(wire.InitializeParams, modern=False, opens=True, enveloped=False, served=False),
    "ping": Method(wire.Params, modern=False, opens=True, served=False, static=b"{}"),
    "server/discover": Method(wire.Params, handshake=False, served=False),
    "prompts/list": Method(wire.PageParams),
    "prompts/get": Method(wire.GetPromptParams),
    "completion/complete": Method(wire.CompleteParams),
    "resources/list": Method(wire.PageParams),
    "resources/templates/list": Method(wire.PageParams),
    "resources/read": Method(wire.ResourceParams),
    "resources/subscribe": Method(wire.ResourceParams, modern=False),
    "resources/unsubscribe": Method(wire.ResourceParams, modern=False),
    "subscriptions/listen": Method(wire.ListenParams, handshake=False),
    "tools/list": Method(wire.PageParams),
}

#: The methods that there are if prompts are offered as tools. A call has the params of a prompt.
TOOL_METHODS: Final[Mapping[str, Method]] = {"tools/call": METHODS["prompts/get"]}


def method_not_found(method: str) -> MethodNotFound:
    """
    Return the error for a method that does not exist, or not for this client.
    """
    return MethodNotFound(f"method not found: {method}", method)


#: What identifies a page of a list: its method, the client's revision, and its cursor.
PageKey: TypeAlias = tuple[str, Revision, str | UnsetType]
