"""The command of a package: serves its prompts, or runs another command on them."""

import json
import sys

import pytest

from promptkit.cli import packaged


@pytest.fixture
def words(monkeypatch):
    """A function that runs the command with arguments, and returns the words that promptkit gets."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["acme-prompts", *arguments])
        monkeypatch.setattr(packaged, "promptkit", lambda: 0)
        assert packaged.main("acme-prompts", "3.2.1", ["/r"], ["--markdown=*.md", "--tools"]) == 0
        return sys.argv[1:]

    return run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["serve", "/r", "--markdown=*.md", "--tools"]),
        (["--http", "8000"], ["serve", "/r", "--markdown=*.md", "--tools", "--http", "8000"]),
        (["serve", "--strict"], ["serve", "/r", "--markdown=*.md", "--tools", "--strict"]),
        (["list", "--json"], ["list", "/r", "--markdown=*.md", "--json"]),
        (["render", "review", "code=x"], ["render", "--target=/r", "--markdown=*.md", "review", "code=x"]),
        (["check"], ["check", "/r", "--markdown=*.md"]),
        (["install", "--list"], ["install", "--list"]),
        (
            ["install", "zed", "--", "--strict"],
            ["install", "zed", "/r", "--markdown=*.md", "--name", "acme-prompts", "--", "--strict"],
        ),
        (
            ["install", "zed", "--name=a"],
            ["install", "zed", "--name=a", "/r", "--markdown=*.md"],
        ),
    ],
)
def test_commands_get_the_recipes(arguments, expected, words):
    """Each command works on the recipes of the package; without one, they are served."""
    assert words(*arguments) == expected


def test_version_comes_from_the_package(monkeypatch, capsys):
    """`--version` prints the name and the version of the package, and `--help` its commands."""
    for word in ("--version", "--help"):
        monkeypatch.setattr(sys, "argv", ["acme-prompts", word])
        assert packaged.main("acme-prompts", "3.2.1", ["/r"], []) == 0
    version, help_text = capsys.readouterr().out.split("\n", 1)

    assert version == "acme-prompts 3.2.1"
    assert "acme-prompts render NAME" in help_text


def test_temporary_environment_is_not_installed(monkeypatch, capsys):
    """`install` is rejected under uvx, because a client could not start its environment later."""
    monkeypatch.setattr(sys, "argv", ["acme-prompts", "install", "zed"])
    monkeypatch.setattr(sys, "prefix", "/home/you/.cache/uv/archive-v0/x1")

    assert packaged.main("acme-prompts", "3.2.1", ["/r"], []) == 2
    assert "uv tool install acme-prompts" in capsys.readouterr().err


def test_list_shows_the_server(run, recipes, tmp_path):
    """`list` shows the identity of the server, as text and in the form that a client gets."""
    folder = recipes(
        "acme/prompts", greet="from promptkit import prompt\n\n@prompt\ndef greet(): return 'hi'"
    )
    (folder.parent / "pyproject.toml").write_text(
        """
        [project]
        name = "acme-prompts"
        version = "3.2.1"
        [tool.promptkit.server]
        title = "Acme"
        website = "https://acme.example"
        instructions = "Greet\\nfirst."
        """,
        encoding="utf-8",
    )

    text, data = run("list", str(folder))[1], json.loads(run("list", "--json", str(folder))[1])

    assert text.splitlines()[:3] == [
        "server acme-prompts 3.2.1 (Acme)",
        "    website: https://acme.example",
        "    instructions: Greet first.",
    ]
    assert data["serverInfo"] == {
        "name": "acme-prompts",
        "version": "3.2.1",
        "title": "Acme",
        "websiteUrl": "https://acme.example",
    }
    assert data["instructions"] == "Greet\nfirst."
    assert [entry["name"] for entry in data["prompts"]] == ["greet"]


def test_long_instructions_are_reported(run, recipes):
    """`check` reports instructions that hosts truncate, at the project's file."""
    folder = recipes(
        "acme/prompts", greet="from promptkit import prompt\n\n@prompt\ndef greet(): return 'hi'"
    )
    file = folder.parent / "pyproject.toml"
    for count, codes in ((2048, []), (2049, ["PK229"])):
        file.write_text(f"[tool.promptkit.server]\ninstructions = '{'x' * count}'", encoding="utf-8")
        diagnostics = json.loads(run("check", "--json", str(folder))[1])["diagnostics"]
        assert [each["code"] for each in diagnostics] == codes
    assert diagnostics[0]["file"] == str(file)
