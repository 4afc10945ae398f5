"""What a prompt may know about the request that it answers."""

from collections.abc import Mapping
from typing import Any

import attrs


@attrs.frozen
class Context:
    """
    The request that is being answered, for a parameter annotated `Context`.

    Such a parameter is no argument: clients neither see nor send it. A direct call or
    ``.render()`` without one gets an empty `Context`, so that every member has a value; write
    ``context: Context = Context()``, and type checkers know that too.

    Args:
        client_name:
            How the client calls itself, ``""`` if unknown.

        client_version:
            The client's own version, ``""`` if unknown.

        revision:
            The protocol revision of the request, as a date, ``""`` outside of a request.

        request_id:
            The JSON-RPC id of the request, None outside of a request.

        capabilities:
            What the client declared that it can do, as it declared it.

    See Also:
        https://modelcontextprotocol.io/specification/2025-11-25/basic/lifecycle
    """

    client_name: str = ""
    client_version: str = ""
    revision: str = ""
    request_id: int | str | None = None
    capabilities: Mapping[str, Any] = attrs.field(factory=dict)
