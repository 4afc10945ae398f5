"""The clients themselves run the exports, and their requests to a model are recorded."""

import json
import os
import subprocess
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from promptkit.cli import main
from tests.cli.export.clients import ClaudeExpansion, expand_gemini
from tests.clients.node_clients import TEST_TIMEOUT, install
from tests.clients.test_assistants import program

ASSISTANTS = Path(__file__).parents[2] / "clients" / "assistants"

#: Text that must not be executed or changed.
HARMLESS = [
    'it\'s "so", $(touch pwned) `touch pwned` ; touch pwned # && touch pwned | touch pwned',
    "two\nlines\n> pwned\nEOF\n",
    "-n --help %s $HOME ~ * {{args}} \\n",
    "a! b",
]

#: The response to every request of a client.
REFUSAL = b'{"type": "error", "error": {"type": "invalid_request_error", "message": "there is no model"}}'

#: A configuration that sends Codex's requests to the recording server.
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

pytestmark = [pytest.mark.installs, pytest.mark.timeout(2 * TEST_TIMEOUT)]


@pytest.fixture(scope="session")
def assistants(installations):
    """The folder with the installed clients."""
    return install(ASSISTANTS, installations, optional=True) / "node_modules"


@pytest.fixture
def recording_server():
    """The address of a server, and the requests that it has received, as paths and bodies."""
    recorded = []

    class Recorder(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            recorded.append((self.path, json.loads(body)))
            self.send_response(400)
            self.send_header("Content-Length", str(len(REFUSAL)))
            self.end_headers()
            self.wfile.write(REFUSAL)

        def log_message(self, *_): ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Recorder)
    Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", recorded
    server.shutdown()
    server.server_close()


@pytest.fixture
def ask(assistants, recording_server, project, tmp_path):
    """A function that types a command in a client, and returns the sent text and the client's output."""
    address, recorded = recording_server
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

    def run(client, line, *options):
        recorded.clear()
        result = subprocess.run(
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
        bodies = [body for _, body in recorded]
        return [text for body in bodies for text in texts_of(body)], result.stdout + result.stderr

    return run


def texts_of(body):
    """Return the text parts of a request to a vendor."""
    for message in [*body.get("messages", ()), *body.get("contents", ()), *body.get("input", ())]:
        content = message.get("content", message.get("parts"))
        yield from [content] if isinstance(content, str) else (part.get("text", "") for part in content)


@pytest.fixture
def export(project, tmp_path):
    """A function that exports prompts into a client's folder and returns the content of the first file."""

    def run(client, *names_and_options):
        form, folder, suffix = {
            "claude-code": ("claude-commands", ".claude/commands", "md"),
            "gemini-cli": ("gemini-commands", ".gemini/commands", "toml"),
        }[client]
        assert main(["export", form, folder, *names_and_options]) == 0
        return (tmp_path / folder / f"{names_and_options[0]}.{suffix}").read_bytes()

    return run


@pytest.mark.parametrize(
    ("name", "typed"),
    [("explain", 'it\'s $& "so"'), ("compare", "'the sun' moon"), ("explain", "a ! !`b` $1")],
)
def test_claude_code_expands_a_frozen_command(ask, export, name, typed):
    """Claude Code expands arguments as the other tests expect."""
    file = export("claude-code", name)
    texts, output = ask("claude-code", f"/{name} {typed}")

    assert f"{ClaudeExpansion.expand(file, typed).text}\n" in texts, output


@pytest.mark.parametrize("typed", HARMLESS)
def test_claude_code_runs_a_live_command(ask, export, typed):
    """The prompt's text is sent, and nothing else is run."""
    export("claude-code", "explain", "--live")
    texts, output = ask("claude-code", f"/explain {typed}")

    stripped = typed.strip()
    assert f"Explain {stripped} to a child, for $100. {stripped}!\n" in texts, output


def test_claude_code_parses_arguments(ask, export):
    """Named arguments come before the text."""
    export("claude-code", "translate", "--live")
    texts, output = ask("claude-code", "/translate tone=dry Good morning, it's me")

    assert "Translate into German, in a dry tone:\n\nGood morning, it's me\n" in texts, output


@pytest.mark.parametrize(
    ("typed", "reason"),
    [
        (
            "x\n```\ntouch pwned\n```!\ntouch pwned\n```\n!`touch pwned`",
            "changed or truncated the typed arguments",
        ),
        ("x\n{end}\n{end}.\ntouch pwned", "permission check failed"),
        ("x\n{end}.\ntouch pwned", "permission check failed"),
        ("", "'topic' is missing"),
    ],
)
def test_claude_code_sends_nothing_if_a_block_ends_early(ask, export, typed, reason):
    """Input that ends the block early is rejected, even if it contains the marker."""
    marker = export("claude-code", "explain", "--live").splitlines()[-2].decode().removesuffix(".")
    texts, output = ask("claude-code", f"/explain {typed.format(end=marker)}")

    assert texts == []
    assert reason in output


def test_gemini_cli_expands_a_frozen_command(ask, export):
    """Gemini CLI expands arguments as the other tests expect."""
    file = export("gemini-cli", "explain")
    texts, output = ask("gemini-cli", '/explain it\'s $& "so"')

    assert expand_gemini(file, 'it\'s $& "so"') in texts, output


@pytest.mark.parametrize("typed", [HARMLESS[0], HARMLESS[2], HARMLESS[3]])
def test_gemini_cli_runs_a_live_command(ask, export, typed):
    """The prompt's text is sent, and nothing else is run."""
    export("gemini-cli", "explain", "--live")
    texts, output = ask("gemini-cli", f"/explain {typed}", "--approval-mode", "yolo", "-p")

    expected = f"Explain {typed} to a child, for $100. {typed}!"
    assert any(text.startswith(expected) for text in texts), (texts, output)


def test_gemini_cli_asks_for_permission(ask, export):
    """A command without permission is not run if the user cannot be asked."""
    export("gemini-cli", "explain", "--live")
    texts, output = ask("gemini-cli", "/explain it")

    assert texts == []
    assert "explain cannot be run. Blocked command" in output


def test_codex_uses_a_requested_skill(ask, project, tmp_path):
    """Codex lists an exported skill for the model only if the user names it, because of its `openai.yaml`."""
    assert main(["export", "codex", ".agents/skills", "explain"]) == 0
    options = ("exec", "--skip-git-repo-check")
    requested, _ = ask("codex", "Use $explain for rain", *options)
    unrelated, _ = ask("codex", "Hello", *options)

    assert any("\nExplain {{topic}} to a child, for $100. {{topic}}!\n" in text for text in requested)
    assert not any("Explain something: to a child." in text for text in unrelated)

    (tmp_path / ".agents" / "skills" / "explain" / "agents" / "openai.yaml").unlink()
    chosen, _ = ask("codex", "Hello", *options)
    assert any("Explain something: to a child." in text for text in chosen)
