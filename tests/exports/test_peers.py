"""
Catalogs in servers of the official SDK and of fastmcp behave as in our own server, as their clients see it.
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

SHELF = '''
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
def shelf(recipes, png, wav):
    """A folder of prompts, with their files."""
    folder = recipes(shelf=SHELF)
    (folder / "dot.png").write_bytes(png)
    (folder / "beep.wav").write_bytes(wav)
    return folder


def mcp_server(target, server=None):
    """Return a server of the official SDK with a prompt and completions of its own, and those of *target*."""
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
    """Return such a server of fastmcp."""
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

    made = staticmethod(mcp_server)

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

    made = staticmethod(fastmcp_server)

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


def data(made):
    """Return an SDK object as JSON."""
    return made.model_dump(mode="json", by_alias=True, exclude_none=True)


async def outcome(call):
    """Return the outcome of a call: its result, or its error without the id that is used in the log."""
    try:
        found = await call
    except MCPError as error:
        message, cut, _ = error.error.message.partition(" (error ")
        return error.error.code, message + cut, error.error.data
    found = data(found)
    return found.get("description"), found.get("messages"), found.get("values"), found.get("total")


async def asked(peer, server):
    """Return what a client receives for all calls."""
    async with peer.client(server) as client:
        listed = {one.name: data(one) for one in await peer.prompts(client)}
        got = [await outcome(peer.get(client, *call)) for call in GETS]
        completed = [await outcome(peer.complete(client, *call)) for call in COMPLETIONS]
    return listed, got, completed


@PEERS
def test_the_same_as_our_own_server(peer, shelf, capfd):
    """
    Lists, typed arguments, every kind of content, errors and completions are the same as in `promptkit
    serve`.
    """
    ours = anyio.run(asked, peer, ["-m", "promptkit", "serve", "--no-watch", str(shelf)])
    theirs = anyio.run(asked, peer, peer.made(shelf))

    own = theirs[0].pop("own")
    for one in theirs[0].values():
        one.get("_meta", {}).pop("fastmcp", None)
        if not one.get("_meta"):
            one.pop("_meta", None)
    assert own["arguments"][0]["name"] == "name"
    assert theirs[0] == ours[0]
    for call, one, other in zip([*GETS, *COMPLETIONS], theirs[1] + theirs[2], ours[1] + ours[2], strict=True):
        assert (call, one) == (call, other)


@PEERS
def test_what_the_server_has_already(peer, shelf):
    """The server's own prompts and completions still work."""

    async def work():
        async with peer.client(peer.made(shelf)) as client:
            got = await peer.get(client, "own", {"name": "one"})
            completed = await peer.complete(client, "own", "name", "", None)
            unknown = await outcome(peer.get(client, "nowhere", {}))
        return got.messages[0].content.text, completed.values, unknown

    said, offered, unknown = anyio.run(work)

    assert (said, offered) == ("Own one", ["theirs"])
    assert "nknown prompt" in str(unknown) or "nternal" in str(unknown)


@PEERS
def test_a_prompt_of_the_same_name_is_replaced(peer, recipes):
    """If a prompt has the same name as one of the server's, it replaces it and is listed once."""
    folder = recipes(own="from promptkit import prompt\n@prompt\ndef own(name: str): return f'Ours {name}'\n")

    async def work():
        async with peer.client(peer.made(folder)) as client:
            got = await peer.get(client, "own", {"name": "one"})
            return [one.name for one in await peer.prompts(client)], got.messages[0].content.text

    assert anyio.run(work) == (["own"], "Ours one")


@PEERS
def test_what_needs_scopes_is_left_out(peer, recipes):
    """
    Prompts that require scopes are omitted, because the other server does not check scopes and would list
    them for every caller.
    """
    source = "from promptkit import prompt\n@prompt{}\ndef {}(): return 'It.'\n"
    folder = recipes(some=source.format("", "free"), more=source.format("(scopes=['oncall'])", "bound"))

    async def work():
        async with peer.client(peer.made(folder)) as client:
            return {one.name for one in await peer.prompts(client)}

    assert anyio.run(work) == {"free", "own"}


@PEERS
def test_requests_run_beside_each_other(peer, shelf):
    """A slow prompt blocks no other, and it can be cancelled."""

    async def work():
        order = []
        async with peer.client(peer.made(shelf)) as client, anyio.create_task_group() as group:

            async def get(name, arguments):
                await peer.get(client, name, arguments)
                order.append(name)

            group.start_soon(get, "slow", {"seconds": "20"})
            await anyio.sleep(0.05)
            await get("review", {"code": "x"})
            group.cancel_scope.cancel()
        return order

    assert anyio.run(work) == ["review"]


@PEERS
def test_targets(peer, shelf, monkeypatch):
    """A folder, a prompt, or a list of prompts can be added; an invalid target is an error immediately."""
    greet = load(str(shelf)).prompts[0]

    peer.made([greet])
    peer.made(greet)
    with pytest.raises(LoadError):
        peer.made("nowhere")
    (shelf / "bad.py").write_text("from promptkit import prompt\n@prompt\ndef bad(x): ...\n")
    with pytest.raises(CompileError):
        peer.made(shelf)


def test_a_low_level_server(shelf):
    """A low-level server of the official SDK without prompts can serve a catalog."""
    server = LowLevelServer("bare")
    for_mcp.add_prompts(server, shelf)

    async def work():
        async with OfficialClient(server) as client:
            listed = await Official.prompts(client)
            unknown = await outcome(client.get_prompt("revew", {}))
        return {one.name for one in listed}, unknown

    names, unknown = anyio.run(work)

    assert "review" in names
    assert unknown[:2] == (-32602, "unknown prompt 'revew'; did you mean 'review'?")


def test_middleware_of_fastmcp_sees_them(shelf):
    """Middleware of fastmcp sees requests for added prompts."""
    seen = []

    class Noting(fastmcp.server.middleware.Middleware):
        async def on_get_prompt(self, context, call_next):
            seen.append(context.message.name)
            return await call_next(context)

    async def work():
        async with fastmcp.Client(
            fastmcp_server(shelf, fastmcp.FastMCP("x", middleware=[Noting()]))
        ) as client:
            await client.get_prompt("review", {"code": "x"})

    anyio.run(work)

    assert seen == ["review"]


def test_nothing_is_imported_that_is_not_asked_for():
    """The exports for vendors import neither the vendors' SDKs nor other servers."""
    code = (
        "import sys; from promptkit import user; from promptkit.exports import *; "
        "anthropic_messages(user('x')); "
        "assert not sys.modules.keys() & {'anthropic', 'openai', 'google', 'mcp', 'fastmcp', 'pydantic'}"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
