"""
The audit: one line of JSON for each request, in a file that several servers may share.

It does not use the standard library's logging, which neither keeps the lines of several processes
whole nor reports what it could not write, and which serving does not load.
"""

import json
import os
import re
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

import attrs

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.files.writing import open_log
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply, encode
from promptkit.protocol.principals import Principal
from promptkit.server.lookup import RequestTarget, target_of
from promptkit.server.observers import OpenRequests
from promptkit.standard_error import say

#: How many characters are kept of each text that a client chooses, and how many arguments.
LONGEST: Final = 64
MOST: Final = 64

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,31}(?=:)")


@attrs.frozen
class _Noted:
    request: Request
    address: str | None
    principal: Principal | None
    catalog: Callable[[], Catalog]
    time: float
    started: float


class Audit:
    """
    Notes requests: who asked for what, from where and when, how large the arguments were, and the outcome.

    A line is in the file before the client gets the reply. It is whole, even if other processes
    append to the file. It holds no value of an argument. The file is not synchronised with the
    disk: a line outlives the process, but not always the machine. If lines cannot be written,
    requests are served all the same, and the next line says how many were lost. A file that was
    moved away is made anew.

    Args:
        file:
            The file to append to. A new one can be read by its owner alone.

    Raises:
        OSError: If it cannot be opened.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file).absolute()
        self._lock = Lock()
        self._open_requests = OpenRequests(self._end)
        self._lost = 0
        self._complained = False
        self._cut = False
        self._descriptor = open_log(self._file)

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], None]:
        """
        Note that *request* has arrived.

        Args:
            request:
                What was asked.

            catalog:
                What it is answered from.

        Returns:
            A function to be called with the reply before that is sent. Only its first call counts.
        """
        # A request that is answered has neither an address nor a principal any more.
        sender = request.address, request.principal
        return self._open_requests.add(_Noted(request, *sender, catalog, time.time(), time.perf_counter()))

    def close(self) -> None:
        """Note the requests that were never answered, and close the file."""
        self._open_requests.end_all()
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1

    def _end(self, begun: _Noted, reply: Reply) -> None:
        record = _record(begun, _outcome(begun.request, reply))
        with self._lock:
            if self._lost:
                record["lost"] = self._lost
            # ASCII only: whatever clients write, there is no other line end, and no control sequence.
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            try:
                self._append(line)
            except OSError as error:
                self._lost += 1
                self._complain(error)
            else:
                self._lost = 0

    def _complain(self, error: OSError) -> None:
        if self._complained:
            return
        self._complained = True
        say(
            f"cannot write to the audit file {str(self._file)!r}: {error.strerror or error}; "
            f"serving continues, and requests are recorded again as soon as the file can be written"
        )

    def _append(self, line: bytes) -> None:
        """Append *line* whole, or nothing of it. Raises OSError in that case."""
        self._reopen_if_moved()
        data = b"\n" + line if self._cut else line
        written = os.write(self._descriptor, data)  # at once: others append before it or after it
        if written < len(data):
            self._take_back(written)
            msg = "only a part of a line could be written"
            raise OSError(msg)
        self._cut = False

    def _reopen_if_moved(self) -> None:
        mine = os.fstat(self._descriptor)
        with suppress(FileNotFoundError):
            there = self._file.stat()
            if (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
                return
        descriptor = open_log(self._file)
        os.close(self._descriptor)
        self._descriptor, self._cut = descriptor, False

    def _take_back(self, written: int) -> None:
        """Remove a part of a line, unless another process has appended since: then a line end follows it."""
        self._cut = True
        with suppress(OSError):
            end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
            status = os.fstat(self._descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size == end:
                os.ftruncate(self._descriptor, end - written)
                self._cut = False


def _record(begun: _Noted, outcome: dict[str, Any]) -> dict[str, Any]:
    request = begun.request
    client = request.client
    moment = datetime.fromtimestamp(begun.time, UTC).isoformat(timespec="milliseconds")
    return {
        "time": moment.replace("+00:00", "Z"),
        "process": os.getpid(),
        **_sender(begun.address, begun.principal),
        "client": {"name": _short(client.name), "version": _short(client.version)} if client else None,
        "id": _short(request.id) if isinstance(request.id, str) else request.id,
        "method": _short(request.method),
        **_asked(target_of(request, begun.catalog())),
        "revision": request.revision.date,
        "duration_ms": round((time.perf_counter() - begun.started) * 1000, 3),
        **outcome,
    }


def _sender(address: str | None, principal: Principal | None) -> dict[str, Any]:
    """From where it comes, and who sends it. The subject is whole: two that begin alike are two."""
    found: dict[str, Any] = {} if address is None else {"address": address}
    if principal is not None:
        found |= {"subject": principal.subject, **({"program": True} if principal.program else {})}
    return found


def _asked(target: RequestTarget | None) -> dict[str, Any]:
    """What a request is about, and how large its arguments are."""
    # A URI holds the values of variables, so its template is noted; if it has none, its scheme and length.
    if target is None:
        return {}
    arguments = {"arguments": _sizes(target)}
    if target.kind == "prompt":
        is_deprecated = isinstance(target.found, CompiledPrompt) and target.found.deprecated is not None
        noted = {"deprecated": True} if is_deprecated else {}
        return {"prompt": _short(target.asked), **noted, **arguments}
    if target.name is not None:
        return {"resource": target.name, **arguments}
    scheme = _SCHEME.match(target.asked)
    return {"resource": None, "scheme": scheme and scheme.group(), "size": len(target.asked), **arguments}


def _sizes(target: RequestTarget) -> dict[str, int | None]:
    """How many characters each argument has, as text or JSON; None for a secret."""
    given = list(target.given.items())[:MOST]
    return {_short(name): None if name in target.secrets else _size(value) for name, value in given}


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(encode(value))


def _outcome(request: Request, reply: Reply) -> dict[str, Any]:
    """What came of it, with the code and the id of an error; a tool says in a result what went wrong."""
    found: dict[str, Any] = {"outcome": reply.outcome}
    if reply.code is not None:
        found["code"] = reply.code
    if reply.outcome in ("error", "failed") and request.error_id is not None:
        found["error_id"] = request.error_id
    return found


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
