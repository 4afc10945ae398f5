"""Early answers: a client is greeted, and told what there is, while the recipes are still imported."""

from collections.abc import Callable
from threading import Event as Flag
from threading import Lock, Thread
from typing import TypeAlias

from msgspec import UNSET, UnsetType

from promptkit.compiled.listings import Listings
from promptkit.protocol.connection import Connection
from promptkit.protocol.events import Event, Request
from promptkit.protocol.jsonrpc import ProtocolError, encode_error, encode_result
from promptkit.protocol.limits import Limits
from promptkit.protocol.results import Identity
from promptkit.protocol.revisions import Revision

__all__ = ["EarlyServer", "Question"]


#: A page of a list: by its method, the revision that the client speaks, and its cursor.
Question: TypeAlias = tuple[str, Revision, str | UnsetType]


class EarlyServer:
    """
    Answers one client from a compiled set until a server takes over that has the recipes.

    What needs a recipe is held until then.

    Args:
        listings:
            The compiled set.

        identity:
            What the server says of itself.

        limits:
            How much a client may ask for.

        send:
            Takes whole lines to be sent.

    Attributes:
        connection:
            The client.

        told:
            What it has been told of lists.

        ended:
            Whether it has ended the input.

        wanted:
            Set once there is nothing left to wait for: a list was told, or something else is wanted.
    """

    def __init__(
        self, listings: Listings, identity: Identity, limits: Limits, send: Callable[[bytes], None]
    ) -> None:
        self.connection = Connection(identity, listings.index.capabilities, limits)
        self.told: dict[Question, bytes] = {}
        self.wanted = Flag()
        self.ended = False
        self._listings: Listings | None = listings
        self._longest = limits.reply
        self._send = send
        self._held: list[Event] = []
        self._lock = Lock()
        self._over = False
        self._thread: Thread | None = None
        self._read: Callable[[], bytes] = bytes
        self._rest: bytes | None = None

    def read_from(self, read: Callable[[], bytes], done: Callable[[], object]) -> None:
        """
        Answer what *read* returns, on a thread, until `hand_over` is called. Returns at once.

        Args:
            read:
                Returns what has arrived, ``b""`` at the end.

            done:
                Called if the client has ended the input and waits for nothing: nobody needs the
                recipes any more, however long their import takes.
        """
        self._read = read
        self._thread = Thread(target=self._read_on, args=(done,), name="promptkit-early", daemon=True)
        self._thread.start()

    def hand_over(self) -> list[Event]:
        """
        Answer nothing any more, and return what is to be answered still.
        """
        with self._lock:
            self._over = True
            if self._listings is not None:
                self._listings.close()
            self._listings = None
            return self._held

    def refuse(self, error: ProtocolError) -> None:
        """
        Answer with *error* what was to be answered still: there will be no server.
        """
        requests = [event for event in self.hand_over() if isinstance(event, Request)]
        self._send(b"".join(each.answer(encode_error(each.id, error)) for each in requests))

    def read_rest(self) -> bytes:
        """
        Return what was being read when another server took over, as soon as it arrives.
        """
        if self._thread is not None:
            self._thread.join()
        if self._rest is not None:
            return self._rest
        return b"" if self.ended else self._read()  # a thread may have come to its end otherwise

    def _read_on(self, done: Callable[[], object]) -> None:
        """
        Read and answer, until somebody else does.
        """
        data = b"-"
        while data:
            data = self._read()
            with self._lock:
                if self._over:
                    self._rest = data
                    return
                self._receive(data)
        self.ended = True
        self.wanted.set()
        if not self._held:
            done()

    def _receive(self, data: bytes) -> None:
        """
        Answer what can be answered, and hold the rest.
        """
        replies = []
        for event in self.connection.receive_data(data):
            reply = event if isinstance(event, bytes) else self._answer(event)
            if reply is None:
                self._held.append(event)
            else:
                replies.append(reply)
        if replies:
            self._send(b"".join(replies))
        if self._held or self.told:
            self.wanted.set()

    def _answer(self, event: Event) -> bytes | None:
        """
        Return the line that answers a request for a list; None if it takes the recipes to do so.
        """
        if not isinstance(event, Request) or self._listings is None:
            return None
        cursor = getattr(event.params, "cursor", UNSET)
        page = self._listings.page(event.method, event.revision.date, cursor)
        if page is None or len(page) > self._longest:
            return None
        self.told[event.method, event.revision, cursor] = page
        return event.answer(encode_result(event.id, page))
