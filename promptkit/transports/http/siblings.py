"""Messages between the workers of one supervisor: a client's next request can reach another worker."""

import socket
from collections.abc import Callable

from promptkit.server.threads import DaemonThread
from promptkit.standard_error import say

#: The requested size of a socket's buffer, which also limits the size of a message, in bytes.
_BUFFER_BYTES = 1 << 20


class Siblings:
    """
    Workers that send messages to each other, over sockets that they inherit.

    Create it before the workers are forked.

    Args:
        count:
            The number of workers.
    """

    def __init__(self, count: int) -> None:
        self._pairs = [socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM) for _ in range(count)]
        for _, sending in self._pairs:
            sending.settimeout(0)  # a worker that is stuck must not block the others
            sending.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER_BYTES)

    def __len__(self) -> int:
        return len(self._pairs)

    def send(self, number: int, message: bytes) -> None:
        """Send a message to the worker *number*. If that is not possible, report it."""
        _, sending = self._pairs[number]
        try:
            sending.send(message)
        except OSError as error:
            size = f"{len(message):,} bytes"
            say(f"a message of {size} could not be passed on to worker {number + 1}: {error.strerror}")

    def receive(self, own: int, handle: Callable[[bytes], object]) -> None:
        """
        Start a thread that calls *handle* with each message to the worker *own*.

        Raises:
            RuntimeError: If no more threads can be started.
        """
        receiving, _ = self._pairs[own]

        def run() -> None:
            while message := receiving.recv(_BUFFER_BYTES):
                try:
                    handle(message)
                except Exception as error:  # noqa: BLE001 (later messages must arrive)
                    say(f"a message of {len(message):,} bytes from another worker was dropped: {error!r}")

        DaemonThread(run, "siblings").start()

    def close(self) -> None:
        """Close the sockets, and end the threads of this process."""
        for receiving, sending in self._pairs:
            receiving.shutdown(socket.SHUT_RDWR)
            sending.close()
            receiving.close()
