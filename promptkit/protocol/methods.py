"""The methods that are understood, and when a request for one may come."""

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
from msgspec import Struct, structs

from promptkit.protocol import wire

__all__ = ["METHODS", "STATIC_RESULTS", "Method"]


class Method(Struct, frozen=True):
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

        resources:
            Whether a modern client may only call it where resources are declared.

        decode:
            Reads its params, which *params* decides.
    """

    params: type[wire.Params]
    handshake: bool = True
    modern: bool = True
    opens: bool = False
    enveloped: bool = True
    resources: bool = False
    decode: Callable[[msgspec.Raw], wire.Params] = msgspec.json.Decoder(wire.Params).decode

    def __post_init__(self) -> None:
        structs.force_setattr(self, "decode", msgspec.json.Decoder(self.params).decode)


#: Every request that is understood, and when it may come. There is no other check.
METHODS: Final[Mapping[str, Method]] = {
    "initialize": Method(wire.InitializeParams, modern=False, opens=True, enveloped=False),
    "ping": Method(wire.Params, modern=False, opens=True),
    "server/discover": Method(wire.Params, handshake=False),
    "prompts/list": Method(wire.PageParams),
    "prompts/get": Method(wire.GetPromptParams),
    "completion/complete": Method(wire.CompleteParams),
    "resources/list": Method(wire.PageParams, resources=True),
    "resources/templates/list": Method(wire.PageParams, resources=True),
    "resources/read": Method(wire.ResourceParams, resources=True),
    "resources/subscribe": Method(wire.ResourceParams, modern=False),
    "resources/unsubscribe": Method(wire.ResourceParams, modern=False),
    "subscriptions/listen": Method(wire.ListenParams, handshake=False),
    "tools/list": Method(wire.PageParams, modern=False),
}

#: What is answered the same always. Some clients ask for every kind of list and give up on
#: an error, so the list of tools is answered though there are none.
STATIC_RESULTS: Final[Mapping[str, bytes]] = {
    "ping": b"{}",
    "tools/list": b'{"tools":[]}',
}
