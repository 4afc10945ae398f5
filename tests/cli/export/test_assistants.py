"""The clients themselves read what was exported; what they would send to a model is noted."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from promptkit.cli import main
from tests.cli.export.clients import Claude, gemini_says
from tests.clients.node_clients import PATIENT, install
from tests.clients.test_assistants import program

ASSISTANTS = Path(__file__).parents[2] / "clients" / "assistants"

#: What nobody should run, or change.
HARMLESS = [
    'it\'s "so", $(touch pwned) `touch pwned` ; touch pwned # && touch pwned | touch pwned',
    "two\nlines\n> pwned\nEOF\n",
    "-n --help %s $HOME ~ * {{args}} \\n",
    "a! b",
]

#: Ignores what a client asks for, but for noting it.
REFUSAL = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "there is no model"}}'

#: Has Codex ask what notes it.
CODEX = """
model = "none"
model_provider = "none"
[model_providers.none]
name = "none"
base_url = "ADDRESS/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
"""

pytestmark = [pytest.mark.installs, pytest.mark.timeout(2 * PATIENT)]


@pytest.fixture(scope="session")
def assistants(installations):
    """Where the clients are installed."""
    return install(ASSISTANTS, installations, optional=True) / "node_modules"


@pytest.fixture
def requests():
    """What was sent to the address that comes first, by path."""
    found = []

    class Noting(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            found.append((self.path, json.loads(body)))
            self.send_response(400)
            self.send_header("Content-Length", str(len(REFUSAL)))
            self.end_headers()
            self.wfile.write(REFUSAL)

        def log_message(self, *_): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Noting)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", found
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(assistants, requests, project, tmp_path):
    """Type a command in a client; return what it sends to a model, as texts, and what it prints."""
    address, found = requests
    home, programs = tmp_path / "home", tmp_path / "bin"
    (home / ".gemini").mkdir(parents=True)
    settings = {"security": {"folderTrust": {"enabled": False}, "auth": {"selectedType": "gemini-api-key"}}}
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings))
    (home / ".codex").mkdir()
    (home / ".codex" / "config.toml").write_text(CODEX.replace("ADDRESS", address))
    programs.mkdir()
    (programs / "promptkit").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m promptkit "$@"\n')
    (programs / "promptkit").chmod(0o755)
    environment = {
        "HOME": str(home),
        "PATH": os.pathsep.join([str(programs), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join(sys.path),
        "CI": "1",
        "ANTHROPIC_BASE_URL": address,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "GOOGLE_GEMINI_BASE_URL": address,
        "GEMINI_API_KEY": "none",
        "GEMINI_TELEMETRY_ENABLED": "false",
    }

    def type_in(client, line, *options):
        found.clear()
        ran = subprocess.run(
            [program(client, assistants), *(options or ["-p"]), line],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert not (tmp_path / "pwned").exists()
        bodies = [body for _, body in found]
        return [text for body in bodies for text in texts_of(body)], ran.stdout + ran.stderr

    return type_in


def texts_of(body):
    """The texts of a request to a vendor."""
    for message in [*body.get("messages", ()), *body.get("contents", ()), *body.get("input", ())]:
        content = message.get("content", message.get("parts"))
        yield from [content] if isinstance(content, str) else (one.get("text", "") for one in content)


@pytest.fixture
def written(project, tmp_path):
    """Export prompts into the folder of a client; return what the file of the first holds."""

    def export(client, *names_and_options):
        form, folder, ending = {
            "claude-code": ("claude-commands", ".claude/commands", "md"),
            "gemini-cli": ("gemini-commands", ".gemini/commands", "toml"),
        }[client]
        assert main(["export", form, folder, *names_and_options]) == 0
        return (tmp_path / folder / f"{names_and_options[0]}.{ending}").read_bytes()

    return export


@pytest.mark.parametrize(
    ("name", "typed"),
    [("explain", 'it\'s $& "so"'), ("compare", "'the sun' moon"), ("explain", "a ! !`b` $1")],
)
def test_claude_code_fills_in_a_frozen_command(ask, written, name, typed):
    """
    As its documentation says, by which the other tests are.
    """
    file = written("claude-code", name)
    texts, printed = ask("claude-code", f"/{name} {typed}")

    assert f"{Claude.reads(file, typed).text}\n" in texts, printed


@pytest.mark.parametrize("typed", HARMLESS)
def test_claude_code_runs_a_live_command(ask, written, typed):
    """
    It sends what the prompt says, and runs nothing else.
    """
    written("claude-code", "explain", "--live")
    texts, printed = ask("claude-code", f"/explain {typed}")

    said = typed.strip()
    assert f"Explain {said} to a child, for $100. {said}!\n" in texts, printed


def test_claude_code_tells_arguments_apart(ask, written):
    """
    Some are named, before the text.
    """
    written("claude-code", "translate", "--live")
    texts, printed = ask("claude-code", "/translate tone=dry Good morning, it's me")

    assert "Translate into German, in a dry tone:\n\nGood morning, it's me\n" in texts, printed


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        ("x\n```\ntouch pwned\n```!\ntouch pwned\n```\n!`touch pwned`", "were changed or cut by the client"),
        ("x\n{end}\n{end}.\ntouch pwned", "permission check failed"),
        ("x\n{end}.\ntouch pwned", "permission check failed"),
        ("", "'topic' is missing"),
    ],
)
def test_claude_code_sends_nothing_if_a_block_ends_early(ask, written, typed, reason):
    """
    Also for somebody who knows its last line.
    """
    end = written("claude-code", "explain", "--live").splitlines()[-2].decode().removesuffix(".")
    texts, printed = ask("claude-code", f"/explain {typed.format(end=end)}")

    assert texts == []
    assert reason in printed


def test_gemini_cli_fills_in_a_frozen_command(ask, written):
    """
    As its documentation says, and JavaScript.
    """
    file = written("gemini-cli", "explain")
    texts, printed = ask("gemini-cli", '/explain it\'s $& "so"')

    assert gemini_says(file, 'it\'s $& "so"') in texts, printed


@pytest.mark.parametrize("typed", [HARMLESS[0], HARMLESS[2], HARMLESS[3]])
def test_gemini_cli_runs_a_live_command(ask, written, typed):
    """
    It sends what the prompt says, and runs nothing else.
    """
    written("gemini-cli", "explain", "--live")
    texts, printed = ask("gemini-cli", f"/explain {typed}", "--approval-mode", "yolo", "-p")

    expected = f"Explain {typed} to a child, for $100. {typed}!"
    assert any(text.startswith(expected) for text in texts), (texts, printed)


def test_gemini_cli_asks_first(ask, written):
    """
    What nobody allows, and cannot be asked for, is not run.
    """
    written("gemini-cli", "explain", "--live")
    texts, printed = ask("gemini-cli", "/explain it")

    assert texts == []
    assert "explain cannot be run. Blocked command" in printed


def test_codex_uses_a_skill_that_is_asked_for(ask, project, tmp_path):
    """
    It tells a model of those alone that it may choose by itself.
    """
    assert main(["export", "codex", ".agents/skills", "explain"]) == 0
    options = ("exec", "--skip-git-repo-check")
    asked, _ = ask("codex", "Use $explain for rain", *options)
    other, _ = ask("codex", "Hello", *options)

    assert any("\nExplain {{topic}} to a child, for $100. {{topic}}!\n" in text for text in asked)
    assert not any("Explain something: to a child." in text for text in other)

    (tmp_path / ".agents" / "skills" / "explain" / "agents" / "openai.yaml").unlink()
    chosen, _ = ask("codex", "Hello", *options)
    assert any("Explain something: to a child." in text for text in chosen)
