"""A connection to a server in the same process: requests as JSON, and what the server asks meanwhile."""

from collections.abc import Iterator, Mapping
from itertools import count
from queue import SimpleQueue
from threading import Lock
from typing import Any, Literal, Self
from weakref import finalize

import msgspec

from promptkit.catalog.catalog import Catalog
from promptkit.errors.suggestions import nearest
from promptkit.protocol import wire
from promptkit.protocol.revisions import REVISIONS
from promptkit.server import Server
from promptkit.testing.received import ProtocolError
from promptkit.version import VERSION


class ServerConnection:
    """
    What a client of one revision sends, and what it is sent, through every byte of the protocol.

    Args:
        catalog:
            What is served.

        revision:
            The revision of the protocol, by its date; the newest if None.

        answers:
            What the person at the client enters, by name; None for a client that shows no forms.

        name:
            How the client calls itself.

        tools:
            Whether the server offers prompts as tools.

        scopes:
            What the client may do.

    Raises:
        ValueError: If there is no such revision.
    """

    def __init__(  # noqa: PLR0913 (they are independent)
        self,
        catalog: Catalog,
        *,
        revision: str | None,
        answers: Mapping[str, Any] | None,
        name: str,
        tools: bool | Literal["search"],
        scopes: frozenset[str],
    ) -> None:
        self._revision = _revision(revision)
        self._answers = answers
        self._info = {"name": name, "version": VERSION}
        self._capabilities: dict[str, Any] = {} if answers is None else {"elicitation": {}}
        self._arrived: SimpleQueue[bytes] = SimpleQueue()
        self._sent: SimpleQueue[bytes] = SimpleQueue()
        self._server = Server(catalog, self._arrived.put, tools=tools, scopes=scopes)
        self._server.read_from(self._sent.get, bool)
        self._ids = count(1)
        self._lock = Lock()
        self._finalize = finalize(self, _close, self._server, self._sent)
        if not REVISIONS[self._revision].stateless:
            client = {"capabilities": self._capabilities, "clientInfo": self._info}
            self._exchange("initialize", {"protocolVersion": self._revision, **client})
            self._send({"method": "notifications/initialized"})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """
        End what runs for it. Later requests raise RuntimeError; to close it again does nothing.
        """
        self._finalize()

    def request(self, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """
        Return the result of any request, as it was received.

        Args:
            method:
                The method, as in ``"prompts/get"``.

            params:
                Its params. What the revision wants said in every request is added.

        Raises:
            ProtocolError: If the request is answered with an error.
        """
        params = dict(params or {})
        result = self._exchange(method, params)
        while result.get("resultType") == "input_required":  # ask the person, and come back
            responses = {key: self._answer(asked["params"]) for key, asked in result["inputRequests"].items()}
            answered = {"inputResponses": responses, "requestState": result["requestState"]}
            result = self._exchange(method, {**params, **answered})
        return result

    def _exchange(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Send one request, answer what the server asks meanwhile, and return the result."""
        if REVISIONS[self._revision].stateless:
            params = {**params, "_meta": {**self._meta(), **params.get("_meta", {})}}
        with self._lock:
            number = next(self._ids)
            self._send({"id": number, "method": method, "params": params})
            for message in self._messages():
                if message.get("method") == "elicitation/create":  # what it tells is left alone
                    self._send({"id": message["id"], "result": self._answer(message["params"])})
                elif message.get("id") == number:
                    break
        if "error" in message:
            raise ProtocolError(**message["error"])
        result: dict[str, Any] = message["result"]
        return result

    def _meta(self) -> dict[str, Any]:
        """Return what a client without a session says in every request."""
        return {
            wire.PROTOCOL_VERSION: self._revision,
            wire.CLIENT_INFO: self._info,
            wire.CLIENT_CAPABILITIES: self._capabilities,
        }

    def _messages(self) -> Iterator[dict[str, Any]]:
        while True:
            yield from map(msgspec.json.decode, self._arrived.get().splitlines())

    def _answer(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the person does with a form."""
        answers = self._answers or {}
        entered = {key: answers[key] for key in asked["requestedSchema"]["properties"] if key in answers}
        return {"action": "accept", "content": entered} if entered else {"action": "decline"}

    def _send(self, message: Mapping[str, Any]) -> None:
        if not self._finalize.alive:
            msg = "the client is closed: make another one"
            raise RuntimeError(msg)
        self._sent.put(msgspec.json.encode({"jsonrpc": "2.0", **message}) + b"\n")


def _close(server: Server, sent: SimpleQueue[bytes]) -> None:
    sent.put(b"")
    server.close(0.0)


def _revision(date: str | None) -> str:
    """Return the date of a revision. Raises ValueError if there is none of that date."""
    if date is None:
        return list(REVISIONS)[-1]
    if date not in REVISIONS:
        near = nearest(date, REVISIONS)
        hint = f"; did you mean {near!r}?" if near else ""
        msg = f"there is no revision {date!r} of the protocol, only {', '.join(REVISIONS)}{hint}"
        raise ValueError(msg)
    return date
