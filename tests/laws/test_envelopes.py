"""Whole conversations: laws for every message that a server sends."""

import json
import re
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from functools import cache
from inspect import Parameter, Signature
from itertools import count
from pathlib import Path
from typing import Annotated, Literal
from uuid import UUID

import jsonschema
import pytest
from msgspec import Meta

from promptkit import Arg, Context, Icon, PromptError, Text, prompt, resource, skill, user
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol.capabilities import METHODS
from promptkit.protocol.jsonrpc import JsonRpcError
from tests.requirements.requirement import SINCE_2025_06, SINCE_2025_11
from tests.wire import (
    HANDSHAKES,
    MODERN,
    REVISIONS,
    Client,
    envelope,
    initialize,
    line,
    notification,
    published_schema,
    request,
)

SERVER = "io.modelcontextprotocol/serverInfo"
STREAM = "io.modelcontextprotocol/subscriptionId"
LEVEL = "io.modelcontextprotocol/logLevel"
LONG = "x\ny" * 5000
EAST = timezone(timedelta(hours=5, minutes=30))


@prompt(
    tags=["x"], version="2", meta={"com.example.shelf/owner": "me"}, icons=[Icon("data:,", sizes="48x48")]
)
def greet(name: str, times: int = 1):
    return user(Text(f"Hello, {name}!" * times, last_modified=datetime(2026, 1, 31, 12, tzinfo=EAST)))


@prompt
def steps(context: Context):
    context.report_progress(1, 2, "reading")
    return f"{context.client_name} {dict(context.capabilities)} {context.revision}"


@prompt
def broken():
    raise RuntimeError("password123")


@prompt
def strict():
    raise PromptError("run the service first")


@prompt(elicit=True)
def review(diff: str, depth: int, tone: Literal["calm", "brisk"] = "calm"):
    return f"{diff} {depth + 1} {tone}"


@resource("notes://a")
def note():
    return "one"


@resource("notes://all/{name}")
def named(name: Annotated[str, Arg(complete=["ann", "bob"])]):
    return name


@resource("notes://a", name="note")
def other_note():
    return "two"


@skill(name="tidy", description="Tidy a folder.")
def tidy():
    return "Tidy it."


PROMPTS = (greet, steps, broken, strict, review)
CATALOG = compile(Recipes(prompts=PROMPTS, resources=(note, named), skills=(tidy,)))
OTHER = compile(Recipes(prompts=(greet,), resources=(other_note,)))

REF = {"type": "ref/prompt", "name": "review"}
ALL_CHANGES = {
    "promptsListChanged": True,
    "resourcesListChanged": True,
    "resourceSubscriptions": ["notes://a"],
}

#: Requests that succeed, with at least one for each method.
SERVED = [
    ("ping", {}),
    ("server/discover", {}),
    ("prompts/list", {}),
    ("prompts/get", {"name": "greet", "arguments": {"name": "Ada"}}),
    ("prompts/get", {"name": "review", "arguments": {"diff": "x", "depth": "1"}}),
    ("completion/complete", {"ref": REF, "argument": {"name": "tone", "value": "b"}}),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "notes://a"}),
    ("resources/subscribe", {"uri": "notes://b"}),
    ("resources/unsubscribe", {"uri": "notes://b"}),
    ("tools/list", {}),
    ("skills/list", {}),
    ("skills/get", {"uri": "skill://tidy/SKILL.md"}),
    ("resources/directory/read", {"uri": "skill://tidy"}),
]

#: Requests that are rejected.
REJECTED = [
    ("prompts/get", {"name": LONG}),
    ("prompts/get", {"name": 3}),
    ("prompts/get", {"name": "greet", "arguments": {"times": LONG, LONG: "x"}}),
    ("prompts/get", {"name": "greet", "arguments": {f"a{i}": "x" for i in range(99)}}),
    ("prompts/get", {"name": "broken"}),
    ("prompts/get", {"name": "strict"}),
    ("prompts/list", {"cursor": LONG}),
    ("resources/read", {"uri": f"notes://{LONG}"}),
    ("completion/complete", {"ref": REF, "argument": {"name": LONG, "value": ""}}),
    (LONG, {}),
]

#: Lines that are not valid requests.
INVALID_LINES = [b"{", b"3", b'{"jsonrpc":"2.0","id":null,"method":"ping"}', b'{"id":9,"method":"ping"}']


class Conversation:
    """A client that tries everything, and all messages that it receives."""

    def __init__(self, revision, meta):
        capabilities = {"elicitation": {}, "roots": {}, "sampling": {}}
        self.client = Client(CATALOG, revision, capabilities=capabilities, changes=True)
        self.messages, self.methods, self.numbers, self.meta = [], {}, count(100), meta
        self.send_requests()
        for text in INVALID_LINES:
            self.messages += self.client.send(text + b"\n")
        self.send_elicitations()
        self.send_subscriptions()

    def post(self, method, params, **meta):
        """Send one request, and record the replies."""
        number = next(self.numbers)
        self.methods[number] = method
        replies = self.client.post(method, params, number, **self.meta, **meta)
        self.messages += replies
        return replies

    def send_requests(self):
        """Send every valid and invalid request."""
        for method, params in SERVED:
            known = METHODS[method]
            if known.modern if self.client.revision == MODERN else known.handshake:
                self.post(method, params)
        if self.client.revision != MODERN:
            self.post(
                "initialize",
                initialize(self.client.revision)["params"] | {"capabilities": self.client.capabilities},
            )
            self.client.send(line(notification("notifications/initialized")))
        for method, params in REJECTED:
            self.post(method, params)
        self.post("prompts/get", {"name": "steps"}, progressToken="p")

    def send_elicitations(self):
        """Cause two elicitations, and answer the first."""
        params = {"name": "review", "arguments": {"diff": "x"}}
        (first,), (second,) = self.post("prompts/get", params), self.post("prompts/get", params)
        answer = {"action": "accept", "content": {"depth": 1}}
        if first.get("method"):
            self.messages += self.client.answer(first["id"], answer)
            self.post("prompts/get", params)
        elif "result" in first:
            retry = {**params, "requestState": first["result"]["requestState"]}
            self.post("prompts/get", {**retry, "inputResponses": {"arguments": answer}})
            self.post("prompts/get", retry, capabilities={})
            self.send_unsupported_revision()
        assert second.keys() == first.keys()

    def send_unsupported_revision(self):
        """Send a request with an unsupported revision."""
        meta = envelope() | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
        self.messages += self.client.send(line(request(next(self.numbers), "prompts/list", {"_meta": meta})))

    def send_subscriptions(self):
        """Subscribe to changes, until the server closes."""
        if self.client.revision == MODERN:
            self.post("subscriptions/listen", {"notifications": ALL_CHANGES})
        else:
            self.post("resources/subscribe", {"uri": "notes://a"})
        for cause_change in (lambda: self.client.server.replace(OTHER), lambda: self.client.server.close(0)):
            self.client.sent.clear()
            cause_change()
            self.messages += self.client.replies()


@cache
def conversation(revision, **meta):
    """Return the conversation at a revision, with *meta* in the metadata of each request."""
    return Conversation(revision, meta)


def messages(revision):
    """Return all messages that a server sends to a client that tries everything."""
    return conversation(revision).messages


def errors(revision):
    return [message["error"] for message in messages(revision) if "error" in message]


def results(revision):
    return [message["result"] for message in messages(revision) if "result" in message]


def notifications(revision):
    return [
        message for message in messages(revision) if message.get("method", "").startswith("notifications/")
    ]


def find_by_key(value, key):
    """Yield each value under *key*, at any depth."""
    if isinstance(value, dict):
        yield from ([value[key]] if key in value else [])
        for inner in value.values():
            yield from find_by_key(inner, key)
    elif isinstance(value, list):
        for inner in value:
            yield from find_by_key(inner, key)


class TestMessages:
    @pytest.mark.requirement(
        "base/json-rpc", "base/response/result-or-error", "base/response/not-both", "base/batch/sent"
    )
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_every_message_is_a_request_a_reply_or_a_notification(self, revision):
        """Each message is one JSON-RPC 2.0 object with exactly the fields of its kind, never an array."""
        kinds = {tuple(sorted(message)) for message in messages(revision)}

        replies = {("id", "jsonrpc", "result"), ("error", "id", "jsonrpc"), ("error", "jsonrpc")}
        requests = {("id", "jsonrpc", "method", "params")} if revision in HANDSHAKES[2:] else set()
        assert kinds == replies | {("jsonrpc", "method", "params")} | requests
        assert {message["jsonrpc"] for message in messages(revision)} == {"2.0"}

    @pytest.mark.requirement("base/notification/no-id")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_notifications_have_no_id(self, revision):
        """Notifications have no id."""
        sent = notifications(revision)

        expected = {"progress", "prompts/list_changed", "resources/list_changed", "resources/updated"}
        expected |= {"subscriptions/acknowledged"} if revision == MODERN else set()
        expected |= {"cancelled"} if revision not in HANDSHAKES[:2] else set()
        assert {message["method"].removeprefix("notifications/") for message in sent} == expected
        assert [message for message in sent if "id" in message] == []

    @pytest.mark.requirement("base/request/own-id", "base/request/own-id-null", "base/request/own-id-reused")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_requests_of_the_server_have_unique_ids(self, revision):
        """Each request of the server has a unique string id."""
        ids = [message["id"] for message in messages(revision) if "id" in message and "method" in message]

        assert len(ids) == (3 if revision in HANDSHAKES[2:] else 0)
        assert {type(number) for number in ids} <= {str}
        assert len(set(ids)) == len(ids)

    @pytest.mark.requirement("ping/not-excessive")
    @pytest.mark.parametrize("revision", HANDSHAKES)
    def test_client_is_not_pinged(self, revision):
        """A server sends its client elicitations, but no pings."""
        methods = {
            message["method"] for message in messages(revision) if "id" in message and "method" in message
        }

        assert methods == ({"elicitation/create"} if revision in HANDSHAKES[2:] else set())

    @pytest.mark.requirement("stdio/no-requests", "stdio/known-kinds")
    def test_messages_to_a_modern_client(self):
        """
        A modern client gets only replies, and notifications that belong to its pending requests and streams.
        """
        recorded = conversation(MODERN)
        (stream,) = [
            number for number, method in recorded.methods.items() if method == "subscriptions/listen"
        ]
        sent = [message for message in messages(MODERN) if "method" in message]

        params_sent = [message["params"] for message in sent]
        assert [message for message in sent if "id" in message] == []
        assert {
            params.get("progressToken") or params.get("requestId") or params["_meta"][STREAM]
            for params in params_sent
        } == {"p", stream}

    @pytest.mark.requirement("stdio/known-kinds")
    def test_modern_client_that_does_not_listen(self):
        """A modern client that does not listen gets no notifications."""
        client = Client(CATALOG, MODERN, changes=True)
        client.ask("prompts/list")
        client.ask("resources/read", {"uri": "notes://a"})
        client.sent.clear()
        client.server.replace(OTHER)
        client.server.close(0)

        assert client.replies() == []

    @pytest.mark.requirement("base/auth/none")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_no_credentials_are_required(self, revision):
        """Each method of the revision is served to a client without credentials."""
        recorded = conversation(revision)
        answered = {recorded.methods[message["id"]] for message in recorded.messages if "result" in message}

        assert answered == {
            name
            for name, method in METHODS.items()
            if name != "tools/call" and (method.modern if revision == MODERN else method.handshake)
        }


class TestErrors:
    @pytest.mark.requirement("base/error/members", "base/error/integer-code", "base/error/short-message")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_every_error_has_a_code_and_a_short_message(self, revision):
        """Each error has an integer code, and a message of one line and limited length, for any input."""
        received = errors(revision)

        assert len(received) >= len(REJECTED) + len(INVALID_LINES)
        assert {type(error["code"]) for error in received} == {int}
        assert {len(error["message"].splitlines()) for error in received} == {1}
        assert max(len(error["message"]) for error in received) <= 500

    @pytest.mark.requirement(
        "base/error/undefined-codes",
        "base/error/old-range",
        "base/error/retired-codes",
        "base/error/own-codes",
    )
    def test_codes_of_the_modern_era(self):
        """
        In the modern era, errors have the codes of JSON-RPC and two codes that the specification defines.
        """
        assert {error["code"] for error in errors(MODERN)} == {
            *(-32700, -32600, -32601, -32602, -32603),
            *(-32021, -32022),
        }

    @pytest.mark.requirement("base/error/own-codes")
    def test_only_defined_codes_are_used(self):
        """In the range that JSON-RPC reserves, only the codes of JSON-RPC and of MCP are used."""
        codes = {kind.code for kind in JsonRpcError.__subclasses__()}
        reserved = {code for code in codes if -32768 <= code <= -32000}

        assert reserved == {-32700, -32600, -32601, -32602, -32603, -32002, -32020, -32021, -32022}

    @pytest.mark.requirement("base/error/defined-meaning", "base/meta/missing-capability")
    def test_data_of_errors(self):
        """
        The data of one error lists the missing capabilities, and the data of another one the supported
        revisions.
        """
        data = {error["code"]: error["data"] for error in errors(MODERN) if error["code"] in (-32021, -32022)}

        assert [error["code"] for error in errors(MODERN)].count(-32021) == 1
        assert data == {
            -32021: {"requiredCapabilities": {"elicitation": {"form": {}}}},
            -32022: {"supported": [MODERN], "requested": "2099-01-01"},
        }


class TestResults:
    @pytest.mark.requirement("base/result/type", "base/result/known-type")
    def test_every_result_has_a_type(self):
        """
        In the modern era, each result has the type `complete` or `input_required`, and extensions add no
        other types.
        """
        types = [result["resultType"] for result in results(MODERN)]

        assert (types.count("input_required"), set(types)) == (2, {"complete", "input_required"})

    @pytest.mark.requirement("base/meta/server-info")
    def test_every_result_names_the_server(self):
        """In the modern era, each result has the name and the version of the server."""
        names = {tuple(result["_meta"][SERVER]) for result in results(MODERN)}

        assert names == {("name", "version")}

    @pytest.mark.requirement("logging/undeclared")
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_nothing_is_logged(self, revision):
        """Logging is not declared, and no log message is sent even if prompts fail."""
        (capabilities,) = [result["capabilities"] for result in results(revision) if "capabilities" in result]

        assert "logging" not in capabilities
        assert [
            notification_sent
            for notification_sent in notifications(revision)
            if notification_sent["method"].endswith("/message")
        ] == []

    @pytest.mark.requirement("logging/not-asked-for", "base/deprecated")
    @pytest.mark.parametrize("meta", [{}, {LEVEL: "debug"}], ids=["no-level", "debug"])
    def test_deprecated_features_are_not_used(self, meta):
        """
        A client that declares roots and sampling and sets a log level gets no such requests and no log
        messages.
        """
        received = conversation(MODERN, **meta).messages

        methods = [
            input_request["method"]
            for requests in find_by_key(received, "inputRequests")
            for input_request in requests.values()
        ]
        assert set(methods) == {"elicitation/create"}
        assert [message for message in received if message.get("method") == "notifications/message"] == []
        assert [
            capabilities
            for capabilities in find_by_key(received, "capabilities")
            if "logging" in capabilities
        ] == []


class TestMetadata:
    @pytest.mark.requirement("base/meta/key-prefix", "base/meta/key-name", "base/meta/reserved-prefix")
    @pytest.mark.parametrize("revision", SINCE_2025_06)
    def test_keys_of_metadata(self, revision):
        """
        Keys of metadata are well-formed, and keys outside the protocol do not use its prefixes.
        """
        keys = {key for meta in find_by_key(messages(revision), "_meta") for key in meta}
        own = keys - {SERVER, STREAM}

        assert (keys == own) == (revision != MODERN)
        assert own == {
            "promptkit/arguments",
            "promptkit/tags",
            "promptkit/version",
            "com.example.shelf/owner",
        }
        for key in keys:
            assert re.fullmatch(r"(?:[a-z](?:[a-z0-9-]*[a-z0-9])?\.)*[a-z]+/[a-zA-Z0-9]+", key)

    @pytest.mark.requirement("base/meta/reserved-values", "base/meta/trace-context")
    @pytest.mark.parametrize("value", ["garbage", 7, None, [1], {"a": {}}], ids=str)
    @pytest.mark.parametrize("revision", SINCE_2025_06)
    def test_unused_reserved_keys_are_ignored(self, revision, value):
        """Reserved keys that a server does not use can have any value, and are not echoed."""
        keys = ["traceparent", "tracestate", "baggage", "io.modelcontextprotocol/future", SERVER, STREAM]
        client = Client(CATALOG, revision)

        plain, with_reserved_keys = (
            [client.ask(*method_and_params, **meta) for method_and_params in SERVED[2:4]]
            for meta in ({}, dict.fromkeys(keys, value))
        )

        assert with_reserved_keys == plain
        assert not {"traceparent", "tracestate", "baggage"} & {
            k for m in find_by_key(plain, "_meta") for k in m
        }

    @pytest.mark.parametrize("token", [[], {}, 1.5, True], ids=str)
    @pytest.mark.parametrize("revision", REVISIONS)
    def test_invalid_progress_token(self, revision, token):
        """A progress token with an invalid type is rejected."""
        error = Client(CATALOG, revision).ask("prompts/list", progressToken=token)["error"]

        assert (error["code"], "progressToken" in error["message"]) == (-32602, True)

    @pytest.mark.requirement("base/icons/sizes")
    @pytest.mark.parametrize("revision", SINCE_2025_11)
    def test_sizes_of_icons(self, revision):
        """The size of an icon arrives unchanged."""
        assert list(find_by_key(messages(revision), "sizes")) == [["48x48"]]

    @pytest.mark.requirement("base/icons/sizes")
    @pytest.mark.parametrize(
        "size", ["48", "48 x 48", "48X48", "048x48", "0x0", "x", "", "ANY", "48x48\n", 48]
    )
    def test_invalid_sizes_of_icons(self, size):
        """An icon with an invalid size cannot be created."""
        with pytest.raises(ValueError, match="use a form such as '48x48', or 'any'") as caught:
            Icon("data:,", sizes=[size, "any"])

        assert str(caught.value).startswith(f"{size!r} is not a valid size: ")

    @pytest.mark.requirement("base/annotations/last-modified")
    @pytest.mark.parametrize("revision", SINCE_2025_06)
    def test_dates(self, revision):
        """A date is ISO 8601 with an offset, and denotes the same instant as the author's date."""
        dates = {*find_by_key(messages(revision), "lastModified")}

        assert dates == {"2026-01-31T06:30:00Z"}


@dataclass
class Point:
    x: int
    y: "Point | None" = None


class Tone(Enum):
    CALM = "calm"
    BRISK = "brisk"


TYPES = {
    **{f"a{i}": kind for i, kind in enumerate([str, int, float, bool, bytes, Decimal, UUID, Path])},
    **{f"b{i}": kind for i, kind in enumerate([date, datetime, time, timedelta, Tone, Literal[1, "x"]])},
    **{
        f"c{i}": kind
        for i, kind in enumerate([list[int], set[str], tuple[int, str], dict[str, Point], Point])
    },
    "d": int | None,
    "e": list[Point] | str,
    "f": Annotated[int, Meta(ge=1, le=9, description="few")],
}


def every_type(**_arguments):
    return "x"


every_type.__signature__ = Signature(
    [Parameter(name, Parameter.KEYWORD_ONLY, annotation=kind) for name, kind in TYPES.items()]
)
every_type.__annotations__ = TYPES


@pytest.mark.requirement("base/schema/valid", "base/schema/remote-refs")
@pytest.mark.parametrize("revision", SINCE_2025_11)
def test_schemas_are_valid(revision):
    """
    The schemas of arguments and of elicitations are valid in the dialect 2020-12, with internal references
    only.
    """
    prompt_of_every_type = prompt(elicit=True)(every_type)
    client = Client(
        compile(Recipes(prompts=(prompt_of_every_type,))), revision, capabilities={"elicitation": {}}
    )
    messages_received = [
        *client.post("prompts/list", {}, 1),
        *client.post("prompts/get", {"name": "every_type"}, 2),
    ]

    schemas = [
        *find_by_key(messages_received, "promptkit/arguments"),
        *find_by_key(messages_received, "requestedSchema"),
    ]
    assert [len(schema["properties"]) for schema in schemas] == [len(TYPES)] * 2
    for schema in schemas:
        jsonschema.Draft202012Validator.check_schema(schema)
        assert schema.get("$schema") in (None, "https://json-schema.org/draft/2020-12/schema")
    references = {*find_by_key(schemas, "$ref")}
    assert references == {"#/$defs/Point"}  # a recursive type


@pytest.mark.requirement("base/request/id-kinds", "base/response/same-id")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("number", [7, "7", 0, "", -1, 2**53, 10**30, "ü"])
def test_reply_has_the_id_of_its_request(revision, number):
    """
    A reply has the same id as its request, whether it is text or an integer, for results and for errors.
    """
    client = Client(CATALOG, revision)

    ids = [client.ask(method, {}, number)["id"] for method in ("prompts/list", "prompts/get", "nope")]

    assert [(type(reply_id), reply_id) for reply_id in ids] == [(type(number), number)] * 3


@pytest.mark.requirement("base/request/null-id", "base/error/unreadable-id")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("number", [None, 1.5, True, {}, []], ids=str)
def test_invalid_id(revision, number):
    """A message with an invalid id is rejected, and the error has no id."""
    (reply,) = Client(CATALOG, revision).post("prompts/list", {}, number)

    assert (reply["error"]["code"], reply.keys()) == (-32600, {"jsonrpc", "error"})


@pytest.mark.requirement("base/error/parse", "base/error/unreadable-id")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "text",
    [b"{", b"nonsense", b'{"jsonrpc":"2.0","id":"\xff","method":"x"}', b'{"id":NaN}'],
    ids=["cut", "text", "no-utf-8", "nan"],
)
def test_line_of_invalid_json(revision, text):
    """A line of invalid JSON gets the error -32700 without an id, and the next line is served."""
    client = Client(CATALOG, revision)

    (reply,) = client.send(text + b"\n")

    assert (reply["error"]["code"], reply.keys()) == (-32700, {"jsonrpc", "error"})
    assert "result" in client.ask("prompts/list")


@pytest.mark.requirement("base/error/invalid-request")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    "changed",
    [{"jsonrpc": None}, {"jsonrpc": "1.0"}, {"method": None}, {"method": 3}, {"params": []}, {"params": 3}],
    ids=str,
)
def test_invalid_request(revision, changed):
    """An invalid request gets the error -32600 with its id, and the next line is served."""
    client = Client(CATALOG, revision)
    message = {**request(5, "prompts/list", {"_meta": envelope()}), **changed}

    (reply,) = client.send(line({key: value for key, value in message.items() if value is not None}))

    assert (reply["error"]["code"], reply["id"]) == (-32600, 5)
    assert "result" in client.ask("prompts/list")


@pytest.mark.requirement("base/error/invalid-request")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize("text", [b"3", b"null", b'"ping"', b"{}"])
def test_json_that_is_not_a_message(revision, text):
    """JSON that is not a message gets the error -32600."""
    (reply,) = Client(CATALOG, revision).send(text + b"\n")

    assert reply["error"]["code"] == -32600


@pytest.mark.requirement("base/error/method-not-found")
@pytest.mark.parametrize("revision", REVISIONS)
def test_unknown_methods(revision):
    """
    Unknown methods, methods of clients or other servers, and methods of the other era get the error -32601.
    """
    foreign = [
        name for name, method in METHODS.items() if not (method.modern, method.handshake)[revision != MODERN]
    ]
    unknown = [
        "nope/nope",
        "tools/call",
        "tasks/get",
        "logging/setLevel",
        "sampling/createMessage",
        "roots/list",
    ]
    client = Client(CATALOG, revision)
    params = {"uri": "notes://a", "notifications": {}}

    errors_by_method = {
        method: client.ask(method, params)["error"]
        for method in (*unknown, *foreign)
        if method != "initialize"
    }

    assert foreign
    assert errors_by_method == {
        method: {"code": -32601, "message": f"method not found: {method}", "data": method}
        for method in errors_by_method
    }


@pytest.mark.requirement("base/error/invalid-params")
@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("prompts/get", {}),
        ("prompts/get", {"name": 3}),
        ("prompts/get", {"name": "greet", "arguments": []}),
        ("prompts/list", {"cursor": 3}),
        ("completion/complete", {"ref": REF}),
        ("resources/read", {}),
        ("resources/read", {"uri": 3}),
    ],
    ids=str,
)
def test_invalid_params(revision, method, params):
    """Invalid params get the error -32602."""
    error = Client(CATALOG, revision).ask(method, params)["error"]

    assert (error["code"], error["message"].startswith(f"the params of {method} are invalid: ")) == (
        -32602,
        True,
    )


@pytest.mark.parametrize("revision", REVISIONS)
def test_conversations_are_valid(revision):
    """Every message from the server is valid for the published schema; `Client` validates each one."""
    assert published_schema(revision)
    assert json.dumps(messages(revision))
