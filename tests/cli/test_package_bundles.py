"""The bundles of `promptkit package`: MCPB for Claude Desktop, and a plugin for Claude Code."""

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from promptkit.cli import main
from tests.clients.node_clients import TEST_TIMEOUT, install
from tests.wire import initialize, line

CLIENTS = Path(__file__).parents[1] / "clients"

PROJECT = """
[project]
name = "acme-prompts"
version = "3.2.1"
description = "Prompts of Acme."
authors = [{name = "Acme", email = "prompts@acme.example"}]
license = "MIT"
keywords = ["review"]
urls = {Homepage = "https://acme.example"}

[tool.promptkit.server]
title = "Acme prompts"
icons = ["logo.png"]
instructions = "Start with review."
"""

RECIPE = """
from typing import Annotated
from promptkit import Arg, Image, prompt, skill, user

@prompt
def greet(name: str, key: Annotated[str, Arg("The key", env="ACME_KEY", secret=True)] = ""):
    "Greet somebody."
    return f"Hello, {name}."

@prompt
def review(code: str):
    "Review code."
    return f"Review this: {code}"

@skill(files={"references/rules.md": "Be kind."})
def review_changes():
    "Review a change. Use it before a commit."
    return "Read [the rules](references/rules.md)."
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory, png):
    """The folder with both bundles."""
    folder = tmp_path_factory.mktemp("bundles") / "acme"
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "recipes.py").write_text(RECIPE, encoding="utf-8")
    (folder / "pyproject.toml").write_text(PROJECT, encoding="utf-8")
    (folder / "logo.png").write_bytes(png)
    words = [str(folder / "prompts"), "--out", str(folder / "dist"), "--mcpb", "--plugin"]
    assert main(["package", *words]) == 0
    return folder / "dist"


@pytest.fixture(scope="module")
def unpacked(dist, tmp_path_factory):
    """The content of the MCPB file."""
    folder = tmp_path_factory.mktemp("mcpb")
    zipfile.ZipFile(dist / "acme-prompts-3.2.1.mcpb").extractall(folder)
    return folder


@pytest.fixture(params=["mcpb", "plugin"])
def bundle(request, dist, unpacked):
    """The folder of each bundle."""
    return unpacked if request.param == "mcpb" else dist / "acme-prompts-plugin"


def test_manifest_of_claude_desktop(unpacked):
    """The manifest has the server's identity and icon, and asks for the variables of secrets."""
    manifest = json.loads((unpacked / "manifest.json").read_text(encoding="utf-8"))

    assert (manifest["name"], manifest["version"]) == ("acme-prompts", "3.2.1")
    assert (manifest["display_name"], manifest["homepage"]) == ("Acme prompts", "https://acme.example")
    assert manifest["author"] == {"name": "Acme", "email": "prompts@acme.example"}
    assert manifest["user_config"]["ACME_KEY"]["sensitive"] is True
    assert manifest["server"]["mcp_config"]["env"] == {"ACME_KEY": "${user_config.ACME_KEY}"}
    assert (unpacked / manifest["icon"]).read_bytes().startswith(b"\x89PNG")
    assert (unpacked / manifest["server"]["entry_point"]).is_file()


def test_plugin_has_server_skills_and_commands(dist):
    """The plugin has the server, the skill with its files, and commands for prompts that can be frozen."""
    plugin = dist / "acme-prompts-plugin"
    server = json.loads((plugin / ".mcp.json").read_text(encoding="utf-8"))["mcpServers"]["acme-prompts"]

    assert server["args"][-1] == "${CLAUDE_PLUGIN_ROOT}/server.py"
    assert (plugin / "skills/review-changes/references/rules.md").read_text(encoding="utf-8") == "Be kind."
    assert "$ARGUMENTS" in (plugin / "commands/review.md").read_text(encoding="utf-8")
    assert not (plugin / "commands/greet.md").exists()  # it has a secret argument


def test_server_of_a_bundle_reports_its_version(bundle, tmp_path):
    """The script starts the server of the package, and names what uv installs for it."""
    script = (bundle / "server.py").read_text(encoding="utf-8")
    head = "\n".join(text.removeprefix("# ") for text in script.splitlines()[1:3])
    done = subprocess.run(
        [sys.executable, bundle / "server.py"],
        input=line(initialize("2025-11-25")).decode(),
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    server = json.loads(done.stdout)["result"]["serverInfo"]

    assert (server["name"], server["version"], server["title"]) == ("acme-prompts", "3.2.1", "Acme prompts")
    assert any(each.startswith("mcp-promptkit") for each in tomllib.loads(head)["dependencies"])


def test_bundles_are_reproducible(dist):
    """The same recipes produce the same bytes."""
    before = (dist / "acme-prompts-3.2.1.mcpb").read_bytes()
    target = str(dist.parent / "prompts")

    assert main(["package", target, "--out", str(dist), "--mcpb"]) == 0
    assert (dist / "acme-prompts-3.2.1.mcpb").read_bytes() == before


@pytest.mark.installs
@pytest.mark.timeout(TEST_TIMEOUT)
def test_official_tool_accepts_the_bundle(dist, unpacked, installations):
    """Anthropic's own tool for MCPB validates the manifest, and reads the file."""
    program = install(CLIENTS / "mcpb", installations) / "node_modules" / ".bin" / "mcpb"
    for words in (["validate", unpacked / "manifest.json"], ["info", dist / "acme-prompts-3.2.1.mcpb"]):
        done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.installs
@pytest.mark.timeout(2 * TEST_TIMEOUT)
def test_claude_code_accepts_the_plugin(dist, installations, tmp_path):
    """`claude plugin validate` accepts the plugin."""
    modules = install(CLIENTS / "assistants", installations, optional=True) / "node_modules"
    program = next(modules.glob("@anthropic-ai/claude-code-*/claude"))
    done = subprocess.run(
        [program, "plugin", "validate", dist / "acme-prompts-plugin"],
        capture_output=True,
        text=True,
        check=False,
        env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "CI": "1"},
    )

    assert done.returncode == 0, done.stdout + done.stderr
