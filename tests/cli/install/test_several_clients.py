"""Several clients at once: how they are told from targets, and that one that is refused holds up no other."""

import json

import pytest

from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from tests.cli.install.entries import entries, file_of

URL = "https://prompts.example.com/mcp"


class TestInstall:
    def test_all_are_named(self, project, promptkit):
        """
        Each has the server, and is told of, in the order in which they are named; a second time none changes.
        """
        code, out, err = promptkit("install", "zed", "goose", "codex", "prompts")
        again = promptkit("install", "zed", "goose", "codex", "prompts")[1]

        assert (code, err) == (0, "")
        said = [line for line in out.splitlines() if not line.startswith(" ")]
        assert said == [f"{title} has the server 'team-prompts'" for title in ("Zed", "goose", "Codex")]
        for name in ("zed", "goose", "codex"):
            assert str(project / "prompts") in json.dumps(entries(name)["team-prompts"])
        assert [line for line in again.splitlines() if not line.startswith(" ")] == [
            f"{line}: nothing to change" for line in said
        ]

    def test_every_client(self, project, data_of):
        """
        All that there are, in one command, and out of all of them.
        """
        put_in = data_of("install", *INSTALLABLE)["changes"]
        taken_out = data_of("uninstall", *INSTALLABLE)["changes"]

        assert [one["client"] for one in put_in] == [one["client"] for one in taken_out] == [*INSTALLABLE]
        assert all(one["changed"] for one in (*put_in, *taken_out))
        assert not any(entries(name) for name in INSTALLABLE)

    def test_one_that_is_refused(self, project, promptkit):
        """
        The others have the server, the reason is told, and the exit code says that not all went well.
        """
        file_of("cursor").parent.mkdir()
        file_of("cursor").write_text("{oops")
        code, out, err = promptkit("install", "zed", "cursor", "windsurf", "--json")

        assert code == 1
        assert [one["client"] for one in json.loads(out)["changes"]] == ["zed", "windsurf"]
        assert f"{file_of('cursor')}:1:2: this is not JSON" in err
        assert file_of("cursor").read_text() == "{oops"

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (
                ["zed", "goose", "--scope", "project"],
                "argument --scope: goose has no configuration of a project",
            ),
            (
                ["zed", "claude-desktop", "--url", URL],
                "argument --url: Claude Desktop starts the servers of its",
            ),
            (
                ["codex", "windsurf", "claude-desktop", "--skills"],
                "Claude Desktop reads no skills from folders",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_wrong_usage_changes_none(self, argv, said, project, refused, home):
        """
        What one of them cannot do is told before any file is written.
        """
        assert said in refused("install", *argv)
        assert not list(home.rglob("*"))

    def test_a_target_that_is_missing_changes_none(self, project, promptkit, home):
        """
        Nor is any written for prompts that are not there.
        """
        assert promptkit("install", "zed", "cursor", "nowhere")[0] == 2
        assert not list(home.rglob("*"))


class TestClientsAndTargets:
    def test_a_folder_that_is_called_as_a_client(self, project, promptkit):
        """
        The name alone means the client, whatever there is; written as a path, it is the folder.
        """
        (project / "cursor").mkdir()
        (project / "cursor" / "more.py").touch()
        promptkit("install", "zed", "cursor")
        assert set(entries("zed")) == set(entries("cursor")) == {"team-prompts"}

        promptkit("install", "zed", "./cursor", "--name", "more")
        assert entries("zed")["more"]["args"] == ["serve", str(project / "cursor")]
        assert "more" not in entries("cursor")

    def test_a_client_behind_a_target(self, project, refused):
        """
        It may mean two things, and so it means none.
        """
        assert refused("install", "zed", "prompts", "cursor") == (
            "promptkit install: error: the client 'cursor' follows a target: name clients first, or "
            "write ./cursor"
        )
        assert not file_of("zed").exists()

    def test_a_client_that_is_misspelt(self, project, promptkit):
        """
        It is taken for a target, and what it may have meant is said.
        """
        code, _, err = promptkit("install", "zed", "cursr")

        assert code == 2
        assert err.endswith("there are recipes in 'prompts/' (it is not a client: did you mean 'cursor'?)\n")

    @pytest.mark.parametrize("target", ["promts", "./promts", "promts:greet"])
    def test_a_target_that_is_misspelt(self, target, project, promptkit):
        """
        What was probably meant is said, as by other commands.
        """
        code, _, err = promptkit("install", "cursor", "vscode", target)

        assert code == 2
        assert err.endswith("nor such a module that a client could import; did you mean 'prompts/'?\n")
        assert not file_of("cursor").exists()

    def test_one_that_is_named_twice(self, project, data_of):
        """
        It counts once.
        """
        assert data_of("install", "zed", "zed", "prompts")["client"] == "zed"

    def test_options_between_them(self, project, promptkit):
        """
        Words are told apart by what they are, wherever options stand.
        """
        promptkit("install", "zed", "--name", "team", "cursor", "--scope", "project", "prompts")

        assert set(entries("zed", "project")) == set(entries("cursor", "project")) == {"team"}

    def test_a_list_of_several(self, project, data_of):
        """
        Of those that are named.
        """
        clients = data_of("install", "--list", "zed", "goose")["clients"]

        assert [one["client"] for one in clients] == ["zed", "goose"]


class TestSkills:
    SKILL = (
        '\nfrom promptkit import skill\n\n@skill(description="Say hello.")\ndef hello(): return "Hello."\n'
    )

    def test_into_several(self, project, home, data_of):
        """
        Into the folder of each; those who read the same one find them there.
        """
        (project / "prompts" / "skills.py").write_text(self.SKILL)
        put_in = data_of("install", "claude-code", "cursor", "--skills")["changes"]

        assert [one["skills"] for one in put_in] == [["hello"], ["hello"]]
        assert (home / ".claude" / "skills" / "hello" / "SKILL.md").exists()
        assert (home / ".cursor" / "skills" / "hello" / "SKILL.md").exists()

    def test_out_of_all(self, project, home, data_of, promptkit):
        """
        Whatever was written, from wherever, and nothing else.
        """
        (project / "prompts" / "skills.py").write_text(self.SKILL)
        (project / "others").mkdir()
        (project / "others" / "skills.py").write_text(self.SKILL.replace("hello", "greet"))
        data_of("install", "claude-code", "cursor", "--skills")
        data_of("install", "cursor", "others", "--skills")
        mine = home / ".cursor" / "skills" / "mine" / "SKILL.md"
        mine.parent.mkdir()
        mine.touch()

        taken_out = data_of("uninstall", "--all", "--skills")["changes"]
        assert [(one["client"], one["removed"]) for one in taken_out] == [
            ("claude-code", ["hello"]),
            ("cursor", ["greet", "hello"]),
        ]
        assert [path for path in home.rglob("*") if path.is_file()] == [mine]
        assert promptkit("uninstall", "--all", "--skills")[1] == (
            "no skills of promptkit's were found: nothing to change\n"
        )


class TestUninstallAll:
    def test_of_every_client(self, project, promptkit, data_of):
        """
        Every server of promptkit's goes, whatever it is called, and nobody else's.
        """
        promptkit("install", "zed", "cursor", "goose")
        promptkit("install", "zed", "--name", "second")
        others = {"mcpServers": {"other": {"command": "x"}, **entries("cursor")}}
        file_of("cursor").write_text(json.dumps(others))

        taken_out = data_of("uninstall", "--all")["changes"]
        assert [(one["client"], one["name"], one["entry"]) for one in taken_out] == [
            ("cursor", "team-prompts", None),
            ("goose", "team-prompts", None),
            ("zed", "team-prompts", None),
            ("zed", "second", None),
        ]
        assert set(entries("cursor")) == {"other"}
        assert promptkit("uninstall", "--all")[1] == "no server of promptkit's was found: nothing to change\n"

    def test_of_one_client(self, project, promptkit):
        """
        Of those that are named, and no other.
        """
        promptkit("install", "zed", "cursor")
        code, out, _ = promptkit("uninstall", "zed", "--all")

        assert code == 0
        assert out.startswith("Zed no longer has the server 'team-prompts'\n")
        assert (set(entries("zed")), set(entries("cursor"))) == (set(), {"team-prompts"})

    def test_a_dry_run(self, project, promptkit):
        """
        It prints what would go, and takes nothing out.
        """
        promptkit("install", "zed", "cursor")
        _, out, _ = promptkit("uninstall", "--all", "--dry-run")

        assert f"--- {file_of('zed')}" in out
        assert f"--- {file_of('cursor')}" in out
        assert set(entries("zed")) == set(entries("cursor")) == {"team-prompts"}

    def test_the_projects_files_stay(self, project, promptkit):
        """
        They are everybody's: what they still have is told, and how it is taken out.
        """
        promptkit("install", "zed", "cursor", "--scope", "project")
        _, out, _ = promptkit("uninstall", "--all")
        assert out.splitlines() == [
            "no server of promptkit's was found: nothing to change",
            *(
                f"{CLIENTS[name].title} still has 'team-prompts' in {file_of(name, 'project')}: "
                "--scope project takes it out"
                for name in ("cursor", "zed")
            ),
        ]

        promptkit("uninstall", "--all", "--scope", "project")
        assert dict(entries("zed", "project")) == dict(entries("cursor", "project")) == {}

    def test_at_a_url(self, project, promptkit):
        """
        Nothing but the URL tells that such an entry is promptkit's.
        """
        promptkit("install", "zed", "--url", URL)
        promptkit("install", "zed")
        promptkit("uninstall", "--all")
        assert set(entries("zed")) == {"prompts-example-com"}

        promptkit("uninstall", "--all", "--url", URL)
        assert dict(entries("zed")) == {}

    def test_one_that_cannot_be_read(self, project, promptkit):
        """
        It is told, and the others are done.
        """
        promptkit("install", "zed")
        file_of("cursor").parent.mkdir()
        file_of("cursor").write_text("{oops")
        code, out, err = promptkit("uninstall", "--all")

        assert code == 1
        assert out.startswith("Zed no longer has the server 'team-prompts'\n")
        assert "this is not JSON" in err

    @pytest.mark.parametrize(
        "argv", [["--all", "zed", "prompts"], ["--all", "--name", "x"]], ids=["a target", "a name"]
    )
    def test_what_does_not_go_with_it(self, argv, project, refused):
        """
        It says which server is meant, and so do these.
        """
        assert refused("uninstall", *argv).endswith(
            "error: --all takes out every server: neither TARGET nor --name is for it"
        )

    def test_without_it_a_client_is_named(self, project, refused):
        """
        Nothing goes without being named, or all.
        """
        assert refused("uninstall").endswith(", zed, or --all")
