"""Each client's configuration, with a server put in, started as it stands there, and taken out again."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from promptkit.clients.configurations import ConfigurationFile, ServerTable
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.clients.servers import command_in, url_in
from tests.cli.install.entries import entries, file_of

#: Files by client: what one writes that was not there, with a URL, and one of somebody's before and after.
GOLDEN = Path(__file__).with_name("golden")
SUFFIX = {"json": ".json", "toml": ".toml", "yaml": ".yaml"}
URL = "https://prompts.example.com/mcp"
WITH_URL = [name for name, settings in INSTALLABLE.items() if settings.url is not None]
WITH_PROJECT = [name for name, settings in INSTALLABLE.items() if settings.project]

#: What platformdirs says of the folder for configuration, which follows people from machine to machine.
ROAMING = {"linux": ".config", "darwin": "Library/Application Support", "win32": "AppData/Roaming"}


def golden(name, kind):
    return (GOLDEN / name / f"{kind}{SUFFIX[INSTALLABLE[name].format]}").read_bytes().decode()


@pytest.fixture
def shown(project):
    """A function that returns a text with the paths of this machine as they stand in golden files."""
    program = shutil.which("promptkit", path=sysconfig.get_path("scripts"))

    def show(file):
        text = file.read_bytes().decode()
        return text.replace(str(project), "/home/me/team prompts").replace(str(program), "/env/bin/promptkit")

    return show


def write(name, text):
    file = file_of(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def entries_before(name):
    return ServerTable(INSTALLABLE[name], golden(name, "before")).entries


@pytest.mark.parametrize("name", INSTALLABLE)
class TestEachClient:
    def test_without_a_file(self, name, project, promptkit, shown):
        """
        One is written that holds the server alone, which only its owner needs no help to read.
        """
        code, out, err = promptkit("install", name)

        assert (code, err) == (0, "")
        assert out.splitlines()[0] == f"{CLIENTS[name].title} has the server 'team-prompts'"
        assert shown(file_of(name)) == golden(name, "missing")

    def test_beside_others(self, name, project, promptkit, shown):
        """
        The server is added to somebody's file, and the rest of it stays; taken out, it is as it was.
        """
        file = write(name, golden(name, "before"))
        code, _, _ = promptkit("install", name)
        after = shown(file)
        told = promptkit("uninstall", name)

        assert (code, after) == (0, golden(name, "after"))
        assert told[0] == 0
        assert set(entries(name)) == set(entries_before(name))

    def test_again(self, name, project, promptkit):
        """
        A second time nothing changes, and that is said.
        """
        promptkit("install", name)
        file = file_of(name)
        before = file.stat()
        code, out, _ = promptkit("install", name)
        after = file.stat()

        assert code == 0
        assert (
            out.splitlines()[0] == f"{CLIENTS[name].title} has the server 'team-prompts': nothing to change"
        )
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)

    def test_what_was_written_works(self, name, project, promptkit, prompts_of):
        """
        The command that stands there serves the prompts, wherever it is started, with an empty environment.
        """
        promptkit("install", name)
        command = command_in(INSTALLABLE[name], entries(name)["team-prompts"])

        assert prompts_of(command) == ["greet"]

    def test_dry_run(self, name, project, promptkit):
        """
        What would change is printed, and nothing is.
        """
        file = write(name, golden(name, "before"))
        code, out, _ = promptkit("install", name, "--dry-run")
        added = [one for one in out.splitlines() if one.startswith("+") and not one.startswith("+++")]

        assert code == 0
        assert any("team-prompts" in one for one in added)
        assert file.read_bytes().decode() == golden(name, "before")

    def test_somebody_elses_server(self, name, project, promptkit):
        """
        A server of that name that is not promptkit's is neither replaced nor taken out.
        """
        promptkit("install", name)
        file = file_of(name)
        text = file.read_text().replace("promptkit", "something")
        file.write_text(text)
        for argv in (
            ["install", name],
            ["uninstall", name],
            ["install", name, "--url", URL, "--name", "team-prompts"],
        ):
            if "--url" in argv and name not in WITH_URL:
                continue
            code, out, err = promptkit(*argv)
            assert (code, out) == (1, "")
            assert err == (
                f"promptkit: {file}: its server 'team-prompts' is not promptkit's: choose another --name\n"
            )
        assert file.read_text() == text

    def test_malformed(self, name, project, promptkit):
        """
        A file that cannot be read is left as it is, and what should stand there is printed.
        """
        file = write(name, "{[: not\n")
        code, out, err = promptkit("install", name)

        assert (code, out) == (1, "")
        assert err.startswith(f"promptkit: {file}")
        assert "it was not changed; you can add this yourself:" in err
        assert "team-prompts" in err
        assert file.read_text() == "{[: not\n"

    def test_uninstall_of_nothing(self, name, project, promptkit):
        """
        Where there is no such server, nothing changes, and no file is made.
        """
        code, out, _ = promptkit("uninstall", name)

        assert code == 0
        assert out.splitlines()[0] == f"{CLIENTS[name].title} has no server 'team-prompts': nothing to change"
        assert not file_of(name).exists()


def test_uninstall_after_a_folder_was_moved(project, promptkit, monkeypatch):
    """
    Those that there are stand below, with what is gone: one of them may be meant. Others are not named.
    """
    write("cursor", '{"mcpServers": {"others": {"command": "npx"}, "away": {"url": "https://a.example"}}}')
    promptkit("install", "cursor")
    (program,) = command_in(INSTALLABLE["cursor"], entries("cursor")["team-prompts"])[:1]
    moved = project.rename(project.with_name("moved"))
    monkeypatch.chdir(moved)
    code, out, err = promptkit("uninstall", "cursor")

    assert (code, err) == (0, "")
    assert out == (
        "Cursor has no server 'moved': nothing to change\n"
        f"    file: {file_of('cursor')}\n"
        "    servers of promptkit's in it, which --name NAME takes out:\n"
        f"        team-prompts: {program} serve '{project / 'prompts'}'\n"
        f"            gone: {project / 'prompts'}\n"
    )
    assert promptkit("uninstall", "cursor", "--name", "team-prompts")[0] == 0
    assert "team-prompts" not in entries("cursor")


@pytest.mark.parametrize("name", WITH_URL)
class TestOverHttp:
    def test_an_entry(self, name, project, promptkit, shown):
        """
        It is reached at the URL, by the name of the host.
        """
        code, _, _ = promptkit("install", name, "--url", URL)

        assert code == 0
        assert shown(file_of(name)) == golden(name, "url")
        assert url_in(INSTALLABLE[name], entries(name)["prompts-example-com"]) == URL

    def test_is_taken_out_by_its_url(self, name, project, promptkit):
        """
        Nothing tells whose a URL is but the URL itself.
        """
        promptkit("install", name, "--url", URL, "--name", "team")
        code, _, err = promptkit("uninstall", name, "--name", "team")
        assert code == 1
        assert f"its server 'team' leads to {URL}" in err

        assert promptkit("uninstall", name, "--name", "team", "--url", URL)[0] == 0
        assert dict(entries(name)) == {}

    def test_that_has_moved(self, name, project, promptkit, data_of):
        """
        An entry with another URL may be anybody's: no `install` changes it, and `--list` does not show it.
        """
        promptkit("install", name, "--url", URL, "--name", "team")
        before = file_of(name).read_bytes()
        way_out = f"leads to {URL}: choose another --name, or uninstall that --url first\n"

        for where in (["--url", "https://b.example/mcp"], []):
            code, _, err = promptkit("install", name, "--name", "team", *where)
            assert (code, err.endswith(way_out)) == (1, True)
        assert file_of(name).read_bytes() == before
        (listed,) = data_of("install", "--list", name)["clients"]
        assert listed["configurations"]["user"]["servers"] == {}

    def test_in_place_of_a_command(self, name, project, promptkit):
        """
        A server that was started is reached instead, and the other way round.
        """
        promptkit("install", name, "--name", "team")
        promptkit("install", name, "--name", "team", "--url", URL)
        assert command_in(INSTALLABLE[name], entries(name)["team"]) is None
        promptkit("uninstall", name, "--name", "team", "--url", URL)
        assert dict(entries(name)) == {}


def test_claude_desktop_takes_no_url(project, promptkit, capsys):
    """
    Its file has no such entries: people are told where it has them.
    """
    with pytest.raises(SystemExit) as end:
        promptkit("install", "claude-desktop", "--url", URL)

    assert end.value.code == 2
    assert capsys.readouterr().err.endswith(
        "promptkit install: error: argument --url: Claude Desktop starts the servers of its file itself: "
        "add it in Claude Desktop under Settings, Connectors\n"
    )


@pytest.mark.parametrize("name", WITH_PROJECT)
def test_a_projects_configuration(name, project, promptkit, monkeypatch):
    """
    It lies in the folder of the project's configuration, from below, too.
    """
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    code, _, _ = promptkit("install", name, "--scope", "project")
    monkeypatch.chdir(project)

    assert code == 0
    assert project in file_of(name, "project").parents
    assert set(entries(name, "project")) == {"team-prompts"}
    assert dict(entries(name)) == {}


@pytest.mark.parametrize("name", sorted(INSTALLABLE.keys() - set(WITH_PROJECT)))
def test_a_client_without_projects(name, project, promptkit, capsys):
    """
    Wrong usage, which is told.
    """
    with pytest.raises(SystemExit) as end:
        promptkit("install", name, "--scope", "project")

    assert end.value.code == 2
    assert (
        f"argument --scope: {CLIENTS[name].title} has no configuration of a project"
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["install"], "name a client: claude-code, claude-desktop, "),
        (["install", "zedd"], "argument CLIENT: there is no client 'zedd': did you mean 'zed'?"),
        (["uninstall", "cline"], "argument CLIENT: there is no client 'cline': "),
        (
            ["install", "zed", "--name", "my prompts"],
            "argument --name: 'my prompts' is not 1 to 64 letters, digits, ",
        ),
        (
            ["install", "zed", "--url", "localhost:80"],
            "argument --url: 'localhost:80' is not a URL: write it as in ",
        ),
        (
            ["install", "zed", "prompts", "--url", URL],
            "unexpected argument 'prompts': the server at --url ",
        ),
        (
            ["uninstall", "zed", "prompts", "--url", URL],
            "unexpected argument 'prompts': the server at --url ",
        ),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_wrong_usage(argv, said, project, promptkit, capsys):
    """
    Each ends with 2, and says what is meant.
    """
    with pytest.raises(SystemExit) as end:
        promptkit(*argv)

    assert end.value.code == 2
    assert f"promptkit {argv[0]}: error: {said}" in capsys.readouterr().err


class TestTargets:
    def test_without_any(self, home, tmp_path, promptkit, monkeypatch):
        """
        A folder without prompts is told; where a name says which server is meant, none are needed.
        """
        (tmp_path / "empty").mkdir()
        monkeypatch.chdir(tmp_path / "empty")

        assert promptkit("install", "zed")[0] == 2
        way_out = "; or name the server by --name, as install --list shows it\n"
        assert promptkit("uninstall", "zed")[2].endswith(way_out)
        assert promptkit("uninstall", "zed", "--name", "x")[0] == 0
        assert promptkit("install", "--list")[0] == 0
        assert promptkit("install", "zed", "--url", URL)[0] == 0

    def test_that_is_missing(self, project, promptkit):
        """
        Nothing is written for prompts that are not there.
        """
        code, _, err = promptkit("install", "zed", "nowhere")

        assert code == 2
        assert err == (
            "promptkit: cannot load 'nowhere': there is no such folder or file, nor such a module that a "
            "client could import; there are recipes in 'prompts/'\n"
        )
        assert not file_of("zed").exists()

    @pytest.mark.parametrize(
        "target", ["prompts", "prompts/greet.py", "prompts/greet.py:greet", "../team prompts/prompts"]
    )
    def test_are_absolute(self, target, project, promptkit, prompts_of):
        """
        A file and an object are served as they would be from here.
        """
        promptkit("install", "zed", target)
        command = command_in(INSTALLABLE["zed"], entries("zed")["team-prompts"])

        assert command[-2:] == ["serve", f"{project}/{target.removeprefix('../team prompts/')}"]
        assert prompts_of(command) == ["greet"]

    @pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
    def test_that_are_the_project(self, mark, project, promptkit):
        """
        A server of prompts that lie in the folder of their project itself is called as that folder.
        """
        (project / "prompts" / mark).mkdir()

        promptkit("install", "zed", "prompts")

        assert set(entries("zed")) == {"prompts"}

    def test_a_module(self, project, promptkit, monkeypatch):
        """
        One that is installed is served by its name; one that is found from here alone is not.
        """
        (project / "local.py").touch()
        monkeypatch.syspath_prepend(str(project))

        assert promptkit("install", "zed", "json.tool")[0] == 0
        assert entries("zed")["json-tool"]["args"] == ["serve", "json.tool"]
        assert promptkit("install", "zed", "local")[0] == 2


class TestList:
    def test_shows_ours(self, project, promptkit, data_of):
        """
        Each client: whether it is there, its files, and the servers of promptkit's in them.
        """
        write("cursor", golden("cursor", "before"))
        write("zed", "{[")
        promptkit("install", "cursor")
        promptkit("install", "codex", "--scope", "project")
        clients = {one["client"]: one for one in data_of("install", "--list")["clients"]}
        code, out, err = promptkit("install", "--list")

        assert list(clients) == list(INSTALLABLE)
        assert clients["cursor"]["found"]
        assert not clients["goose"]["found"]
        assert list(clients["cursor"]["configurations"]["user"]["servers"]) == ["team-prompts"]
        assert "this is not JSON" in clients["zed"]["configurations"]["user"]["error"]
        assert (code, err) == (0, "")
        assert f"cursor: found\n    user: {file_of('cursor')}\n        team-prompts: /" in out
        assert (
            f"    project: {file_of('codex', 'project')}\n        team-prompts: promptkit serve ./prompts"
            in out
        )
        assert f"goose: not found\n    user: {file_of('goose')} (does not exist)\n" in out

    def test_of_one_client(self, project, promptkit, data_of):
        """
        Of a client that is named, and of no other.
        """
        _, out, _ = promptkit("install", "--list", "goose")

        assert [one["client"] for one in data_of("install", "goose", "--list")["clients"]] == ["goose"]
        assert out == f"goose: not found\n    user: {file_of('goose')} (does not exist)\n"

    def test_knows_a_url(self, project, promptkit, data_of):
        """
        A server at a URL is shown if the URL is told.
        """
        promptkit("install", "zed", "--url", URL)

        def found(*argv):
            clients = {one["client"]: one for one in data_of("install", "--list", *argv)["clients"]}
            return list(clients["zed"]["configurations"]["user"]["servers"])

        assert found() == []
        assert found("--url", URL) == ["prompts-example-com"]


def test_what_people_have_changed_stays(project, promptkit):
    """
    An extension that was switched off in goose stays so, also when the prompts have moved.
    """
    promptkit("install", "goose")
    file = file_of("goose")
    file.write_text(file.read_text().replace("enabled: true", "enabled: false"))
    project.rename(project.with_name("moved"))
    promptkit("install", "goose", "../moved/prompts", "--name", "team-prompts")

    assert entries("goose")["team-prompts"]["enabled"] is False
    assert entries("goose")["team-prompts"]["args"] == ["serve", str(project.with_name("moved") / "prompts")]


def test_a_diff_shows_nothing_of_others(project, promptkit):
    """
    The lines beside those that change may hold keys, so they are not printed.
    """
    write("codex", golden("codex", "before"))
    _, out, _ = promptkit("install", "codex", "--dry-run")

    assert "trust_level" not in out
    assert "+[mcp_servers.team-prompts]" in out


def test_json(project, data_of):
    """
    Programs are told which file holds what, whether it was changed, and how.
    """
    told = data_of("install", "windsurf")
    again = data_of("install", "windsurf")

    assert told["file"] == str(file_of("windsurf"))
    assert told["entry"] == entries("windsurf")["team-prompts"]
    assert {key: told[key] for key in ("client", "scope", "name", "changed", "backup", "commands")} == {
        "client": "windsurf",
        "scope": "user",
        "name": "team-prompts",
        "changed": True,
        "backup": None,
        "commands": [],
    }
    assert (again["changed"], again["diff"]) == (False, "")


def test_a_client_that_is_not_there(project, promptkit):
    """
    It may come later; that it was not found is said.
    """
    _, out, _ = promptkit("install", "zed")

    assert out.splitlines()[-1] == "    Zed itself was not found on this machine"


@pytest.mark.parametrize(
    ("platform", "places"),
    [
        (
            "linux",
            {
                "claude-desktop": ".config/Claude/claude_desktop_config.json",
                "vscode": ".config/Code/User/mcp.json",
                "zed": ".config/zed/settings.json",
                "goose": ".config/goose/config.yaml",
                "opencode": ".config/opencode/opencode.json",
                "lm-studio": ".lmstudio/mcp.json",
            },
        ),
        (
            "darwin",
            {
                "claude-desktop": "Library/Application Support/Claude/claude_desktop_config.json",
                "vscode": "Library/Application Support/Code/User/mcp.json",
                "zed": ".config/zed/settings.json",
                "goose": ".config/goose/config.yaml",
            },
        ),
        (
            "win32",
            {
                "claude-desktop": "AppData/Roaming/Claude/claude_desktop_config.json",
                "vscode": "AppData/Roaming/Code/User/mcp.json",
                "zed": "AppData/Roaming/Zed/settings.json",
                "goose": "AppData/Roaming/Block/goose/config/config.yaml",
                "opencode": ".config/opencode/opencode.json",
            },
        ),
    ],
)
def test_where_files_lie(platform, places, home, monkeypatch):
    """
    On each system they lie where the client's documentation says.
    """
    config = home / ROAMING[platform]
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("promptkit.clients.configurations.user_config_path", lambda *, roaming: config)

    assert {name: ConfigurationFile(name).path for name in places} == {
        name: home / place for name, place in places.items()
    }


@pytest.mark.parametrize(
    ("variable", "name", "place"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("GEMINI_CLI_HOME", "gemini-cli", ".gemini/settings.json"),
        ("XDG_CONFIG_HOME", "opencode", "opencode/opencode.json"),
    ],
)
@pytest.mark.usefixtures("home")
def test_folders_that_are_moved(variable, name, place, tmp_path, monkeypatch):
    """
    What a variable of the environment says of a client's folder holds here, too.
    """
    monkeypatch.setenv(variable, str(tmp_path / "moved"))

    assert ConfigurationFile(name).path == tmp_path / "moved" / place


def test_opencodes_other_file(project, promptkit):
    """
    Where it has a file with comments by another name, that one is written.
    """
    file = file_of("opencode").with_suffix(".jsonc")
    file.parent.mkdir(parents=True)
    file.write_text("{} // mine")
    promptkit("install", "opencode")

    assert file_of("opencode") == file
    assert file.read_text().endswith("} // mine")
    assert list(file.parent.iterdir()) == [file]


def test_uninstalling_what_has_no_heading(project, promptkit):
    """
    A server that `install --list` shows, and that cannot be taken out, is not said to be gone.
    """
    file = write("codex", '[mcp_servers]\nours = {command = "/env/bin/promptkit", args = ["serve", "/x"]}\n')
    before = file.read_text()
    listed = promptkit("install", "--list", "codex")[1]
    code, out, err = promptkit("uninstall", "codex", "--name", "ours")

    assert "ours: /env/bin/promptkit serve /x" in listed
    assert (code, out) == (1, "")
    assert "it cannot be changed without changing other parts of the file" in err
    assert file.read_text() == before
