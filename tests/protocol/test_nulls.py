"""Null fields, because many clients send null instead of omitting an optional field."""

import msgspec
import pytest

from promptkit import prompt, skill
from promptkit.compiler.compilation import compile
from promptkit.loader.recipes import Recipes
from promptkit.protocol import wire
from promptkit.protocol.capabilities import METHODS
from tests.wire import HANDSHAKES, REVISIONS, Client, envelope, line, request


@prompt
def greet(first: str = "Ada", last: str = "Lovelace"):
    return f"Hello, {first} {last}"


@skill(name="tidy", description="Tidy a folder.")
def tidy():
    return "Tidy it."


CATALOG = compile(Recipes(prompts=(greet,), skills=(tidy,)))

REF = {"type": "ref/prompt", "name": "greet"}

#: Params with all their optional members, each null.
NULLS = [
    ("prompts/list", {"cursor": None}),
    ("resources/list", {"cursor": None}),
    ("resources/templates/list", {"cursor": None}),
    ("tools/list", {"cursor": None}),
    ("skills/list", {"cursor": None}),
    ("resources/directory/read", {"uri": "skill://tidy", "cursor": None}),
    ("prompts/get", {"name": "greet", "arguments": None, "inputResponses": None, "requestState": None}),
    ("prompts/get", {"name": "greet", "arguments": {"first": None}}),
    ("tools/call", {"name": "greet", "arguments": None, "inputResponses": None, "requestState": None}),
    ("completion/complete", {"ref": REF, "argument": {"name": "first", "value": ""}, "context": None}),
    (
        "completion/complete",
        {"ref": REF, "argument": {"name": "first", "value": ""}, "context": {"arguments": None}},
    ),
    (
        "completion/complete",
        {"ref": REF, "argument": {"name": "first", "value": ""}, "context": {"arguments": {"last": None}}},
    ),
]

#: Members that the older era can omit, and that requests that name a revision must have.
REQUIRED = {wire.PROTOCOL_VERSION, wire.CLIENT_CAPABILITIES}


def optional_fields(struct):
    """
    Yield each optional field of *struct*, and of the structs in it, as a pair of the struct and the name.
    """
    for member in msgspec.structs.fields(struct):
        if not member.required and member.encode_name not in REQUIRED:
            yield struct, member.encode_name
    for kind in msgspec.inspect.multi_type_info([field.type for field in msgspec.structs.fields(struct)]):
        for part in getattr(kind, "types", (kind,)):
            if isinstance(part, msgspec.inspect.StructType):
                yield from optional_fields(part.cls)


MEMBERS = sorted({pair for method in METHODS.values() for pair in optional_fields(method.params)}, key=str)


@pytest.mark.parametrize(("struct", "name"), MEMBERS, ids=str)
def test_every_optional_field(struct, name):
    """Every optional field of every method's params can be null."""
    (kind,) = [member.type for member in msgspec.structs.fields(struct) if member.encode_name == name]

    assert msgspec.convert(None, kind) is None


@pytest.mark.parametrize("revision", REVISIONS)
@pytest.mark.parametrize(("method", "params"), NULLS, ids=str)
def test_null_field(revision, method, params):
    """A null field gives the same result as a missing field."""
    if revision not in HANDSHAKES:
        params = {**params, "_meta": envelope()}
    client = Client(CATALOG, revision, tools=True)
    without = {name: value for name, value in params.items() if value is not None}

    (reply,) = client.send(line(request(5, method, params)))

    assert "result" in reply
    assert client.send(line(request(5, method, without))) == [reply]


@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize(
    "method", ["ping", "prompts/list", "resources/list", "resources/templates/list", "tools/list"]
)
def test_null_params(revision, method):
    """Null params are the same as missing params."""
    client = Client(CATALOG, revision)

    (reply,) = client.send(line({**request(5, method), "params": None}))

    assert "result" in reply
    assert client.send(line(request(5, method))) == [reply]


def test_null_params_of_an_unknown_method():
    """An unknown method with null params is still reported as unknown."""
    (reply,) = Client(CATALOG).send(line({**request(5, "logging/setLevel"), "params": None}))

    assert reply["error"]["code"] == -32601


@pytest.mark.parametrize("revision", HANDSHAKES)
@pytest.mark.parametrize("member", ["capabilities", "clientInfo", "_meta"])
def test_null_field_of_the_handshake(revision, member):
    """A handshake with a null field succeeds."""
    client = Client(CATALOG, revision)

    (reply,) = client.send(line(request(5, "initialize", {"protocolVersion": revision, member: None})))

    assert reply["result"]["protocolVersion"] == revision


def test_null_fields_of_the_envelope():
    """A null client, log level and progress token of a request that names its revision count as missing."""
    names = ("io.modelcontextprotocol/clientInfo", "io.modelcontextprotocol/logLevel", "progressToken")
    client = Client(CATALOG, REVISIONS[-1])

    (reply,) = client.send(line(request(5, "prompts/list", {"_meta": envelope(**dict.fromkeys(names))})))

    assert "result" in reply


def test_null_fields_of_a_filter():
    """A null field of a subscription's filter counts as missing."""
    client = Client(CATALOG, REVISIONS[-1])
    requested = {"promptsListChanged": None, "resourcesListChanged": None, "resourceSubscriptions": None}

    (acknowledgement,) = client.send(
        line(request(5, "subscriptions/listen", {"notifications": requested, "_meta": envelope()}))
    )

    assert acknowledgement["params"]["notifications"] == {}
