"""Early answers: the handshake and the lists that are kept, while the recipes are still being imported."""

import os
import sys
import time
from collections.abc import Callable
from threading import Event as Flag
from threading import Lock, Thread
from types import FrameType
from typing import Final

from msgspec import UNSET, UnsetType

from promptkit.compiler.loading.targets import place_of
from promptkit.protocol import wire
from promptkit.protocol.capabilities import Capabilities, ServerInfo, ToolMode
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Cancelled, Event, Request
from promptkit.protocol.jsonrpc import (
    InternalError,
    InvalidRequest,
    JsonRpcError,
    RequestId,
    TooManyRequests,
    encode_error,
    encode_result,
)
from promptkit.protocol.limits import Limits
from promptkit.protocol.revisions import Revision
from promptkit.transports.kept_lists import KeptLists

__all__ = ["HOLD_AFTER_END_S", "EarlyServer", "import_progress"]

#: How many requests may wait for the recipes, and how many bytes they may have taken together. A single one
#: is held whatever its size, which has a limit of its own.
_MAX_HELD: Final = 1000
_MAX_HELD_BYTES: Final = 4 * 1024 * 1024

#: When the handshake is answered at the latest, though it is not known yet what the recipes hold.
_GREET_AFTER_S: Final = 3.0

#: How long requests are held at least if the client has closed the input.
HOLD_AFTER_END_S: Final = 5.0

#: How often held requests are checked for their time limits.
_CHECK_EVERY_S: Final = 1.0


class EarlyServer:
    """
    Answers one client until a server takes over that has the recipes.

    Lists that are kept are answered at once. Requests that need a recipe are held until their time limit.
    If no lists are kept, nothing is answered for some seconds, as it is not known what the server can do.

    Args:
        kept:
            The lists that are kept, if there are any.

        limits:
            What a client may send, and for how long a request is held.

        send:
            Called with whole lines, to be sent.

        importing:
            Returns what is being imported, in words.

        changes:
            Whether clients are notified of changes.

        tools:
            Whether prompts are offered as tools.

        greets:
            Whether the handshake may be answered before the recipes are there.

    Attributes:
        ready:
            Set when importing may start: a list was sent, or the client wants something else.

        over:
            Set when it answers no more.
    """

    def __init__(  # noqa: PLR0913 (one for each property of a server)
        self,
        kept: KeptLists | None,
        server_info: ServerInfo,
        limits: Limits,
        send: Callable[[bytes], None],
        *,
        importing: Callable[[], str] = str,
        changes: bool = True,
        tools: ToolMode = False,
        greets: bool = True,
    ) -> None:
        # Lists of resources are answered even if there are none, so that declaring them is harmless.
        capabilities = kept.index.capabilities if kept else Capabilities(True, changes, tools)  # noqa: FBT003
        self.connection = Connection(server_info, capabilities, limits)
        self.ready = Flag()
        self.over = Flag()
        self._kept = kept
        self._limits = limits
        self._send = send
        self._importing = importing
        self._greets = greets
        self._unread: list[bytes] | None = None if kept else []
        self._size = 0
        self._held: dict[RequestId, tuple[Request, float, int]] = {}
        self._began = time.monotonic()
        self._ended_at: float | None = None
        self._lock = Lock()
        self._rest: bytes | None = None

    def read_from(self, read: Callable[[], bytes], done: Callable[[], object]) -> None:
        """
        Answer what *read* returns, on a thread, until `hand_over` is called. Returns at once.

        Args:
            read:
                Returns what has arrived, ``b""`` at the end.

            done:
                Called if nobody needs the recipes any more: the client has closed the input, and no request
                is open.
        """
        self._read = read
        self._reader = Thread(target=self._read_on, args=(done,), name="promptkit-early", daemon=True)
        self._reader.start()

    def watch(self, done: Callable[[], object], grace: float, orphaned: Callable[[], bool]) -> None:
        """
        Refuse requests that were held too long, on a thread, until `hand_over` is called. Returns at once.

        Args:
            done:
                Called if nobody needs the recipes any more: as above, or the parent process is gone.

            grace:
                How long requests are held after the client has closed the input, in seconds. At least five.

            orphaned:
                Returns whether the parent process is gone.
        """
        args = (done, max(grace, HOLD_AFTER_END_S), orphaned)
        Thread(target=self._watch, args=args, name="promptkit-waiting", daemon=True).start()

    def hand_over(self) -> list[Event]:
        """
        Stop answering, and return the events that the server has to handle.
        """
        with self._lock:
            self.over.set()
            events: list[Event] = [request for request, _, _ in self._held.values()]
            for data in self._unread or ():
                events += self.connection.receive_data(data)
            self._held, self._unread = {}, None
            return events

    def held_prompts(self) -> list[str]:
        """
        Return the names of the prompts that requests wait for.
        """
        with self._lock:
            held = [request.params for request, _, _ in self._held.values()]
        return [params.name for params in held if isinstance(params, wire.GetPromptParams)]

    def refuse(self, error: JsonRpcError) -> None:
        """
        Answer all held requests with *error*, as there will be no server.
        """
        with self._lock:
            self.over.set()
            self._unread = None
            self._send(b"".join([self._drop(key, encode_error(key, error)) for key in list(self._held)]))

    def page(self, method: str, revision: Revision, cursor: str | UnsetType = UNSET) -> bytes | None:
        """
        Return the page of a list that is kept; None if it takes the recipes to tell.
        """
        return self._kept.page(method, revision, cursor, self._limits.reply) if self._kept else None

    def read_rest(self) -> bytes:
        """
        Wait for the read that was under way when the server took over, and return what it read.
        """
        self._reader.join()
        if self._rest is not None:
            return self._rest
        return b"" if self._ended_at else self._read()  # else the thread ended by an exception

    def _read_on(self, done: Callable[[], object]) -> None:
        data = b"-"
        while data:
            data = self._read()
            with self._lock:
                if self.over.is_set():
                    self._rest = data
                    return
                self._receive(data)
        self._ended_at = time.monotonic()
        self.ready.set()
        if not self._held and not self._unread:
            done()

    def _receive(self, data: bytes) -> None:
        """Answer what can be answered, and hold the rest."""
        self._size += len(data)
        if self._unread is not None:
            if data or self._unread:
                self._unread.append(data)
            if self._size > _MAX_HELD_BYTES and self._greets:
                self._greet()
            return
        replies, events = [], self.connection.receive_data(data)
        for event in events:
            replies.append(event if isinstance(event, bytes) else self._follow(event))
            self._size = 0  # it counts only until it has become an event
        if line := b"".join(replies):
            self._send(line)
        if not all(isinstance(event, bytes) for event in events):
            self.ready.set()

    def _greet(self) -> None:
        """Answer the handshake without the recipes, and handle what else has arrived."""
        unread, self._unread = self._unread or [], None
        self._size = 0
        for data in unread:
            self._receive(data)

    def _follow(self, event: Event) -> bytes:
        """Return the reply to an event, or ``b""``."""
        if isinstance(event, Cancelled):
            return self._drop(event.request_id, b"")
        if not isinstance(event, Request):
            return b""
        if event.id in self._held:
            refused = InvalidRequest(f"id {event.id!r} is in use by a request that still runs")
            return event.answer(encode_error(event.id, refused))
        cursor = getattr(event.params, "cursor", UNSET)
        if (page := self.page(event.method, event.revision, cursor)) is not None:
            return event.answer(encode_result(event.id, page))
        size = self._size + sum(size for _, _, size in self._held.values())
        if self._held and (len(self._held) >= _MAX_HELD or size > _MAX_HELD_BYTES):
            msg = f"{len(self._held):,} requests wait for the recipes, which are still being imported"
            return event.answer(encode_error(event.id, TooManyRequests(msg)))
        self._held[event.id] = event, time.monotonic() + self._limits.timeout, self._size
        return b""

    def _drop(self, request_id: RequestId, reply: bytes) -> bytes:
        """Stop holding a request; return what to send for *reply*."""
        request, _, _ = self._held.pop(request_id, (None, 0, 0))
        return request.answer(reply) if request is not None else b""

    def _watch(self, done: Callable[[], object], wait: float, orphaned: Callable[[], bool]) -> None:
        # A request is held for one round at least, so that its end is never missed.
        while not self.over.wait(min(_CHECK_EVERY_S, self._limits.timeout)):
            now = time.monotonic()
            with self._lock:
                if self.over.is_set():
                    return
                gone = self._ended_at is not None and now - self._ended_at >= wait
                if (
                    self._unread is not None
                    and (gone or now - self._began >= _GREET_AFTER_S)
                    and self._greets
                ):
                    self._greet()
                self._expire(now, every=gone)
                if orphaned() or gone or (self._ended_at is not None and not (self._held or self._unread)):
                    done()
                    return

    def _expire(self, now: float, *, every: bool) -> None:
        """Refuse the requests that were held too long, or all of them."""
        late = [key for key, (_, deadline, _) in self._held.items() if every or now >= deadline]
        if late:
            seconds = f"{now - self._began:.0f} s"
            error = InternalError(f"the recipes are still being imported after {seconds}{self._importing()}")
            self._send(b"".join(self._drop(key, encode_error(key, error)) for key in late))


def import_progress(target: str) -> str:
    """
    Return which recipes are being imported, and at which lines the imports are, for an error message.

    Args:
        target:
            What the command line names.

    Returns:
        Words to follow others; ``""`` if no recipe is being imported.
    """
    if (place := place_of(target)) is None:
        return ""
    folder, found = os.path.join(place[0], ""), list[str]()
    for innermost in sys._current_frames().values():  # noqa: SLF001 (the only way)
        frame: FrameType | None = innermost
        outermost: FrameType | None = None
        while frame is not None:
            if frame.f_code.co_filename.startswith(folder):
                outermost = frame
            frame = frame.f_back
        if outermost is not None and outermost.f_code.co_name == "<module>":  # else a prompt is called
            file = outermost.f_code.co_filename.removeprefix(folder)
            found.append(f"{file} is at line {outermost.f_lineno}")
    return f": {', '.join(found)}" if found else ""
