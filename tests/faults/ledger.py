"""What was sent, what came back, and whether the one fits the other."""

import json
import re
from collections import Counter, defaultdict
from functools import cache

import jsonschema
import pytest

from tests.wire import MODERN, REVISIONS, SCHEMAS

#: What the server takes: how deep a line may be nested, and how long an id may be, in bytes.
DEPTH = 100
MAX_ID = 1024

#: The id of a request that has no member before it but the version and the method.
LEADING_ID = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d+|"[^"\\\x00-\x1f]*")\s*[,}]'
)

#: Half of a character beyond the BMP, which no UTF-8 can hold; whether it is read is not said anywhere.
HALF = re.compile(rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL)


def _refuse(constant):
    msg = f"{constant} is no JSON"
    raise ValueError(msg)


def read(text):
    """Return the JSON on a line. Raises ValueError or RecursionError if there is none."""
    return json.loads(str(text, "utf-8"), parse_constant=_refuse)


def depth_of(value):
    """Return how deep *value* is nested."""
    depth, level = 0, [value]
    while level := [
        inner
        for outer in level
        if isinstance(outer, dict | list)
        for inner in [*(outer.values() if isinstance(outer, dict) else outer), None]
    ]:
        depth += 1
    return depth


def readable(message):
    """Return the id of a message as text; None if no reply could repeat it."""
    found = message.get("id") if isinstance(message, dict) else None
    if isinstance(found, bool) or not isinstance(found, int | str):
        return None
    if len(json.dumps(found, ensure_ascii=False).encode("utf-8", "surrogatepass")) > MAX_ID:
        return None
    return json.dumps(found)


def leading(text):
    """Return a message with the id found at the beginning of a line that is no JSON, if there is one."""
    match = LEADING_ID.match(text)
    try:
        return [{"id": json.loads(str(match[1], "utf-8"))}] if match else []
    except ValueError:
        return []  # such as 01


def broken(message, text):
    """Return the messages on a line of invalid JSON, as far as they can be recognised."""
    if message is None:
        try:
            message = json.loads(str(text, "utf-8", "surrogateescape"), parse_constant=_refuse)
        except (ValueError, RecursionError):
            return leading(text)
    return message if isinstance(message, list) else [message]


def is_request(message):
    """Return whether a message is a request with a readable id."""
    return (
        readable(message) is not None
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
    )


def is_notification(message):
    """Return whether a message is a notification, which nothing answers."""
    return (
        isinstance(message, dict)
        and "id" not in message
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
    )


class Ledger:
    """
    Counts the requests that were sent by id, and the replies that came.

    A request with a readable id gets one reply; one that was cancelled gets one at most, and so
    does what has an id and is no request. A line that not every reader of JSON takes may cancel,
    too. A response gets none.
    """

    def __init__(self):
        self.due = Counter()
        self.possible = Counter()
        self.replies = Counter()
        self.cancelled = set()
        self.waiting = set()
        self.unread = 0
        self.anonymous = 0
        self.asked = []
        self.sent_by_id = defaultdict(list)
        self.requests = 0

    def sent(self, text):
        """Note one line that was sent; return what was read, None if nothing could be."""
        if not text.strip():
            return None
        try:
            message = read(text)
        except (ValueError, RecursionError):
            message = None
        if message is None or depth_of(message) > DEPTH or HALF.search(text):
            self.unread += 1
            for part in broken(message, text):
                if found := readable(part):
                    self.possible[found] += 1
                    self.unread += 1
                self._note_cancelled(part)
            return None
        for part in message if isinstance(message, list) else [message]:
            self._note(part, text)
        self.unread += message == []
        return message

    def _note(self, message, text):
        found = readable(message)
        if is_request(message):
            self.requests += 1
            self.due[found] += 1
            self._settle(found)
            self.sent_by_id[found].append(text[:500])
        elif found is not None:
            self.possible[found] += 1
        elif not is_notification(message):
            self.unread += 1
        self._note_cancelled(message)

    def _note_cancelled(self, message):
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict) and (found := readable({"id": params.get("requestId")})):
                self.cancelled.add(found)
                self.waiting.discard(found)

    def came(self, text):
        """Note one line that came."""
        message = read(text)
        for part in message if isinstance(message, list) else [message]:
            if "method" in part:
                self.asked += [part] if "id" in part else []
            elif "id" in part:
                found = json.dumps(part["id"])
                self.replies[found] += 1
                self._settle(found)
            else:
                self.anonymous += 1

    def _settle(self, found):
        if self.replies[found] < self.due[found] and found not in self.cancelled:
            self.waiting.add(found)
        else:
            self.waiting.discard(found)

    def faults(self):
        """Return every id with too few replies or too many, with both figures and what was sent."""
        wrong = {}
        for found in self.due.keys() | self.replies.keys():
            low, came = self.due[found], self.replies[found]
            high = low + self.possible[found]
            low = 0 if found in self.cancelled else low
            if not low <= came <= high:
                wrong[found] = (low, high, came, self.sent_by_id[found])
        if self.anonymous > self.unread:
            wrong[None] = (0, self.unread, self.anonymous, [])
        return wrong


@cache
def _validator(revision):
    schema = json.loads((SCHEMAS / f"{revision}.json").read_text(encoding="utf-8"))
    container = "$defs" if "$defs" in schema else "definitions"
    kinds = schema[container]["JSONRPCMessage"]["anyOf"]
    return jsonschema.validators.validator_for(schema)({**schema, "anyOf": kinds})


class Schemas:
    """The published schemas: is a line one that a server may send?"""

    def __init__(self):
        if not (SCHEMAS / f"{MODERN}.json").is_file():
            pytest.skip("the published schemas are not here")
        self._validators = [_validator(revision) for revision in reversed(REVISIONS)]

    def allow(self, text):
        """Return whether *text* is JSON and a message of a revision, or an array of them."""
        try:
            message = read(text)
        except (ValueError, RecursionError):
            return False
        parts = message if isinstance(message, list) and message else [message]
        return all(any(one.is_valid(part) for one in self._validators) for part in parts)
