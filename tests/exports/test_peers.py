"""
To clients, a catalog behaves the same in servers of the official SDK and of fastmcp as in our own server.
"""

import subprocess
import sys
from typing import Any

import anyio
import pytest
from mcp import Client as OfficialClient
from mcp import MCPError, StdioServerParameters
from mcp.server.lowlevel import Server as LowLevelServer
from mcp.server.mcpserver import MCPServer
from mcp.types import Completion, PromptReference

from promptkit.errors import CompileError, LoadError
from promptkit.exports import mcp as for_mcp
from promptkit.loader.loader import load
from tests.exports.fastmcp_peer import StdioTransport, fastmcp, for_fastmcp

RECIPES = '''
import asyncio, time
from pathlib import Path
from typing import Annotated, Literal
from promptkit import Arg, Audio, Context, EmbeddedResource, Image, PromptError, ResourceLink, assistant
from promptkit import prompt, user

HERE = Path(__file__).parent

@prompt(title="Review", tags=["code"], meta={"team": "core"})
def review(
    code: Annotated[str, Arg("The code", title="Code")],
    count: int = 1,
    language: Literal["python", "rust"] = "python",
    focus: list[str] = ["all"],
):
    """Ask for a review."""
    return user(f"{count} {language} {code} {focus!r}") + assistant("Fine.")

@prompt
def mixed():
    yield user("Look.", Image((HERE / "dot.png").read_bytes()))
    yield user(Audio((HERE / "beep.wav").read_bytes()))
    yield assistant(EmbeddedResource("docs://code", text="a"))
    yield user(EmbeddedResource("docs://zip", blob=b"PK\\x03\\x04rest", mime_type="application/zip"))
    yield user(ResourceLink("https://example.org/x", name="x", title="The page"))

@prompt
def pick(
    city: Annotated[str, Arg(complete=lambda typed, country: [f"{country} {typed}"])], country: str = "de"
):
    return city

@prompt
async def slow(seconds: float = 0):
    await asyncio.sleep(seconds)
    return "awake"

@prompt(timeout=0.2)
def stuck():
    time.sleep(5)
    return "late"

@prompt
def refuses(name: str):
    raise PromptError(f"There is no {name}.")

@prompt
def fails():
    raise ValueError("hush")

@prompt
def asks(context: Context = Context()):
    return context.client_name
'''

#: The requests for prompts, and for completions of their arguments.
GETS: list[tuple[str, dict[str, Any]]] = [
    ("review", {"code": "x", "count": "3", "language": "Rust", "focus": "speed, style"}),
    ("review", {"code": "x"}),
    ("review", {}),
    ("review", {"code": "x", "count": "many", "langage": "rust"}),
    ("mixed", {}),
    ("pick", {"city": "Ulm"}),
    ("slow", {"seconds": "0.01"}),
    ("stuck", {}),
    ("refuses", {"name": "spoon"}),
    ("fails", {}),
    ("asks", {}),
]
COMPLETIONS = [
    ("review", "language", "r", None),
    ("review", "code", "", None),
    ("review", "langage", "", None),
    ("pick", "city", "U", {"country": "fr"}),
]


@pytest.fixture
def folder(recipes, png, wav):
    """A folder of prompts, with their files."""
    path = recipes(samples=RECIPES)
    (path / "dot.png").write_bytes(png)
    (path / "beep.wav").write_bytes(wav)
    return path


def mcp_server(target, server=None):
    """
    Return a server of the official SDK with its own prompt and completions, and the prompts of *target*.
    """
    server = server or MCPServer("theirs")

    @server.prompt()
    def own(name: str) -> str:
        return f"Own {name}"

    @server.completion()
    async def complete(ref, argument, context):
        return Completion(values=["theirs"]) if ref.name == "own" else None

    for_mcp.add_prompts(server, target)
    return server


def fastmcp_server(target, server=None):
    """Return a similar server of fastmcp."""
    server = server or fastmcp.FastMCP("theirs")

    @server.prompt
    def own(name: str) -> str:
        return f"Own {name}"

    @server.completion
    def complete(ref, argument, context):
        return ["theirs"] if ref.name == "own" else None

    for_fastmcp.add_prompts(server, target)
    return server


class Official:
    """The official SDK: its server and its client."""

    make_server = staticmethod(mcp_server)

    @staticmethod
    def client(server):
        """Connect to a server in this process, or start one."""
        if not isinstance(server, MCPServer | LowLevelServer):
            server = StdioServerParameters(command=sys.executable, args=server)
        return OfficialClient(server)

    @staticmethod
    async def prompts(client):
        """Return all prompts, as listed."""
        return (await client.list_prompts()).prompts

    @staticmethod
    async def complete(client, name, argument, typed, chosen):
        """Return the completion of an argument."""
        ref = PromptReference(name=name)
        return (await client.complete(ref, {"name": argument, "value": typed}, chosen)).completion

    @staticmethod
    async def get(client, name, arguments):
        """Return a rendered prompt."""
        return await client.get_prompt(name, arguments)


class FastMCP(Official):
    """fastmcp: its server and its client."""

    make_server = staticmethod(fastmcp_server)

    @staticmethod
    def client(server):
        """Connect to a server in this process, or start one."""
        if not isinstance(server, fastmcp.FastMCP):
            server = StdioTransport(command=sys.executable, args=server)
        return fastmcp.Client(server)

    @staticmethod
    async def prompts(client):
        """Return all prompts, as listed."""
        return await client.list_prompts()

    @staticmethod
    async def complete(client, name, argument, typed, chosen):
        """Return the completion of an argument."""
        ref = PromptReference(name=name)
        return await client.complete(ref, {"name": argument, "value": typed}, chosen)


PEERS = pytest.mark.parametrize("peer", [Official, FastMCP], ids=["mcp", "fastmcp"])


def as_json(model):
    """Return an SDK object as JSON."""
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def outcome_of(call):
    """Return the outcome of a call: its result, or its error without the id that is used in the log."""
    try:
        result = await call
    except MCPError as error:
        message, separator, _ = error.error.message.partition(" (error ")
        return error.error.code, message + separator, error.error.data
    result = as_json(result)
    return result.get("description"), result.get("messages"), result.get("values"), result.get("total")


async def collect_outcomes(peer, server):
    """Return what a client receives for all calls."""
    async with peer.client(server) as client:
        prompts = {listed_prompt.name: as_json(listed_prompt) for listed_prompt in await peer.prompts(client)}
        renderings = [await outcome_of(peer.get(client, *call)) for call in GETS]
        completions = [await outcome_of(peer.complete(client, *call)) for call in COMPLETIONS]
    return prompts, renderings, completions


@PEERS
def test_peers_behave_like_our_server(peer, folder, capfd):
    """
    Lists, typed arguments, every kind of content, errors and completions are the same as in `promptkit
    serve`.
    """
    ours = anyio.run(collect_outcomes, peer, ["-m", "promptkit", "serve", "--no-watch", str(folder)])
    theirs = anyio.run(collect_outcomes, peer, peer.make_server(folder))

    own = theirs[0].pop("own")
    for entry in theirs[0].values():
        entry.get("_meta", {}).pop("fastmcp", None)
        if not entry.get("_meta"):
            entry.pop("_meta", None)
    assert own["arguments"][0]["name"] == "name"
    assert theirs[0] == ours[0]
    for call, received, expected in zip(
        [*GETS, *COMPLETIONS], theirs[1] + theirs[2], ours[1] + ours[2], strict=True
    ):
        assert (call, received) == (call, expected)


@PEERS
def test_own_prompts_of_the_server(peer, folder):
    """The server's own prompts and completions still work."""

    async def call_server():
        async with peer.client(peer.make_server(folder)) as client:
            rendered = await peer.get(client, "own", {"name": "one"})
            completion = await peer.complete(client, "own", "name", "", None)
            unknown = await outcome_of(peer.get(client, "nowhere", {}))
        return rendered.messages[0].content.text, completion.values, unknown

    text, values, unknown = anyio.run(call_server)

    assert (text, values) == ("Own one", ["theirs"])
    assert "nknown prompt" in str(unknown) or "nternal" in str(unknown)


@PEERS
def test_prompt_of_the_same_name_is_replaced(peer, recipes):
    """An added prompt replaces the server's own prompt of the same name, and is listed once."""
    target = recipes(own="from promptkit import prompt\n@prompt\ndef own(name: str): return f'Ours {name}'\n")

    async def call_server():
        async with peer.client(peer.make_server(target)) as client:
            rendered = await peer.get(client, "own", {"name": "one"})
            return [listed.name for listed in await peer.prompts(client)], rendered.messages[0].content.text

    assert anyio.run(call_server) == (["own"], "Ours one")


@PEERS
def test_prompts_with_scopes_are_omitted(peer, recipes):
    """
    Prompts that require scopes are omitted, because the other server does not check scopes and would list
    them for every caller.
    """
    source = "from promptkit import prompt\n@prompt{}\ndef {}(): return 'It.'\n"
    target = recipes(some=source.format("", "free"), more=source.format("(scopes=['oncall'])", "bound"))

    async def list_names():
        async with peer.client(peer.make_server(target)) as client:
            return {listed.name for listed in await peer.prompts(client)}

    assert anyio.run(list_names) == {"free", "own"}


@PEERS
def test_requests_run_concurrently(peer, folder):
    """A slow prompt does not block others, and can be cancelled."""

    async def send_requests():
        order = []
        async with peer.client(peer.make_server(folder)) as client, anyio.create_task_group() as group:

            async def get(name, arguments):
                await peer.get(client, name, arguments)
                order.append(name)

            group.start_soon(get, "slow", {"seconds": "20"})
            await anyio.sleep(0.05)
            await get("review", {"code": "x"})
            group.cancel_scope.cancel()
        return order

    assert anyio.run(send_requests) == ["review"]


@PEERS
def test_targets(peer, folder, monkeypatch):
    """A folder, a prompt, or a list of prompts can be added; an invalid target is an error immediately."""
    greet = load(str(folder)).prompts[0]

    peer.make_server([greet])
    peer.make_server(greet)
    with pytest.raises(LoadError):
        peer.make_server("nowhere")
    (folder / "bad.py").write_text("from promptkit import prompt\n@prompt\ndef bad(x): ...\n")
    with pytest.raises(CompileError):
        peer.make_server(folder)


def test_low_level_server(folder):
    """A low-level server of the official SDK without prompts can serve a catalog."""
    server = LowLevelServer("bare")
    for_mcp.add_prompts(server, folder)

    async def call_server():
        async with OfficialClient(server) as client:
            listed = await Official.prompts(client)
            unknown = await outcome_of(client.get_prompt("revew", {}))
        return {entry.name for entry in listed}, unknown

    names, unknown = anyio.run(call_server)

    assert "review" in names
    assert unknown[:2] == (-32602, "unknown prompt 'revew'; did you mean 'review'?")


def test_middleware_of_fastmcp_sees_requests(folder):
    """Middleware of fastmcp sees requests for added prompts."""
    names = []

    class RecordingMiddleware(fastmcp.server.middleware.Middleware):
        async def on_get_prompt(self, context, call_next):
            names.append(context.message.name)
            return await call_next(context)

    async def call_server():
        async with fastmcp.Client(
            fastmcp_server(folder, fastmcp.FastMCP("x", middleware=[RecordingMiddleware()]))
        ) as client:
            await client.get_prompt("review", {"code": "x"})

    anyio.run(call_server)

    assert names == ["review"]


def test_exports_import_no_sdks():
    """The exports for vendors import neither the vendors' SDKs nor other servers."""
    code = (
        "import sys; from promptkit import user; from promptkit.exports import *; "
        "anthropic_messages(user('x')); "
        "assert not sys.modules.keys() & {'anthropic', 'openai', 'google', 'mcp', 'fastmcp', 'pydantic'}"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
