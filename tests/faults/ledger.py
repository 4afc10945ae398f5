"""The record of sent requests and received replies, and whether they match."""

import json
import re
from collections import Counter, defaultdict
from functools import cache

import jsonschema

from tests.wire import REVISIONS, published_schema

#: The limits of the server: the nesting of a message, and the length of an id in bytes.
DEPTH = 100
MAX_ID = 1024

#: An id that is preceded only by the version and the method.
LEADING_ID = re.compile(
    rb'\s*\{\s*(?:"(?:jsonrpc|method)"\s*:\s*"[^"\\]*"\s*,\s*)*"id"\s*:\s*(-?\d+|"[^"\\\x00-\x1f]*")\s*[,}]'
)

#: A lone surrogate, which UTF-8 cannot encode; the specification does not define whether it is accepted.
LONE_SURROGATE = re.compile(
    rb"\\u[dD][89abAB]..(?!\\u[dD][c-fC-F])|(?<!\\u[dD][89abAB]..)\\u[dD][c-fC-F]", re.DOTALL
)


def _reject_constant(constant):
    msg = f"{constant} is not JSON"
    raise ValueError(msg)


def parse(text):
    """Parse a line as JSON; raise ValueError or RecursionError if it is invalid."""
    return json.loads(str(text, "utf-8"), parse_constant=_reject_constant)


def depth_of(value):
    """Return the nesting depth of *value*."""
    depth, level = 0, [value]
    while level := [
        inner
        for outer in level
        if isinstance(outer, dict | list)
        for inner in [*(outer.values() if isinstance(outer, dict) else outer), None]
    ]:
        depth += 1
    return depth


def id_of(message):
    """Return the id of a message as text; None if no reply could contain this id."""
    number = message.get("id") if isinstance(message, dict) else None
    if isinstance(number, bool) or not isinstance(number, int | str):
        return None
    if len(json.dumps(number, ensure_ascii=False).encode("utf-8", "surrogatepass")) > MAX_ID:
        return None
    return json.dumps(number)


def leading_messages(text):
    """
    Return a list of one message with the id at the beginning of an invalid line; empty without such an id.
    """
    match = LEADING_ID.match(text)
    try:
        return [{"id": json.loads(str(match[1], "utf-8"))}] if match else []
    except ValueError:
        return []  # such as 01


def parts_of_broken_line(message, text):
    """Return the recognizable messages on a line of invalid JSON."""
    if message is None:
        try:
            message = json.loads(str(text, "utf-8", "surrogateescape"), parse_constant=_reject_constant)
        except (ValueError, RecursionError):
            return leading_messages(text)
    return message if isinstance(message, list) else [message]


def is_request(message):
    """Return whether a message is a request with a readable id."""
    return (
        id_of(message) is not None
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
    )


def is_notification(message):
    """Return whether a message is a notification, which gets no reply."""
    return (
        isinstance(message, dict)
        and "id" not in message
        and message.get("jsonrpc") == "2.0"
        and isinstance(message.get("method"), str)
    )


class Ledger:
    """
    The counts of sent requests and received replies by id.

    A request with a readable id gets exactly one reply, or at most one if it was cancelled. Any other message
    with an id gets at most one. A line that only some JSON parsers accept can also cancel a request. A
    response gets no reply.
    """

    def __init__(self):
        self.due = Counter()
        self.possible = Counter()
        self.replies = Counter()
        self.cancelled = set()
        self.waiting = set()
        self.invalid = 0
        self.anonymous = 0
        self.elicitations = []
        self.sent_by_id = defaultdict(list)
        self.requests = 0

    def record_sent(self, text):
        """Record a sent line, and return the parsed message; None if it is invalid."""
        if not text.strip():
            return None
        try:
            message = parse(text)
        except (ValueError, RecursionError):
            message = None
        if message is None or depth_of(message) > DEPTH or LONE_SURROGATE.search(text):
            self.invalid += 1
            for part in parts_of_broken_line(message, text):
                if key := id_of(part):
                    self.possible[key] += 1
                    self.invalid += 1
                self._record_cancelled(part)
            return None
        for part in message if isinstance(message, list) else [message]:
            self._record(part, text)
        self.invalid += message == []
        return message

    def _record(self, message, text):
        key = id_of(message)
        if is_request(message):
            self.requests += 1
            self.due[key] += 1
            self._settle(key)
            self.sent_by_id[key].append(text[:500])
        elif key is not None:
            self.possible[key] += 1
        elif not is_notification(message):
            self.invalid += 1
        self._record_cancelled(message)

    def _record_cancelled(self, message):
        if isinstance(message, dict) and message.get("method") == "notifications/cancelled":
            params = message.get("params")
            if isinstance(params, dict) and (key := id_of({"id": params.get("requestId")})):
                self.cancelled.add(key)
                self.waiting.discard(key)

    def record_received(self, text):
        """Record a received line."""
        message = parse(text)
        for part in message if isinstance(message, list) else [message]:
            if "method" in part:
                self.elicitations += [part] if "id" in part else []
            elif "id" in part:
                key = json.dumps(part["id"])
                self.replies[key] += 1
                self._settle(key)
            else:
                self.anonymous += 1

    def _settle(self, key):
        if self.replies[key] < self.due[key] and key not in self.cancelled:
            self.waiting.add(key)
        else:
            self.waiting.discard(key)

    def errors(self):
        """
        Return each id with a wrong number of replies, with the minimum, the maximum and the actual number,
        and the sent lines.
        """
        errors = {}
        for key in self.due.keys() | self.replies.keys():
            low, received = self.due[key], self.replies[key]
            high = low + self.possible[key]
            low = 0 if key in self.cancelled else low
            if not low <= received <= high:
                errors[key] = (low, high, received, self.sent_by_id[key])
        if self.anonymous > self.invalid:
            errors[None] = (0, self.invalid, self.anonymous, [])
        return errors


@cache
def _validator(revision):
    schema = published_schema(revision)
    container = "$defs" if "$defs" in schema else "definitions"
    kinds = schema[container]["JSONRPCMessage"]["anyOf"]
    return jsonschema.validators.validator_for(schema)({**schema, "anyOf": kinds})


class Schemas:
    """The published schemas, as a validator of lines from the server."""

    def __init__(self):
        self._validators = [_validator(revision) for revision in reversed(REVISIONS)]

    def allow(self, text):
        """Return whether *text* is JSON and a message of a revision, or an array of messages."""
        try:
            message = parse(text)
        except (ValueError, RecursionError):
            return False
        parts = message if isinstance(message, list) and message else [message]
        return all(any(validator.is_valid(part) for validator in self._validators) for part in parts)
