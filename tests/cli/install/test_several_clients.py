"""Several clients in one command: distinguishing them from targets, and errors of single clients."""

import json

import pytest

from promptkit.clients.profiles import INSTALLABLE
from tests.cli.install.entries import config_path, entries

URL = "https://prompts.example.com/mcp"


class TestInstall:
    def test_named_clients(self, project, promptkit):
        """Every named client gets the server and is reported in order; a second run changes nothing."""
        code, out, err = promptkit("install", "zed", "goose", "codex", "prompts")
        repeated = promptkit("install", "zed", "goose", "codex", "prompts")[1]

        assert (code, err) == (0, "")
        lines = [line for line in out.splitlines() if not line.startswith(" ")]
        assert lines == [f"{title} now has the server 'team-prompts'" for title in ("Zed", "goose", "Codex")]
        for name in ("zed", "goose", "codex"):
            assert str(project / "prompts") in json.dumps(entries(name)["team-prompts"])
        assert [line for line in repeated.splitlines() if not line.startswith(" ")] == [
            f"{title} already has the server 'team-prompts': nothing to change"
            for title in ("Zed", "goose", "Codex")
        ]

    def test_pattern_of_markdown_prompts(self, project, promptkit):
        """A pattern is installed as an absolute path, which the client's command serves."""
        (project / "commands" / "git").mkdir(parents=True)
        (project / "commands" / "git" / "tidy.md").write_text("Tidy up.")
        for words in (["commands/**/*.md"], ["commands", "--markdown", "**/*.md"]):
            assert promptkit("install", "claude-code", *words)[0] == 0
            command, *targets = entries("claude-code")["team-prompts"]["args"]

            assert (command, targets[-1]) == ("serve", str(project / "commands" / "**" / "*.md"))
            assert promptkit("list", *targets)[1] == "prompt git-tidy: Tidy up.\n"

    def test_every_client(self, project, promptkit):
        """One command can install into all clients, and another can uninstall from all clients."""
        assert promptkit("install", *INSTALLABLE)[0] == 0
        assert all(entries(name) for name in INSTALLABLE)
        assert promptkit("uninstall", *INSTALLABLE)[0] == 0
        assert not any(entries(name) for name in INSTALLABLE)

    def test_rejected_file(self, project, promptkit):
        """A client with an invalid file is reported and makes the exit code 1; the others get the server."""
        config_path("cursor").parent.mkdir()
        config_path("cursor").write_text("{oops")
        code, _, err = promptkit("install", "zed", "cursor", "windsurf")

        assert code == 1
        assert set(entries("zed")) == set(entries("windsurf")) == {"team-prompts"}
        assert f"{config_path('cursor')}:1:2: it is not valid JSON" in err
        assert config_path("cursor").read_text() == "{oops"

    @pytest.mark.parametrize(
        ("argv", "message"),
        [
            (
                ["zed", "goose", "--scope", "project"],
                "argument --scope: goose has no project configuration",
            ),
            (
                ["zed", "claude-desktop", "--url", URL],
                "argument --url: the configuration of Claude Desktop does not support URLs",
            ),
            (
                ["codex", "windsurf", "claude-desktop", "--skills"],
                "Claude Desktop does not read skills from folders",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_usage_error_changes_nothing(self, argv, message, project, usage_error, home):
        """An option that one client does not support is rejected before any file is written."""
        assert message in usage_error("install", *argv)
        assert not list(home.rglob("*"))

    def test_missing_target_changes_nothing(self, project, promptkit, home):
        """A missing target is an error, and nothing is written."""
        assert promptkit("install", "zed", "cursor", "nowhere")[0] == 2
        assert not list(home.rglob("*"))


class TestClientsAndTargets:
    def test_folder_named_like_a_client(self, project, promptkit):
        """A bare name means the client, and a path means the folder."""
        (project / "cursor").mkdir()
        (project / "cursor" / "more.py").touch()
        promptkit("install", "zed", "cursor")
        assert set(entries("zed")) == set(entries("cursor")) == {"team-prompts"}

        promptkit("install", "zed", "./cursor", "--name", "more")
        assert entries("zed")["more"]["args"] == ["serve", str(project / "cursor")]
        assert "more" not in entries("cursor")

    def test_client_after_target(self, project, usage_error):
        """A client after a target is ambiguous and rejected."""
        assert usage_error("install", "zed", "prompts", "cursor") == (
            "promptkit install: error: the client 'cursor' follows a target: put clients first, or "
            "write ./cursor"
        )
        assert not config_path("zed").exists()

    def test_misspelled_client(self, project, promptkit):
        """A misspelled client is taken for a target, and the error suggests the client."""
        code, _, err = promptkit("install", "zed", "cursr")

        assert code == 2
        assert err.endswith("there are recipes in 'prompts/' (it is not a client: did you mean 'cursor'?)\n")

    @pytest.mark.parametrize("target", ["promts", "./promts", "promts:greet"])
    def test_misspelled_target(self, target, project, promptkit):
        """The error suggests the nearest target, as in other commands."""
        code, _, err = promptkit("install", "cursor", "vscode", target)

        assert code == 2
        assert err.endswith("or a module that a client can import; there are recipes in 'prompts/'\n")
        assert not config_path("cursor").exists()

    def test_client_named_twice(self, project, promptkit):
        """A repeated client counts once."""
        assert promptkit("install", "zed", "zed", "prompts")[1].count("Zed now has the server") == 1

    def test_options_between_clients(self, project, promptkit):
        """Options can appear between clients and targets."""
        promptkit("install", "zed", "--name", "team", "cursor", "--scope", "project", "prompts")

        assert set(entries("zed", "project")) == set(entries("cursor", "project")) == {"team"}

    def test_list_of_several_clients(self, project, promptkit):
        """Only the named clients are listed."""
        _, out, _ = promptkit("install", "--list", "zed", "goose")

        assert [line for line in out.splitlines() if line[0] != " "] == ["zed: not found", "goose: not found"]


class TestSkills:
    SKILL = (
        '\nfrom promptkit import skill\n\n@skill(description="Say hello.")\ndef hello(): return "Hello."\n'
    )

    def test_install_skills(self, project, home, promptkit):
        """Skills are written to the folder of each client."""
        (project / "prompts" / "skills.py").write_text(self.SKILL)

        assert promptkit("install", "claude-code", "cursor", "--skills")[0] == 0
        assert (home / ".claude" / "skills" / "hello" / "SKILL.md").exists()
        assert (home / ".cursor" / "skills" / "hello" / "SKILL.md").exists()

    def test_uninstall_all_skills(self, project, home, promptkit):
        """All installed skills are removed, whatever target they came from, and nothing else."""
        (project / "prompts" / "skills.py").write_text(self.SKILL)
        (project / "others").mkdir()
        (project / "others" / "skills.py").write_text(self.SKILL.replace("hello", "greet"))
        promptkit("install", "claude-code", "cursor", "--skills")
        promptkit("install", "cursor", "others", "--skills")
        mine = home / ".cursor" / "skills" / "mine" / "SKILL.md"
        mine.parent.mkdir()
        mine.touch()

        _, out, _ = promptkit("uninstall", "--all", "--skills")
        assert [line for line in out.splitlines() if line[0] != " "] == [
            "removed 1 skill from Claude Code: hello",
            "removed 2 skills from Cursor: greet, hello",
        ]
        assert [path for path in home.rglob("*") if path.is_file()] == [mine]
        assert promptkit("uninstall", "--all", "--skills")[1] == (
            "no skills from promptkit were found: nothing to change\n"
        )


class TestUninstallAll:
    def test_all_clients(self, project, promptkit):
        """Every server of promptkit's is removed, whatever its name, and no other server."""
        promptkit("install", "zed", "cursor", "goose")
        promptkit("install", "zed", "--name", "second")
        servers = {"mcpServers": {"other": {"command": "x"}, **entries("cursor")}}
        config_path("cursor").write_text(json.dumps(servers))

        _, out, _ = promptkit("uninstall", "--all")
        assert [line for line in out.splitlines() if line[0] != " "] == [
            "Cursor no longer has the server 'team-prompts'",
            "goose no longer has the server 'team-prompts'",
            "Zed no longer has the server 'team-prompts'",
            "Zed no longer has the server 'second'",
        ]
        assert set(entries("cursor")) == {"other"}
        assert promptkit("uninstall", "--all")[1] == "no promptkit server was found: nothing to change\n"

    def test_named_client(self, project, promptkit):
        """Only servers of the named clients are removed."""
        promptkit("install", "zed", "cursor")
        code, out, _ = promptkit("uninstall", "zed", "--all")

        assert code == 0
        assert out.startswith("Zed no longer has the server 'team-prompts'\n")
        assert (set(entries("zed")), set(entries("cursor"))) == (set(), {"team-prompts"})

    def test_dry_run(self, project, promptkit):
        """A dry run prints the removals without making them."""
        promptkit("install", "zed", "cursor")
        _, out, _ = promptkit("uninstall", "--all", "--dry-run")

        assert f"--- {config_path('zed')}" in out
        assert f"--- {config_path('cursor')}" in out
        assert set(entries("zed")) == set(entries("cursor")) == {"team-prompts"}

    def test_project_files_are_kept(self, project, promptkit):
        """Configuration files of the project are shared, so they are kept."""
        promptkit("install", "zed", "cursor", "--scope", "project")
        _, out, _ = promptkit("uninstall", "--all")
        assert out == "no promptkit server was found: nothing to change\n"
        assert set(entries("zed", "project")) == set(entries("cursor", "project")) == {"team-prompts"}

        promptkit("uninstall", "--all", "--scope", "project")
        assert dict(entries("zed", "project")) == dict(entries("cursor", "project")) == {}

    def test_url(self, project, promptkit):
        """An entry with a URL is only removed if `--url` names it."""
        promptkit("install", "zed", "--url", URL)
        promptkit("install", "zed")
        promptkit("uninstall", "--all")
        assert set(entries("zed")) == {"prompts-example-com"}

        promptkit("uninstall", "--all", "--url", URL)
        assert dict(entries("zed")) == {}

    def test_unreadable_file(self, project, promptkit):
        """An unreadable file is reported, and the others are processed."""
        promptkit("install", "zed")
        config_path("cursor").parent.mkdir()
        config_path("cursor").write_text("{oops")
        code, out, err = promptkit("uninstall", "--all")

        assert code == 1
        assert out.startswith("Zed no longer has the server 'team-prompts'\n")
        assert "it is not valid JSON" in err

    @pytest.mark.parametrize(
        "argv", [["--all", "zed", "prompts"], ["--all", "--name", "x"]], ids=["a target", "a name"]
    )
    def test_conflicting_options(self, argv, project, usage_error):
        """`--all` cannot be combined with a target or `--name`."""
        assert usage_error("uninstall", *argv).endswith(
            "error: --all removes every server: omit TARGET and --name"
        )

    def test_client_is_required(self, project, usage_error):
        """Without `--all` a client is required."""
        assert usage_error("uninstall").endswith(", zed, or --all")
