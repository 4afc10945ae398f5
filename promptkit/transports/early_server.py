"""The early server: it answers the handshake, and kept lists, before the server itself is imported."""

from collections.abc import Callable
from threading import Event as Flag
from threading import Lock, Thread
from typing import Final

from msgspec import UNSET, UnsetType

from promptkit.protocol import wire
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Event, Request
from promptkit.protocol.jsonrpc import encode_result
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import Revision
from promptkit.transports.kept_lists import KeptLists

__all__ = ["EarlyServer"]

#: After so many bytes, no more is read before the server takes over.
_MOST_BYTES: Final = 4 * 1024 * 1024


class EarlyServer:
    """
    Answers one client until the server takes over. What it cannot answer waits for that.

    Args:
        kept:
            The lists that are kept.

        connection:
            The client. It declares what a server of the lists can do.

        limits:
            How long a reply may be.

        send:
            Called with whole lines, to be sent.

    Attributes:
        ready:
            Set when importing may start: a list was sent, or the client wants something else.
    """

    def __init__(
        self, kept: KeptLists, connection: Connection, limits: Limits, send: Callable[[bytes], None]
    ) -> None:
        self.connection = connection
        self.ready = Flag()
        self._kept = kept
        self._longest = limits.reply
        self._send = send
        self._waiting: list[Event] = []
        self._is_over = False
        self._lock = Lock()
        self._rest: bytes | None = None

    def read_from(self, read: Callable[[], bytes]) -> None:
        """
        Answer what *read* returns, on a thread, until `hand_over` is called. Returns at once.

        Args:
            read:
                Returns what has arrived, ``b""`` at the end.
        """
        self._read = read
        self._reader = Thread(target=self._read_on, name="promptkit-early", daemon=True)
        self._reader.start()

    def hand_over(self) -> list[Event]:
        """
        Stop answering, and return the events that the server has to handle.
        """
        with self._lock:
            self._is_over = True
            return self._waiting

    def expected_prompts(self) -> list[str]:
        """
        Return the names of the prompts that requests wait for.
        """
        with self._lock:
            waiting = [event.params for event in self._waiting if isinstance(event, Request)]
        return [params.name for params in waiting if isinstance(params, wire.GetPromptParams)]

    def page(self, method: str, revision: Revision, cursor: str | UnsetType = UNSET) -> bytes | None:
        """
        Return the page of a list that is kept; None if it takes the recipes to tell.
        """
        page = self._kept.page(method, revision, cursor)
        return page if page is not None and len(page) <= self._longest else None

    def read_rest(self) -> bytes:
        """
        Wait for the read that was under way when the server took over, and return what it read.
        """
        self._reader.join()
        return self._read() if self._rest is None else self._rest

    def _read_on(self) -> None:
        size, data = 0, b"-"
        while data and size <= _MOST_BYTES:
            data = self._read()
            size += len(data)
            with self._lock:
                if self._is_over or not data:
                    self._rest = data
                if self._is_over:
                    return
                self._receive(data)
        self.ready.set()

    def _receive(self, data: bytes) -> None:
        """Answer what can be answered, and keep the rest for the server."""
        replies, events = [], self.connection.receive_data(data)
        for event in events:
            if (reply := self._reply_to(event)) is None:
                self._waiting.append(event)
            else:
                replies.append(reply)
        if line := b"".join(replies):
            self._send(line)
        if not all(isinstance(event, bytes) for event in events):
            self.ready.set()

    def _reply_to(self, event: Event) -> bytes | None:
        """What to send for an event, if that is known."""
        if not isinstance(event, Request):
            return event if isinstance(event, bytes) else None
        page = self.page(event.method, event.revision, getattr(event.params, "cursor", UNSET))
        return None if page is None else event.answer(encode_result(event.id, page))
