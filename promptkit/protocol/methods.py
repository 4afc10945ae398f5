"""The methods that are understood, and when a request for one may come."""

from collections.abc import Mapping
from typing import Final, TypeAlias

from msgspec import UnsetType
from msgspec.json import Decoder

from promptkit.protocol import wire
from promptkit.protocol.revisions import Revision

__all__ = ["METHODS", "Method", "PageKey"]


class Method:
    """
    A method that is understood.

    Args:
        params:
            What its params are.

        handshake:
            Whether sessions that were opened with a handshake have it.

        modern:
            Whether requests that carry their own revision have it.

        opens:
            Whether it may come before the handshake.

        enveloped:
            Whether a request for it may name its own revision.

        served:
            Whether it is answered from what is served, and not by the connection itself.

        static:
            The result, if it is the same always.

    Attributes:
        decode:
            Reads its params.
    """

    def __init__(  # noqa: PLR0913 (a method has that many properties)
        self,
        params: type[wire.Params],
        *,
        handshake: bool = True,
        modern: bool = True,
        opens: bool = False,
        enveloped: bool = True,
        served: bool = True,
        static: bytes | None = None,
    ) -> None:
        self.params = params
        self.handshake = handshake
        self.modern = modern
        self.opens = opens
        self.enveloped = enveloped
        self.served = served
        self.static = static
        self.decode = Decoder(params).decode


#: Every request that is understood, and when it may come. There is no other check.
#:
#: Some clients ask for every kind of list and give up on an error, so each is answered where there
#: is nothing, too: the list of tools always is.
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


#: A page of a list: by its method, the revision that the client speaks, and its cursor.
PageKey: TypeAlias = tuple[str, Revision, str | UnsetType]
