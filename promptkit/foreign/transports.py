"""
Streams of messages from and to a server, with limits.

The client of the official SDK does not limit the size of a reply, and it copies a server's standard error to
its own. Therefore, these streams replace its transports.
"""

import shutil
import sys
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final, TypeAlias

import anyio
import httpx2
import mcp_types
from anyio.abc import Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.client.streamable_http import streamable_http_client
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared._stream_protocols import ReadStream, WriteStream
from mcp.shared.message import SessionMessage
from msgspec import Struct

from promptkit.foreign.address import ServerAddress, ServerError

#: The timeout of a request, in seconds.
MAX_SECONDS: Final = 30.0

#: The maximum size of a message from the server, in bytes.
MAX_REPLY: Final = 16 * 1024 * 1024

#: The number of bytes to store from the end of standard error, and from the start of a line that is not a
#: message.
_MAX_STORED: Final = 2000

#: The time that a server has to exit after its input is closed, and again after SIGTERM, in seconds.
_GRACE_S: Final = 1.0

Streams: TypeAlias = tuple[ReadStream[SessionMessage | Exception], WriteStream[SessionMessage]]


class Observations(Struct):
    """
    The output of a server that is not a message.

    Args:
        errors:
            The end of the output on standard error.

        stray_lines:
            The number of lines on standard output that are not messages.

        stray_line:
            The start of the first such line.

        too_large:
            Whether the connection was closed because a message was too large.
    """

    errors: bytes = b""
    stray_lines: int = 0
    stray_line: str = ""
    too_large: bool = False


@asynccontextmanager
async def stdio_streams(address: ServerAddress, observations: Observations) -> AsyncGenerator[Streams]:
    """
    Start a command, and yield its streams. On exit, terminate its whole process group.

    Args:
        address:
            The command.

        observations:
            The object in which to record output that is not a message.

    Raises:
        ServerError: If the command cannot be started.
    """
    process = await _start(address)
    to_reader, reader = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    writer, from_writer = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_reader:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the session has ended
                async for message in _messages(process, observations):
                    await to_reader.send(message)

    async def write() -> None:
        assert process.stdin is not None  # noqa: S101 (it is a pipe)
        async with from_writer:
            async for item in from_writer:
                data = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
                    await process.stdin.send(data.encode() + b"\n")

    async def store_errors() -> None:
        assert process.stderr is not None  # noqa: S101 (it is a pipe)
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            async for chunk in process.stderr:
                observations.errors = (observations.errors + chunk)[-_MAX_STORED:]

    async with anyio.create_task_group() as tasks:
        for task in (read, write, store_errors):
            tasks.start_soon(task)
        try:
            yield reader, writer
        finally:
            with anyio.CancelScope(shield=True):
                reader.close()
                writer.close()
                await _terminate(process)
            tasks.cancel_scope.cancel()


async def _start(address: ServerAddress) -> Process:
    program, *arguments = address.words
    environment = {**get_default_environment(), **address.variables}
    path = shutil.which(program, path=environment.get("PATH"))
    if path is None:
        raise ServerError(address.label, f"there is no program {program!r} here or on the PATH")
    try:
        return await anyio.open_process([path, *arguments], env=environment, start_new_session=True)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ServerError(address.label, f"it cannot be started: {reason}") from None


async def _messages(process: Process, observations: Observations) -> AsyncIterator[SessionMessage]:
    """Yield the messages on standard output, except for notifications, which are not needed."""
    async for line in _lines(process, observations):
        try:
            message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            if line.strip():
                observations.stray_line = observations.stray_line or line[:_MAX_STORED].decode(
                    errors="replace"
                )
                observations.stray_lines += 1
            continue
        if not isinstance(message, mcp_types.JSONRPCNotification):
            yield SessionMessage(message)


async def _lines(process: Process, observations: Observations) -> AsyncIterator[bytes]:
    """Yield the lines of standard output. Stop at the first line that is too long."""
    assert process.stdout is not None  # noqa: S101 (it is a pipe)
    stream = BufferedByteReceiveStream(process.stdout)
    try:
        while True:
            yield await stream.receive_until(b"\n", MAX_REPLY)
    except anyio.DelimiterNotFound:
        observations.too_large = True
    except (anyio.EndOfStream, anyio.IncompleteRead, anyio.ClosedResourceError, anyio.BrokenResourceError):
        return


async def _terminate(process: Process) -> None:
    """Terminate a process and its group: first close its standard input, then send signals."""
    assert process.stdin is not None  # noqa: S101 (it is a pipe)
    with suppress(OSError, anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.stdin.aclose()
    with anyio.move_on_after(_GRACE_S):
        await process.wait()
    if sys.platform != "win32":  # other processes of the group can outlive the first one
        await terminate_posix_process_tree(process, _GRACE_S)
    elif process.returncode is None:
        process.kill()
    with anyio.move_on_after(_GRACE_S):
        await process.aclose()


@asynccontextmanager
async def http_streams(address: ServerAddress, observations: Observations) -> AsyncGenerator[Streams]:
    """
    Connect to a server over Streamable HTTP, and yield its streams.

    Args:
        address:
            The URL and the headers.

        observations:
            The object in which to record that a reply was too large.
    """

    async def limit_body(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity") != "identity":  # it could expand to any size
            msg = "the reply is compressed, although the request asked for an uncompressed one"
            raise httpx2.DecodingError(msg)
        assert isinstance(response.stream, httpx2.AsyncByteStream)  # noqa: S101 (the client is asynchronous)
        response.stream = _LimitedStream(response.stream, observations)

    headers = {**address.headers, "Accept-Encoding": "identity"}
    async with (
        httpx2.AsyncClient(
            headers=headers, timeout=MAX_SECONDS, event_hooks={"response": [limit_body]}
        ) as http_client,
        streamable_http_client(address.url, http_client=http_client, max_sse_event_size=MAX_REPLY) as streams,
    ):
        yield streams


class _LimitedStream(httpx2.AsyncByteStream):
    """The body of a response. Reading fails once the body exceeds the maximum size of a message."""

    def __init__(self, stream: httpx2.AsyncByteStream, observations: Observations) -> None:
        self._stream = stream
        self._observations = observations

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._stream:
            size += len(chunk)
            if size > MAX_REPLY:
                self._observations.too_large = True
                msg = f"the reply is longer than {MAX_REPLY:,} bytes"
                raise httpx2.ReadError(msg)
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
