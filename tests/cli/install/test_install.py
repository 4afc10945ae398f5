"""Each client's configuration: servers are added, started from it, and removed again."""

import shutil
import sysconfig
from pathlib import Path

import pytest

from promptkit.clients.configuration_files import ConfigurationFile, ServerTable
from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.clients.servers import command_in, url_in
from promptkit.compiler.compilation import compile
from tests.cli.install.entries import config_path, entries

#: Expected files by client: a new one, one with a URL, and a user's file before and after the installation.
GOLDEN = Path(__file__).with_name("golden")
SUFFIX = {"json": ".json", "toml": ".toml", "yaml": ".yaml"}
URL = "https://prompts.example.com/mcp"
WITH_URL = [name for name, settings in INSTALLABLE.items() if settings.url is not None]
WITH_TOKEN = [name for name, settings in INSTALLABLE.items() if settings.token]
WITH_PROJECT = [name for name, settings in INSTALLABLE.items() if settings.project]

#: The roaming configuration folder of each platform, as platformdirs returns it.
ROAMING = {"linux": ".config", "darwin": "Library/Application Support", "win32": "AppData/Roaming"}


def golden(name, kind):
    return (GOLDEN / name / f"{kind}{SUFFIX[INSTALLABLE[name].format]}").read_bytes().decode()


@pytest.fixture
def read_normalized(project):
    """A function that reads a file and replaces this machine's paths by those in the expected files."""
    program = shutil.which("promptkit", path=sysconfig.get_path("scripts"))

    def normalize(file):
        text = file.read_bytes().decode()
        return text.replace(str(project), "/home/me/team prompts").replace(str(program), "/env/bin/promptkit")

    return normalize


def write(name, text):
    file = config_path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode())
    return file


def entries_before(name):
    return ServerTable(INSTALLABLE[name], golden(name, "before")).entries


@pytest.mark.parametrize("name", INSTALLABLE)
class TestEachClient:
    def test_new_file(self, name, project, promptkit, read_normalized):
        """If there is no configuration file, the new file contains only the server."""
        code, out, err = promptkit("install", name)

        assert (code, err) == (0, "")
        assert out.splitlines()[0] == f"{CLIENTS[name].title} now has the server 'team-prompts'"
        assert read_normalized(config_path(name)) == golden(name, "missing")

    def test_existing_file(self, name, project, promptkit, read_normalized):
        """
        The server is added to an existing file, the rest of it stays, and uninstalling restores the entries.
        """
        file = write(name, golden(name, "before"))
        code, _, _ = promptkit("install", name)
        after = read_normalized(file)
        uninstalled = promptkit("uninstall", name)

        assert (code, after) == (0, golden(name, "after"))
        assert uninstalled[0] == 0
        assert set(entries(name)) == set(entries_before(name))

    def test_second_install(self, name, project, promptkit):
        """A second installation changes nothing and reports that."""
        promptkit("install", name)
        file = config_path(name)
        before = file.stat()
        code, out, _ = promptkit("install", name)
        after = file.stat()

        assert code == 0
        assert (
            out.splitlines()[0]
            == f"{CLIENTS[name].title} already has the server 'team-prompts': nothing to change"
        )
        assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)

    def test_dry_run(self, name, project, promptkit):
        """A dry run prints the changes without making them."""
        file = write(name, golden(name, "before"))
        code, out, _ = promptkit("install", name, "--dry-run")
        added = [line for line in out.splitlines() if line.startswith("+") and not line.startswith("+++")]

        assert code == 0
        assert any("team-prompts" in line for line in added)
        assert file.read_bytes().decode() == golden(name, "before")

    def test_server_that_promptkit_did_not_add_is_kept(self, name, project, promptkit):
        """A server of the same name that was not added by promptkit is neither replaced nor removed."""
        promptkit("install", name)
        file = config_path(name)
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
                f"promptkit: {file}: its server 'team-prompts' was not added by promptkit: choose "
                "another --name\n"
            )
        assert file.read_text() == text

    def test_malformed_file(self, name, project, promptkit):
        """An unreadable file stays unchanged, and the error shows the entry to add."""
        file = write(name, "{[: not\n")
        code, out, err = promptkit("install", name)

        assert (code, out) == (1, "")
        assert err.startswith(f"promptkit: {file}")
        assert "the file was not changed; you can add this yourself:" in err
        assert "team-prompts" in err
        assert file.read_text() == "{[: not\n"

    def test_uninstall_without_a_server(self, name, project, promptkit):
        """If there is no such server, nothing changes, and no file is created."""
        code, out, _ = promptkit("uninstall", name)

        assert code == 0
        assert out.splitlines()[0] == f"{CLIENTS[name].title} has no server 'team-prompts': nothing to change"
        assert not config_path(name).exists()


def test_uninstall_after_moving_the_project(project, promptkit, monkeypatch):
    """After a move, the server has its old name, which `--name` removes."""
    write("cursor", '{"mcpServers": {"others": {"command": "npx"}, "away": {"url": "https://a.example"}}}')
    promptkit("install", "cursor")
    moved = project.rename(project.with_name("moved"))
    monkeypatch.chdir(moved)
    code, out, err = promptkit("uninstall", "cursor")

    assert (code, err) == (0, "")
    assert out == (f"Cursor has no server 'moved': nothing to change\n    file: {config_path('cursor')}\n")
    assert promptkit("uninstall", "cursor", "--name", "team-prompts")[0] == 0
    assert "team-prompts" not in entries("cursor")


@pytest.mark.parametrize("name", WITH_URL)
class TestOverHttp:
    def test_an_entry(self, name, project, promptkit, read_normalized):
        """The entry has the URL, and its name comes from the host."""
        code, _, _ = promptkit("install", name, "--url", URL)

        assert code == 0
        assert read_normalized(config_path(name)) == golden(name, "url")
        assert url_in(INSTALLABLE[name], entries(name)["prompts-example-com"]) == URL

    def test_uninstall_needs_the_url(self, name, project, promptkit):
        """An entry with a URL is recognized as promptkit's only by that URL."""
        promptkit("install", name, "--url", URL, "--name", "team")
        code, _, err = promptkit("uninstall", name, "--name", "team")
        assert code == 1
        assert f"its server 'team' has the URL {URL}" in err

        assert promptkit("uninstall", name, "--name", "team", "--url", URL)[0] == 0
        assert dict(entries(name)) == {}

    def test_changed_url(self, name, project, promptkit):
        """An entry with another URL is not changed by `install` or shown by `--list`."""
        promptkit("install", name, "--url", URL, "--name", "team")
        before = config_path(name).read_bytes()
        suggestion = f"has the URL {URL}: choose another --name, or uninstall that URL first\n"

        for option in (["--url", "https://b.example/mcp"], []):
            code, _, err = promptkit("install", name, "--name", "team", *option)
            assert (code, err.endswith(suggestion)) == (1, True)
        assert config_path(name).read_bytes() == before
        assert "team" not in promptkit("install", "--list", name)[1].replace(str(project), "")

    def test_switch_from_command_to_url(self, name, project, promptkit):
        """An entry with a command becomes one with a URL."""
        promptkit("install", name, "--name", "team")
        promptkit("install", name, "--name", "team", "--url", URL)
        assert command_in(INSTALLABLE[name], entries(name)["team"]) is None
        promptkit("uninstall", name, "--name", "team", "--url", URL)
        assert dict(entries(name)) == {}


@pytest.mark.parametrize("name", WITH_TOKEN)
class TestTokens:
    def test_an_entry(self, name, project, promptkit, read_normalized):
        """
        The entry has the variable's name in the client's own form, and `install` prints where to set it.
        """
        code, out, _ = promptkit("install", name, "--url", URL, "--token-env", "TEAM_TOKEN")

        assert code == 0
        assert read_normalized(config_path(name)) == golden(name, "token")
        title = CLIENTS[name].title
        assert out.endswith(
            f"    {title} sends the token in the variable TEAM_TOKEN: set it where you start {title}\n"
        )

    def test_later_installs_keep_the_token(self, name, project, promptkit):
        """The variable stays if the option is omitted, and changes if it is given."""
        argv = ("install", name, "--name", "team")
        promptkit(*argv, "--url", URL, "--token-env", "TEAM_TOKEN")
        before = config_path(name).read_text()
        promptkit(*argv, "--url", URL)
        assert config_path(name).read_text() == before

        promptkit(*argv, "--url", URL, "--token-env", "NEW_TOKEN")
        assert config_path(name).read_text() == before.replace("TEAM_TOKEN", "NEW_TOKEN")
        promptkit("uninstall", name, "--name", "team", "--url", URL)
        assert dict(entries(name)) == {}


def test_other_headers_are_kept(project, promptkit):
    """The token is added to the headers that a user has written."""
    promptkit("install", "cursor", "--url", URL, "--name", "team")
    file = config_path("cursor")
    file.write_text(file.read_text().replace(f'"{URL}"', f'"{URL}", "headers": {{"X-Team": "core"}}'))
    promptkit("install", "cursor", "--url", URL, "--name", "team", "--token-env", "TOKEN")

    assert entries("cursor")["team"]["headers"] == {"X-Team": "core", "Authorization": "Bearer ${env:TOKEN}"}


@pytest.mark.parametrize("name", sorted({*WITH_URL} - {*WITH_TOKEN}))
def test_client_without_variables(name, project, usage_error):
    """
    `--token-env` is rejected for a client that cannot send the value of a variable, and the error refers to a
    workaround.
    """
    message = usage_error("install", name, "--url", URL, "--token-env", "TOKEN")

    assert f"argument --token-env: {CLIENTS[name].title} " in message
    assert message.endswith("as described in docs/clients.md")
    assert not config_path(name).exists()


def test_claude_desktop_takes_no_url(project, promptkit, capsys):
    """A URL cannot be installed in Claude Desktop; the error names the place in its settings."""
    with pytest.raises(SystemExit) as exit:
        promptkit("install", "claude-desktop", "--url", URL)

    assert exit.value.code == 2
    assert capsys.readouterr().err.endswith(
        "promptkit install: error: argument --url: "
        "the configuration of Claude Desktop does not support URLs: "
        "add it in Claude Desktop under Settings, Connectors\n"
    )


@pytest.mark.parametrize("name", WITH_PROJECT)
def test_project_configuration(name, project, promptkit, monkeypatch):
    """`--scope project` writes to the project's folder, even from a folder below it."""
    (project / "below").mkdir()
    monkeypatch.chdir(project / "below")
    code, _, _ = promptkit("install", name, "--scope", "project")
    monkeypatch.chdir(project)

    assert code == 0
    assert project in config_path(name, "project").parents
    assert set(entries(name, "project")) == {"team-prompts"}
    assert dict(entries(name)) == {}


@pytest.mark.parametrize("name", sorted(INSTALLABLE.keys() - set(WITH_PROJECT)))
def test_client_without_project_configuration(name, project, promptkit, capsys):
    with pytest.raises(SystemExit) as exit:
        promptkit("install", name, "--scope", "project")

    assert exit.value.code == 2
    assert f"argument --scope: {CLIENTS[name].title} has no project configuration" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["install"], "name a client: claude-code, claude-desktop, "),
        (["install", "zedd"], "argument CLIENT: unknown client 'zedd': did you mean 'zed'?"),
        (["uninstall", "langchain"], "argument CLIENT: unknown client 'langchain': "),
        (
            ["install", "zed", "--name", "my prompts"],
            "argument --name: 'my prompts' is not a valid name: use 1 to 64 letters, digits, ",
        ),
        (
            ["install", "zed", "--url", "localhost:80"],
            "argument --url: 'localhost:80' is not an HTTP URL: expected something like ",
        ),
        (["install", "cursor", "--token-env", "TOKEN"], "--token-env is for a server over HTTP: add --url"),
        (
            ["install", "cursor", "--url", URL, "--token-env", "a-b"],
            "argument --token-env: 'a-b' is not the name of a variable: use a name such as PROMPTS_TOKEN",
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
def test_wrong_usage(argv, message, project, promptkit, capsys):
    """Wrong usage exits with 2 and an explanation."""
    with pytest.raises(SystemExit) as exit:
        promptkit(*argv)

    assert exit.value.code == 2
    assert f"promptkit {argv[0]}: error: {message}" in capsys.readouterr().err


class TestTargets:
    def test_no_prompts(self, home, tmp_path, promptkit, monkeypatch):
        """
        A folder without prompts is an error, unless `--name`, `--url` or `--list` makes a target unnecessary.
        """
        (tmp_path / "empty").mkdir()
        monkeypatch.chdir(tmp_path / "empty")

        assert promptkit("install", "zed")[0] == 2
        suggestion = "; or pass the server's name with --name, as shown by install --list\n"
        assert promptkit("uninstall", "zed")[2].endswith(suggestion)
        assert promptkit("uninstall", "zed", "--name", "x")[0] == 0
        assert promptkit("install", "--list")[0] == 0
        assert promptkit("install", "zed", "--url", URL)[0] == 0

    def test_missing_target(self, project, promptkit):
        """A missing target is an error, and nothing is written."""
        code, _, err = promptkit("install", "zed", "nowhere")

        assert code == 2
        assert err == (
            "promptkit: cannot load 'nowhere': it is not a folder, a file, or a module that a "
            "client can import; there are recipes in 'prompts/'\n"
        )
        assert not config_path("zed").exists()

    @pytest.mark.parametrize(
        "target", ["prompts", "prompts/greet.py", "prompts/greet.py:greet", "../team prompts/prompts"]
    )
    def test_targets_become_absolute(self, target, project, promptkit, monkeypatch, tmp_path):
        """Targets become absolute paths, so they are served in the same way from any other folder."""
        promptkit("install", "zed", target)
        command = command_in(INSTALLABLE["zed"], entries("zed")["team-prompts"])

        assert command[-2:] == ["serve", f"{project}/{target.removeprefix('../team prompts/')}"]
        monkeypatch.chdir(tmp_path)
        assert list(compile(command[-1])) == ["greet"]

    @pytest.mark.parametrize("mark", ["pyproject.toml", ".git"])
    def test_target_with_its_own_project(self, mark, project, promptkit):
        """If the target is a project's root, the server is named after that folder."""
        (project / "prompts" / mark).mkdir()

        promptkit("install", "zed", "prompts")

        assert set(entries("zed")) == {"prompts"}

    def test_a_module(self, project, promptkit, monkeypatch):
        """
        An installed module is served by its name; a module that can only be imported from here is rejected.
        """
        (project / "local.py").touch()
        monkeypatch.syspath_prepend(str(project))

        assert promptkit("install", "zed", "json.tool")[0] == 0
        assert entries("zed")["json-tool"]["args"] == ["serve", "json.tool"]
        assert promptkit("install", "zed", "local")[0] == 2


class TestList:
    def test_list(self, project, promptkit):
        """
        The list shows for each client whether it was found, its files, and promptkit's servers in these
        files.
        """
        write("cursor", golden("cursor", "before"))
        write("zed", "{[")
        promptkit("install", "cursor")
        promptkit("install", "codex", "--scope", "project")
        code, out, err = promptkit("install", "--list")

        assert (code, err) == (0, "")
        assert [line.partition(":")[0] for line in out.splitlines() if line[0] != " "] == [*INSTALLABLE]
        assert (
            f"    user: {config_path('zed')}\n        {config_path('zed')}:1:2: it is not valid JSON" in out
        )
        assert f"cursor: found\n    user: {config_path('cursor')}\n        team-prompts: /" in out
        assert (
            f"    project: {config_path('codex', 'project')}\n        team-prompts: promptkit serve ./prompts"
            in out
        )
        assert f"goose: not found\n    user: {config_path('goose')} (does not exist)\n" in out

    def test_list_of_one_client(self, project, promptkit):
        """Only the named client is listed."""
        _, out, _ = promptkit("install", "--list", "goose")

        assert out == f"goose: not found\n    user: {config_path('goose')} (does not exist)\n"

    def test_list_with_url(self, project, promptkit):
        """A server with a URL is listed if `--url` names it."""
        promptkit("install", "zed", "--url", URL)

        assert URL not in promptkit("install", "--list")[1]
        assert f"        prompts-example-com: {URL}\n" in promptkit("install", "--list", "--url", URL)[1]


def test_user_changes_are_kept(project, promptkit):
    """A user's change to an entry, such as a disabled extension, survives a new installation."""
    promptkit("install", "goose")
    file = config_path("goose")
    file.write_text(file.read_text().replace("enabled: true", "enabled: false"))
    project.rename(project.with_name("moved"))
    promptkit("install", "goose", "../moved/prompts", "--name", "team-prompts")

    assert entries("goose")["team-prompts"]["enabled"] is False
    assert entries("goose")["team-prompts"]["args"] == ["serve", str(project.with_name("moved") / "prompts")]


def test_diff_hides_neighbouring_lines(project, promptkit):
    """Neighbouring lines are not printed, because they could contain keys."""
    write("codex", golden("codex", "before"))
    _, out, _ = promptkit("install", "codex", "--dry-run")

    assert "trust_level" not in out
    assert "+[mcp_servers.team-prompts]" in out


def test_missing_client(project, promptkit):
    """A client that was not found still gets the server, and the output reports that."""
    _, out, _ = promptkit("install", "zed")

    assert out.splitlines()[-1] == "    Zed itself was not found on this machine"


@pytest.mark.parametrize(
    ("platform", "paths"),
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
def test_paths_by_platform(platform, paths, home, monkeypatch):
    """The paths match the clients' documentation for each platform."""
    config = home / ROAMING[platform]
    monkeypatch.setattr("sys.platform", platform)
    monkeypatch.setattr("promptkit.clients.configuration_files.user_config_path", lambda *, roaming: config)

    assert {name: ConfigurationFile(name).path for name in paths} == {
        name: home / path for name, path in paths.items()
    }


@pytest.mark.parametrize(
    ("variable", "name", "path"),
    [
        ("CLAUDE_CONFIG_DIR", "claude-code", ".claude.json"),
        ("CLINE_DIR", "cline", "data/settings/cline_mcp_settings.json"),
        ("CODEX_HOME", "codex", "config.toml"),
        ("COPILOT_HOME", "copilot-cli", "mcp-config.json"),
        ("GEMINI_CLI_HOME", "gemini-cli", ".gemini/settings.json"),
        ("QWEN_HOME", "qwen-code", "settings.json"),
        ("XDG_CONFIG_HOME", "opencode", "opencode/opencode.json"),
    ],
)
@pytest.mark.usefixtures("home")
def test_folder_variables(variable, name, path, tmp_path, monkeypatch):
    """Environment variables that move a client's folder are respected."""
    monkeypatch.setenv(variable, str(tmp_path / "moved"))

    assert ConfigurationFile(name).path == tmp_path / "moved" / path


def test_opencode_jsonc_file(project, promptkit):
    """An existing `opencode.jsonc` is used instead of `opencode.json`."""
    file = config_path("opencode").with_suffix(".jsonc")
    file.parent.mkdir(parents=True)
    file.write_text("{} // mine")
    promptkit("install", "opencode")

    assert config_path("opencode") == file
    assert file.read_text().endswith("} // mine")
    assert list(file.parent.iterdir()) == [file]


def test_cline_in_vs_code(project, promptkit):
    """Without a file of Cline's command line, an existing file of its extension for VS Code is used."""
    extension = config_path("vscode").parent / "globalStorage/saoudrizwan.claude-dev/settings"
    extension.mkdir(parents=True)
    (extension / "cline_mcp_settings.json").write_text("{}")
    promptkit("install", "cline")

    assert config_path("cline").parent == extension
    assert set(entries("cline")) == {"team-prompts"}


class TestOtherProjects:
    @pytest.fixture
    def other(self, project, promptkit, tmp_path, monkeypatch):
        """The current folder: a project with the same name as an installed one."""
        promptkit("install", "cursor")
        other = tmp_path / "elsewhere" / project.name
        shutil.copytree(project, other)
        monkeypatch.chdir(other)
        return other

    @pytest.mark.parametrize("command", ["install", "uninstall"])
    def test_a_server_of_another_project_is_kept(self, command, project, other, promptkit):
        """Two projects of the same name do not replace or remove each other's server."""
        before = config_path("cursor").read_text()
        code, out, err = promptkit(command, "cursor")

        assert (code, out) == (1, "")
        assert err == (
            f"promptkit: {config_path('cursor')}: its server 'team-prompts' serves {project / 'prompts'}, "
            "which belongs to another project: choose another name with --name\n"
        )
        assert config_path("cursor").read_text() == before

    def test_both_can_be_installed_and_removed(self, other, promptkit):
        """With another name, both are installed, and each is removed by its name."""
        assert promptkit("install", "cursor", "--name", "mine")[0] == 0
        assert set(entries("cursor")) == {"team-prompts", "mine"}
        for name in ("mine", "team-prompts"):
            assert promptkit("uninstall", "cursor", "--name", name)[0] == 0
        assert dict(entries("cursor")) == {}

    def test_a_server_without_recipes_is_replaced(self, project, other, promptkit):
        """If the recipes of the installed server are gone, it is replaced."""
        shutil.rmtree(project)

        assert promptkit("install", "cursor")[0] == 0
        assert entries("cursor")["team-prompts"]["args"] == ["serve", str(other / "prompts")]


def test_uninstall_of_inline_tables(project, promptkit):
    """A server in an inline table is listed, and removing it is an error."""
    file = write("codex", '[mcp_servers]\nours = {command = "/env/bin/promptkit", args = ["serve", "/x"]}\n')
    before = file.read_text()
    listed = promptkit("install", "--list", "codex")[1]
    code, out, err = promptkit("uninstall", "codex", "--name", "ours")

    assert "ours: /env/bin/promptkit serve /x" in listed
    assert (code, out) == (1, "")
    assert "it cannot be changed without changing other parts of the file" in err
    assert file.read_text() == before
