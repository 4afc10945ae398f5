"""Sessions of typical clients that use all features, and the recipe for them."""

from tests.wire import HANDSHAKES, MODERN, envelope, initialize, notification, request

#: A recipe with all kinds of behaviour of prompts and resources.
RECIPE = '''
import asyncio, struct, time, zlib
from datetime import date
from typing import Annotated, Literal

from promptkit import Arg, Context, Image, PromptError, assistant, prompt, resource, user

def chunk(kind, body):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

HEADER = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
RED = chunk(b"IDAT", zlib.compress(b"\\0\\xff\\0\\0"))
PIXEL = b"\\x89PNG\\r\\n\\x1a\\n" + HEADER + RED + chunk(b"IEND", b"")

@prompt
def plain():
    """Say hello."""
    return user("Hello.") + assistant("Hello to you.")

@prompt
def typed(
    code: Annotated[str, Arg("The code")],
    language: Literal["python", "rust"] = "python",
    count: int = 1,
    day: date = date(2026, 1, 31),
    names: list[str] | None = None,
):
    """Take arguments of many types."""
    return f"{language} {count} {day} {names}: {code}"

@prompt
async def waits(seconds: float = 0.001, *, context: Context):
    """Wait without holding a thread."""
    context.report_progress(1, 2, "waiting")
    await asyncio.sleep(min(max(seconds, 0), 0.02))
    return "done"

@prompt
def slow(seconds: float = 0.02):
    """Hold a thread."""
    time.sleep(min(max(seconds, 0), 0.03))
    return "done"

@prompt
def fails(word: str = ""):
    """Fail."""
    raise RuntimeError(word)

@prompt
def refuses(word: str = ""):
    """Refuse."""
    raise PromptError(f"not {word}")

@prompt
def pictures():
    """Show a picture."""
    return user("Look:", Image(PIXEL))

@prompt(elicit=True)
def asks(name: str, count: int):
    """Ask for the missing argument."""
    return f"{name} {count}"

@prompt(cache=60)
def cached(word: str = "x"):
    """Be cached."""
    return word

@prompt
def large(size: int = 200_000):
    """Be long."""
    return "x" * min(max(size, 0), 1_000_000)

@prompt
def sleeps(seconds: float = 15):
    """Sleep for long."""
    time.sleep(seconds)
    return "awake"

@prompt
def spins(seconds: float = 15):
    """Work for long."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return "done"

@prompt
async def naps(seconds: float = 15):
    """Wait for long, without holding a thread."""
    await asyncio.sleep(seconds)
    return "done"

def words(typed, chosen):
    return ["red", "rust", "python"]

@prompt
def offers(word: Annotated[str, Arg("A word", complete=words)] = "red"):
    """Offer words."""
    return word

@resource("note://one")
def one() -> str:
    return "one"

@resource("note://two", mime_type="application/octet-stream")
def two() -> bytes:
    return b"\\x00\\xff"

@resource("page://{name}")
def page(name: str) -> str:
    return f"page {name}"
'''

#: The requests of both eras, as methods and params.
REQUESTS = [
    ("prompts/list", {}),
    ("prompts/list", {"cursor": "nowhere"}),
    ("prompts/get", {"name": "plain"}),
    (
        "prompts/get",
        {"name": "typed", "arguments": {"code": "ß\n\u2028", "language": "RUST", "count": "1_000"}},
    ),
    ("prompts/get", {"name": "typed", "arguments": {"count": "many", "day": "soon", "zzz": "1"}}),
    ("prompts/get", {"name": "typed", "arguments": {"code": "x", "names": ["a", "b"]}}),
    ("prompts/get", {"name": "waits", "arguments": {"seconds": "0.002"}, "_meta": {"progressToken": "p"}}),
    ("prompts/get", {"name": "slow"}),
    ("prompts/get", {"name": "fails", "arguments": {"word": "boom"}}),
    ("prompts/get", {"name": "refuses", "arguments": {"word": "today"}}),
    ("prompts/get", {"name": "pictures"}),
    ("prompts/get", {"name": "cached", "arguments": {"word": "y"}}),
    ("prompts/get", {"name": "asks", "arguments": {"name": "Ada"}}),
    ("prompts/get", {"name": "plian"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "typed"}, "argument": {"name": "language", "value": "r"}},
    ),
    (
        "completion/complete",
        {
            "ref": {"type": "ref/prompt", "name": "offers"},
            "argument": {"name": "word", "value": "p"},
            "context": {"arguments": {"x": "y"}},
        },
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "page://{name}"}, "argument": {"name": "name", "value": ""}},
    ),
    ("resources/list", {}),
    ("resources/templates/list", {}),
    ("resources/read", {"uri": "note://two"}),
    ("resources/read", {"uri": "page://m%C3%BC"}),
    ("resources/read", {"uri": "page://nowhere/at/all"}),
    ("tools/list", {}),
    ("no/such", {"x": [1, 2, {"y": None}]}),
]

ELICITING = {"elicitation": {}}


def session(revision, numbers):
    """
    Return the messages of one session.

    Args:
        revision:
            The revision of the protocol.

        numbers:
            An iterator of fresh ids.
    """
    messages = _stateless_messages(numbers) if revision == MODERN else _handshake_messages(revision, numbers)
    cancelled = next(numbers)
    method, params = "prompts/get", {"name": "slow"}
    return [
        *messages,
        _with_envelope(request(cancelled, method, params))
        if revision == MODERN
        else request(cancelled, method, params),
        notification("notifications/cancelled", {"requestId": cancelled, "reason": "closed"}),
        {"jsonrpc": "2.0", "id": "promptkit-0", "result": {"action": "decline"}},
    ]


def _handshake_messages(revision, numbers):
    batch = [request(next(numbers), method, params) for method, params in REQUESTS[:4]]
    return [
        initialize(revision, next(numbers), {"elicitation": {}, "roots": {}}),
        notification("notifications/initialized"),
        request(next(numbers), "ping"),
        *(request(next(numbers), method, params) for method, params in REQUESTS),
        request(next(numbers), "resources/subscribe", {"uri": "note://one"}),
        request(next(numbers), "resources/unsubscribe", {"uri": "note://one"}),
        notification("notifications/roots/list_changed"),
        *([[*batch, notification("notifications/progress", {})]] if revision == HANDSHAKES[1] else []),
    ]


def _stateless_messages(numbers):
    changes = {"promptsListChanged": True, "resourceSubscriptions": ["note://one"]}
    return [
        _with_envelope(request(next(numbers), method, params))
        for method, params in [
            ("server/discover", {}),
            ("subscriptions/listen", {"notifications": changes}),
            *REQUESTS,
        ]
    ]


def _with_envelope(message):
    params = message["params"]
    return {**message, "params": {**params, "_meta": {**params.get("_meta", {}), **envelope(ELICITING)}}}
