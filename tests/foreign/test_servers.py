"""Connections to real servers of other projects, and to hostile ones."""

import os
import shlex
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from promptkit.errors.exceptions import ResultError
from promptkit.errors.rules import Rule
from promptkit.foreign import connection
from promptkit.foreign.address import ServerError, parse_address
from promptkit.foreign.catalog import open_server
from tests.clients.node_clients import install
from tests.foreign.scripted import EVIL

ROOT = Path(__file__).parents[2]

FASTMCP = """
from fastmcp import FastMCP
server = FastMCP("shelf", version="1.2")

@server.prompt
def review(code: str, depth: int = 1) -> str:
    "Review code."
    return f"Review {code}, {depth} deep."

@server.resource("docs://notice", description="A notice")
def notice() -> str:
    return "Closed."

@server.resource("docs://page/{name}", description="A page")
def page(name: str) -> str:
    return f"Page {name}."

@server.tool
def add(a: int, b: int) -> int:
    "Add numbers."
    raise SystemExit("a tool was called")

server.run(show_banner=False)
"""

SDK = """
from mcp.server import MCPServer
from mcp.server.mcpserver.prompts.base import AssistantMessage, UserMessage
server = MCPServer("shelf", version="1.2")

@server.prompt()
def review(code: str, depth: int = 1) -> list:
    "Review code."
    return [UserMessage(f"Review {code}, {depth} deep."), AssistantMessage("Let me see.")]

@server.resource("docs://notice", description="A notice")
def notice() -> str:
    return "Closed."

@server.resource("docs://page/{name}", description="A page")
def page(name: str) -> str:
    return f"Page {name}."

server.run()
"""

PROMPTKIT = """
from promptkit import prompt, resource

@prompt
def review(code: str, depth: int = 1):
    "Review code."
    return f"Review {code}, {depth} deep."

@resource("docs://notice")
def notice() -> str:
    "A notice"
    return "Closed."

@resource("docs://page/{name}")
def page(name: str) -> str:
    "A page"
    return f"Page {name}."
"""


@pytest.fixture(params=["fastmcp", "sdk", "promptkit"])
def command(request, tmp_path):
    """The command of a real server with a prompt, a resource and a template."""
    source = {"fastmcp": FASTMCP, "sdk": SDK, "promptkit": PROMPTKIT}[request.param]
    file = tmp_path / "server.py"
    file.write_text(source, encoding="utf-8")
    words = [
        sys.executable,
        *(["-m", "promptkit", "serve"] if request.param == "promptkit" else []),
        str(file),
    ]
    return shlex.join(words)


@pytest.mark.slow
def test_prompts_and_resources_of_real_servers_are_rendered_and_read(command):
    with open_server(parse_address(command, variables=[f"PYTHONPATH={ROOT}"]), lint=True) as server:
        catalog = server.catalog
        review = catalog["review"]

        assert server.revision == "2026-07-28"
        assert [argument.required for argument in review.arguments.ordered] == [True, False]
        assert "Review x = 1, 2 deep." in review.render({"code": "x = 1", "depth": "2"})
        assert catalog.read("docs://notice").text == "Closed."
        assert catalog.read("docs://page/a%20b").text == "Page a b."
        assert catalog.errors == ()


def test_skills_are_read_and_verified(tmp_path):
    folder = tmp_path / "skills" / "review-changes"
    folder.mkdir(parents=True)
    frontmatter = "name: review-changes\ndescription: Review a change. Use it before a commit."
    folder.joinpath("SKILL.md").write_text(f"---\n{frontmatter}\n---\nSee [rules](rules.md).\n", "utf-8")
    folder.joinpath("rules.md").write_bytes(b"Be brief.\n")
    command = shlex.join([sys.executable, "-m", "promptkit", "serve", str(tmp_path)])

    with open_server(parse_address(command, variables=[f"PYTHONPATH={ROOT}"]), lint=True) as server:
        (skill,) = server.catalog.skills

    assert skill.name == "review-changes"
    assert [file.path for file in skill.files] == ["SKILL.md", "rules.md"]
    assert skill.files[1].read() == "Be brief.\n"
    assert server.catalog.diagnostics == ()


@pytest.mark.slow
@pytest.mark.installs
@pytest.mark.timeout(300)
def test_the_reference_server_in_typescript(installations):
    folder = install(Path(__file__).parent / "everything", installations)
    program = folder / "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

    with open_server(parse_address(shlex.join(["node", str(program)])), lint=True, sample=True) as server:
        catalog = server.catalog

        assert server.revision == "2025-11-25"
        assert "weather in Berlin" in catalog["args-prompt"].render({"city": "Berlin"})
        assert catalog.read("demo://resource/static/document/architecture.md").text.startswith("# Everything")
        assert "Resource 1" in catalog.read("demo://resource/dynamic/text/1").text
        assert [diagnostic.rule for diagnostic in catalog.diagnostics] == [
            Rule.NO_DESCRIPTION,
            Rule.LOSSY_SCHEMA,
        ]


SKILL = {
    "uri": "skill://a/SKILL.md",
    "frontmatter": {"name": "a", "description": "A."},
    "resources": [{"uri": "skill://a/SKILL.md", "digest": "sha256:00", "size": 1}],
}
DECLARED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"resources": {}, "extensions": {"io.modelcontextprotocol/skills": {}}},
    "serverInfo": {"name": "s", "version": "1"},
}


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        ("---\nname: a\ndescription: A.\n---\n", ["listed digest or size"]),
        (
            "---\nname: b\ndescription: A.\n---\n",
            ["listed digest", "differs from the frontmatter", "its folder is called 'a'"],
        ),
        ("no front matter", ["listed digest", "has no frontmatter"]),
    ],
)
def test_a_skill_that_hosts_reject_is_reported(scripted, text, messages):
    command = scripted(
        replies={
            "initialize": DECLARED,
            "resources/list": {"resources": []},
            "skills/list": {"skills": [SKILL]},
            "resources/read": {"contents": [{"uri": "skill://a/SKILL.md", "text": text}]},
        }
    )

    with open_server(parse_address(command)) as server:
        found = [diagnostic.message for diagnostic in server.catalog.diagnostics]

    assert len(found) == len(messages)
    assert all(part in message for part, message in zip(messages, found, strict=True))


def test_a_server_over_http_receives_the_headers(tmp_path):
    file = tmp_path / "recipes.py"
    file.write_text(PROMPTKIT, encoding="utf-8")
    tokens = tmp_path / "tokens"
    tokens.write_text("me secret-token-of-the-test-0123456789\n", encoding="utf-8")
    tokens.chmod(0o600)
    (tmp_path / "header").write_text("Bearer secret-token-of-the-test-0123456789\n", encoding="utf-8")
    with closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    words = [sys.executable, "-m", "promptkit", "serve", str(file), "--http", f"127.0.0.1:{port}"]
    process = subprocess.Popen(
        [*words, "--token-file", str(tokens)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_for_port(port)
        url = f"http://127.0.0.1:{port}/mcp"
        with open_server(parse_address(url, [f"Authorization=@{tmp_path / 'header'}"])) as server:
            assert "Review x, 1 deep." in server.catalog["review"].render({"code": "x"})
        with (
            pytest.raises(ServerError, match=r"cannot connect to 'http://127\.0\.0\.1"),
            open_server(parse_address(url)),
        ):
            pass
    finally:
        process.terminate()
        process.wait(10)


def wait_for_port(port):
    """Wait until a server listens on a port."""
    for _ in range(200):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("the server does not listen")


@pytest.mark.parametrize(
    ("trick", "message"),
    [
        ("hang", "did not answer prompts/list within 3 s"),
        ("exit", "ended the connection instead of answering prompts/list"),
        ("large", "sent a reply of more than 16 MiB"),
    ],
)
def test_a_server_that_does_not_answer_is_reported(scripted, trick, message, monkeypatch):
    if trick == "hang":
        monkeypatch.setattr(connection, "MAX_SECONDS", 3.0)
    with open_server(parse_address(scripted(trick=trick))) as server:
        (first, *_) = server.catalog.diagnostics

    assert message in first.message


@pytest.mark.parametrize("trick", ["flood", "no JSON"])
def test_output_other_than_replies_is_skipped(scripted, trick):
    command = scripted(
        trick=trick,
        replies={
            "prompts/list": {"prompts": [{"name": "a", "description": "A."}]},
            "tools/list": {"tools": []},
        },
    )

    with open_server(parse_address(command), lint=True) as server:
        assert [*server.catalog] == ["a"]
        stray = [d.message for d in server.catalog.diagnostics if "standard output" in d.message]

    assert len(stray) == (trick == "no JSON")
    assert all("4 lines" in message for message in stray)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("promptkit-no-such-program", "there is no program 'promptkit-no-such-program'"),
        (
            shlex.join([sys.executable, "-c", "print('hello')"]),
            "it ended the connection instead of answering the handshake; it printed the line 'hello'",
        ),
        (
            shlex.join([sys.executable, "-c", "import sys; sys.exit('no \\x1b[2J key')"]),
            "instead of answering the handshake; it wrote to standard error:\nno \x1b",
        ),
        ("http://127.0.0.1:9/mcp", "cannot connect to 'http://127.0.0.1:9/mcp': ConnectError"),
    ],
)
def test_a_server_that_cannot_be_reached_is_an_error(command, message):
    with pytest.raises(ServerError) as caught, open_server(parse_address(command)):
        pass

    assert message in str(caught.value)


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="it looks for the process in /proc")
def test_the_process_group_of_a_server_is_terminated(scripted, tmp_path):
    """Even a child that ignores the end of its input is terminated."""
    started = tmp_path / "started"
    with open_server(parse_address(scripted(child=str(started)))):
        for _ in range(200):
            if started.exists():
                break
            time.sleep(0.05)

    listed = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline")]
    assert started.exists()
    assert not any(str(started).encode() in command for command in listed)


def test_a_server_gets_only_the_named_variables(scripted, tmp_path, monkeypatch):
    monkeypatch.setenv("PROMPTKIT_SECRET", "s1")
    monkeypatch.setenv("PROMPTKIT_NAMED", "s2")
    code = f"import os; open({str(tmp_path / 'env')!r}, 'w').write('\\n'.join(os.environ.values()))"

    with (
        pytest.raises(ServerError),
        open_server(parse_address(shlex.join([sys.executable, "-c", code]), variables=["PROMPTKIT_NAMED"])),
    ):
        pass

    values = (tmp_path / "env").read_text(encoding="utf-8").splitlines()
    assert "s2" in values
    assert "s1" not in values


def test_messages_that_cannot_be_sent_to_models_are_an_error(scripted):
    message = {"role": "user", "content": {"type": "image", "data": "AAAA", "mimeType": "image/png"}}
    command = scripted(
        replies={
            "prompts/list": {"prompts": [{"name": "a"}]},
            "prompts/get": {"messages": [message]},
            "tools/list": {"tools": []},
        }
    )

    with (
        open_server(parse_address(command)) as server,
        pytest.raises(ResultError, match="cannot be sent to a model"),
    ):
        server.catalog["a"].render()


def test_an_argument_can_have_any_name(scripted):
    names = ["self", "name", "connection", "a b", "", EVIL]
    arguments = [{"name": name} for name in names]
    reply = {"messages": [{"role": "user", "content": {"type": "text", "text": "fine"}}]}
    command = scripted(
        replies={
            "prompts/list": {"prompts": [{"name": EVIL, "arguments": arguments}]},
            "prompts/get": reply,
            "tools/list": {"tools": []},
        }
    )

    with open_server(parse_address(command)) as server:
        assert "fine" in server.catalog[EVIL].render(dict.fromkeys(names, "x"))
