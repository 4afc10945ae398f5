"""A connection to a server through the official SDK's client, which supports both eras of the protocol."""

import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import anyio
import httpx2
import mcp_types
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp import Client, MCPError
from mcp.client.extension import advertise
from pydantic import RootModel, ValidationError

from promptkit.foreign.address import ServerAddress, ServerError
from promptkit.foreign.listing import SKILLS, InvalidReplyError, NoReplyError, RequestError
from promptkit.foreign.transports import (
    MAX_REPLY,
    MAX_SECONDS,
    Observations,
    http_streams,
    stdio_streams,
)
from promptkit.fragments.invisible import escape_invisible
from promptkit.version import VERSION


class _AnyResult(RootModel[dict[str, Any]]):
    """The result of a request with any method, with all fields unchanged."""


class Connection:
    """
    A connection to a server, which any thread can use.

    Args:
        client:
            The connected client.

        portal:
            The portal to the client's event loop, which runs in its own thread.

        observations:
            The output of the server that is not a message.
    """

    def __init__(self, client: Client, portal: BlockingPortal, observations: Observations) -> None:
        self._client = client
        self._portal = portal
        self.observations = observations

    @property
    def name(self) -> str:
        """The name and version that the server declares; ``""`` if it declares neither."""
        info = self._client.server_info
        return " ".join(filter(None, (info.name, info.version))) if info else ""

    @property
    def revision(self) -> str:
        """The negotiated protocol revision."""
        return self._client.protocol_version

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The server's capabilities."""
        return self._client.server_capabilities.model_dump(by_alias=True, exclude_none=True)

    @property
    def instructions(self) -> str | None:
        """The server's instructions for models."""
        return self._client.instructions

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return its result. See `Requester.request`."""
        return self._portal.call(self._request, method, dict(params or {}))

    async def _request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        request = mcp_types.Request[dict[str, Any], str](method=method, params=params)
        try:
            result = await self._client.session.send_request(request, _AnyResult)
        except MCPError as error:
            if (reason := _explain_missing_reply(error, method, self.observations)) is not None:
                raise NoReplyError(reason) from None
            raise RequestError(error.error.code, error.error.message) from None
        except ValidationError as error:
            msg = f"sent an invalid reply to {method}: {_first_problem(error)}"
            raise InvalidReplyError(msg) from None
        except (anyio.ClosedResourceError, anyio.BrokenResourceError, httpx2.HTTPError):
            msg = f"ended the connection instead of answering {method}"
            raise NoReplyError(msg) from None
        return result.root


def _explain_missing_reply(error: MCPError, method: str, observations: Observations) -> str | None:
    """Return a phrase that explains why the server sent no reply; None if *error* is its reply."""
    if observations.too_large:
        return f"sent a reply of more than {MAX_REPLY >> 20} MiB"
    if error.error.code == mcp_types.REQUEST_TIMEOUT:
        return f"did not answer {method} within {MAX_SECONDS:g} s"
    if error.error.code == mcp_types.CONNECTION_CLOSED:
        return f"ended the connection instead of answering {method}"
    return None


def _first_problem(error: ValidationError) -> str:
    """Return the location and the message of the first problem, without the value that the server sent."""
    problem = error.errors(include_url=False, include_input=False)[0]
    path = ".".join(map(str, problem["loc"]))
    return f"{path}: {problem['msg']}" if path else problem["msg"]


@contextmanager
def connect(address: ServerAddress) -> Iterator[Connection]:
    """
    Connect to a server. On exit, disconnect, and terminate the processes of a command.

    Raises:
        ServerError: If the server cannot be reached, or does not speak MCP.
    """
    for name in ("mcp", "client", "httpx2"):  # they would log the server's messages to standard error
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    observations = Observations()
    streams = http_streams(address, observations) if address.url else stdio_streams(address, observations)
    client = Client(
        streams,
        read_timeout_seconds=MAX_SECONDS,
        client_info=mcp_types.Implementation(name="promptkit", version=VERSION),
        extensions=[advertise(SKILLS)],
    )
    with start_blocking_portal() as portal:
        entered = portal.wrap_async_context_manager(client)
        try:
            entered.__enter__()
        except Exception as error:  # noqa: BLE001 (the client raises exceptions of many types, in groups)
            raise _connection_error(address, error, observations) from None
        try:
            yield Connection(client, portal, observations)
        finally:
            entered.__exit__(None, None, None)


def _connection_error(
    address: ServerAddress, error: BaseException, observations: Observations
) -> ServerError:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, ServerError):
        return error
    reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, MCPError):
        phrase = _explain_missing_reply(error, "the handshake", observations)
        reason = f"it {phrase or f'replied with the error {error.error.message!r} (code {error.error.code})'}"
    elif isinstance(error, ValidationError):
        reason = f"its reply is invalid: {_first_problem(error)}"
    if observations.stray_line:
        reason += (
            f"; it printed the line {escape_invisible(observations.stray_line.strip(), one_line=True)!r}"
        )
    errors = observations.errors.decode(errors="replace").strip()
    return ServerError(
        address.label, f"{reason}; it wrote to standard error:\n{errors}" if errors else reason
    )
