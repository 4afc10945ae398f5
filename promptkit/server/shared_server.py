"""The server for many clients at once, each of which sends single requests."""

from collections.abc import Callable, Iterable

from promptkit.protocol.events import Event, Request
from promptkit.server.exchange import Exchange
from promptkit.server.notifier import Notifier
from promptkit.server.scheduling.in_flight import InFlight
from promptkit.server.scheduling.leader import Leadership
from promptkit.server.server import Server
from promptkit.server.streams import Streams

__all__ = ["SharedServer"]


class SharedServer(Server):
    """
    Answers many clients from a catalog. Each request has a channel, to which its reply goes.

    Several requests may have the same id. No client has a session in which it is asked, or told of changes.
    """

    @property
    def observe(self) -> Callable[[Request, bytes], object] | None:
        """What has to be called with each request that never reaches the server, and its reply."""
        return self._connection.observe

    @property
    def digest(self) -> str:
        """What servers of the same catalog have in common."""
        return self._snapshot.digest

    def handle_from(
        self,
        next_events: Callable[[], Iterable[Event] | None],
        ended: Callable[[], object],
        *,
        owns_process: bool = False,
    ) -> None:
        """
        Answer the requests that *next_events* returns, on threads of the server's own. Returns at once.

        Args:
            next_events:
                Waits for requests; None at the end. It is called by one thread at a time.

            ended:
                Called when there are no more.

            owns_process:
                Whether the process does nothing but serve. Then Python's switch interval is adapted to the
                work, and all threads share their memory.

        Raises:
            RuntimeError: If there can be no more threads.
        """

        def read_on(leadership: Leadership) -> None:
            while (events := next_events()) is not None:
                leadership.failures = 0
                if not self._leader_followers.handle_events(events, leadership):
                    return
                del events  # the next may come late, and each holds all that its client has sent
            ended()

        if owns_process:
            self._own_process()
        self._leader_followers.start(read_on)

    def drop(self, request: Request) -> None:
        """
        Stop the work on a request, and send no reply. Its channel has to say that the client is gone.

        If it is not begun, it never is; if it is handled right now, it stops as soon as that takes long.
        """
        self._in_flight.drop(request)

    def _handle(self, event: Event) -> tuple[Exchange | None, bytes | None]:
        if isinstance(event, Request) and event.unwanted:
            event.discard()
            return None, None
        return super()._handle(event)

    def _make_in_flight(self) -> InFlight:
        return InFlight(self._send, self._wake, many_clients=True)

    def _make_notifier(self) -> Notifier:
        return Streams(self._connection)
