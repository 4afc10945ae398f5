"""
The audit log: one line of JSON per request, in a file that several servers can share.

It does not use the standard library's `logging`, which can interleave the lines of several processes and does
not report lines that could not be written. Nothing else in `serve` imports `logging`.
"""

import json
import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any, Final

from promptkit.catalog.catalog import Catalog
from promptkit.catalog.prompts import CompiledPrompt
from promptkit.files.edits import open_log
from promptkit.protocol.events import Request
from promptkit.protocol.jsonrpc import Reply, encode
from promptkit.protocol.principals import Principal
from promptkit.server.lookup import RequestTarget, find_target
from promptkit.standard_error import say

#: The maximum length of text from clients, in characters, and the maximum number of arguments in a line.
MAX_TEXT: Final = 64
MAX_ARGUMENTS: Final = 64


class Audit:
    """
    A log of requests: their callers, addresses, times, prompts or resources, argument sizes and outcomes.

    Each line is written before the client gets the reply. Lines are never interleaved, even if other
    processes append to the same file. They do not contain argument values. The file is not synced to disk:
    lines survive a crash of the process, but not always a crash of the machine. If a line cannot be written,
    the request is still served, and the next line contains the number of lost lines. If the file is moved
    away, a new one is created.

    Args:
        file:
            The file to append to. If it is created, only its owner can read it.

    Raises:
        OSError: If the file cannot be opened.
    """

    def __init__(self, file: str | Path) -> None:
        self._file = Path(file).absolute()
        self._lock = Lock()
        self._lost = 0
        self._is_failure_reported = False
        self._has_partial_line = False
        self._descriptor = open_log(self._file)

    def begin(self, request: Request, catalog: Callable[[], Catalog]) -> Callable[[Reply], None]:
        """
        Start an entry for *request*. Return a function that takes the reply and appends the entry's line.
        """
        received, started = datetime.now(UTC).isoformat(timespec="milliseconds"), time.perf_counter()
        # The address and the principal are no longer available once the request has been answered.
        sender = _sender_fields(request.address, request.principal)

        def end(reply: Reply) -> None:
            self._write(
                {
                    "time": received.replace("+00:00", "Z"),
                    "process": os.getpid(),
                    **sender,
                    **_request_fields(request, catalog()),
                    "duration_ms": round((time.perf_counter() - started) * 1000, 3),
                    **_outcome_fields(request, reply),
                }
            )

        return end

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            os.close(self._descriptor)
            self._descriptor = -1

    def _write(self, record: dict[str, Any]) -> None:
        with self._lock:
            if self._lost:
                record["lost"] = self._lost
            # ASCII only, so that text from clients cannot contain line endings or control sequences.
            line = json.dumps(record, separators=(",", ":")).encode() + b"\n"
            try:
                self._append(line)
            except OSError as error:
                self._lost += 1
                self._report_failure(error)
            else:
                self._lost = 0

    def _report_failure(self, error: OSError) -> None:
        if self._is_failure_reported:
            return
        self._is_failure_reported = True
        say(
            f"cannot write to the audit file {str(self._file)!r}: {error.strerror or error}; "
            f"serving continues, and requests are recorded again as soon as the file can be written"
        )

    def _append(self, line: bytes) -> None:
        """Append the complete *line*, or raise OSError and remove the part that was written, if possible."""
        self._reopen_if_moved()
        data = b"\n" + line if self._has_partial_line else line
        written = os.write(self._descriptor, data)  # one write, so that lines of other processes stay apart
        if written < len(data):
            self._remove_partial_line(written)
            msg = "only part of the line could be written"
            raise OSError(msg)
        self._has_partial_line = False

    def _reopen_if_moved(self) -> None:
        open_status = os.fstat(self._descriptor)
        with suppress(FileNotFoundError):
            path_status = self._file.stat()
            if (path_status.st_dev, path_status.st_ino) == (open_status.st_dev, open_status.st_ino):
                return
        descriptor = open_log(self._file)
        os.close(self._descriptor)
        self._descriptor, self._has_partial_line = descriptor, False

    def _remove_partial_line(self, written: int) -> None:
        """Remove a partial line, unless another process has appended to the file since."""
        self._has_partial_line = True
        with suppress(OSError):
            end = os.lseek(self._descriptor, 0, os.SEEK_CUR)
            status = os.fstat(self._descriptor)
            if stat.S_ISREG(status.st_mode) and status.st_size == end:
                os.ftruncate(self._descriptor, end - written)
                self._has_partial_line = False


def _request_fields(request: Request, catalog: Catalog) -> dict[str, Any]:
    client = request.client
    return {
        "client": client and {"name": _shorten(client.name), "version": _shorten(client.version or "")},
        "id": _shorten(request.id) if isinstance(request.id, str) else request.id,
        "method": _shorten(request.method),
        **_target_fields(find_target(request, catalog)),
        "revision": request.revision.date,
    }


def _sender_fields(address: str | None, principal: Principal | None) -> dict[str, Any]:
    """Return the fields for the address and the caller. Subjects are not shortened, so they stay distinct."""
    fields: dict[str, Any] = {} if address is None else {"address": address}
    if principal is not None:
        fields |= {"subject": principal.subject, **({"program": True} if principal.program else {})}
    return fields


def _target_fields(target: RequestTarget | None) -> dict[str, Any]:
    """Return the fields for the prompt or resource of a request, and for the sizes of its arguments."""
    # A URI can contain argument values, so log its template, or None if it does not match any template.
    if target is None:
        return {}
    arguments = {"arguments": _argument_sizes(target)}
    if target.kind == "prompt":
        is_deprecated = isinstance(target.item, CompiledPrompt) and target.item.deprecated is not None
        deprecation = {"deprecated": True} if is_deprecated else {}
        unknown = _unknown_argument_fields(target)
        return {"prompt": _shorten(target.identifier), **deprecation, **arguments, **unknown}
    return {"resource": target.name, **arguments}


def _argument_sizes(target: RequestTarget) -> dict[str, int | None]:
    """Return the length of each argument's text or JSON, by name. The length of a secret is None."""
    arguments = list(target.arguments.items())[:MAX_ARGUMENTS]
    return {_shorten(name): None if name in target.secrets else _size(value) for name, value in arguments}


def _unknown_argument_fields(target: RequestTarget) -> dict[str, list[str]]:
    """
    Return the field with the arguments that the prompt does not have. Tool calls ignore most of these.
    """
    known = target.arguments if target.item is None else target.item.arguments.by_name
    unknown = [_shorten(name) for name in target.arguments if name not in known]
    return {"unknown": unknown[:MAX_ARGUMENTS]} if unknown else {}


def _size(value: Any) -> int:
    return len(value) if isinstance(value, str) else len(encode(value))


def _outcome_fields(request: Request, reply: Reply) -> dict[str, Any]:
    """Return the fields for the outcome, and for an error's code and id. A failed tool call has no code."""
    fields: dict[str, Any] = {"outcome": reply.outcome}
    if reply.code is not None:
        fields["code"] = reply.code
    if reply.outcome in ("error", "failed") and request.error_id is not None:
        fields["error_id"] = request.error_id
    return fields


def _shorten(text: str) -> str:
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."
