"""Environment variables and options of `serve` in an entry, and the reported limitations of a client."""

import json

import pytest

from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.clients.servers import command_in, variables_in
from tests.cli.install.entries import config_path, entries

URL = "https://prompts.example.com/mcp"
WITH_URL = [name for name, settings in INSTALLABLE.items() if settings.url is not None]

#: The key of the variables by client, from the clients' documentation; all others use `env`.
KEYS = {"goose": "envs", "opencode": "environment"}


def serve_arguments(name, scope="user"):
    """Return the arguments of the program in a client's entry."""
    return command_in(INSTALLABLE[name], entries(name, scope)["team-prompts"])[1:]


@pytest.mark.parametrize("name", INSTALLABLE)
class TestVariables:
    def test_variables_are_written(self, name, project, promptkit):
        """
        Variables are written to the client's key literally, even with `=`, quotes or placeholders of the
        client.
        """
        code, _, err = promptkit(
            "install", name, "--env", "TOKEN=${env:TOKEN}", "--env", "A=1=2 '\"ü", "--env", "EMPTY="
        )

        assert (code, err) == (0, "")
        assert entries(name)["team-prompts"][KEYS.get(name, "env")] == {
            "TOKEN": "${env:TOKEN}",
            "A": "1=2 '\"ü",
            "EMPTY": "",
        }

    def test_variables_are_kept(self, name, project, promptkit):
        """Another `install` keeps the variables, adds new ones, and replaces variables with the same name."""
        promptkit("install", name, "--env", "A=1", "--env", "B=2")
        promptkit("install", name, "--env", "B=3", "--env", "C=4")
        expected = {"A": "1", "B": "3", "C": "4"}
        assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == expected

        _, out, _ = promptkit("install", name)
        assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == expected
        assert ": nothing to change" in out

        promptkit("install", name, "--", "--grace", "5")
        assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == expected


@pytest.mark.parametrize("name", WITH_URL)
def test_variables_are_dropped_for_a_url(name, project, promptkit):
    """An entry with a URL has no variables, and their values are not printed."""
    promptkit("install", name, "--env", "TOKEN=secret")
    _, out, _ = promptkit("install", name, "--url", URL, "--name", "team-prompts")

    assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == {}
    assert "secret" not in out


@pytest.mark.parametrize(
    ("text", "name"),
    [("TOKEN", "TOKEN"), ("=x", ""), ("MY-TOKEN=x", "MY-TOKEN"), ("A B=x", "A B"), ("É=x", "É")],
)
def test_invalid_variable(text, name, project, usage_error):
    """The error shows the name and never the value."""
    assert usage_error("install", "zed", "--env", text) == (
        f"promptkit install: error: argument --env: {name!r} is not a variable name followed by "
        f"'=': write NAME=VALUE"
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (
            ["install", "zed", "--url", URL, "--env", "A=1"],
            "--env only applies to a server that the client starts: omit --url and --skills",
        ),
        (
            ["install", "zed", "--url", URL, "--", "--tools"],
            "-- only applies to a server that the client starts: omit --url and --skills",
        ),
        (
            ["install", "zed", "--skills", "--env", "A=1"],
            "--env only applies to a server that the client starts: omit --url and --skills",
        ),
        (["install", "zed", "--list", "--env", "A=1"], "--env can only be used with install, without --list"),
        (["uninstall", "zed", "--", "--tools"], "-- can only be used with install, without --list"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_options_without_a_started_server(argv, message, project, usage_error):
    """`--env` and `--` are rejected if the command does not write an entry that starts a server."""
    assert usage_error(*argv) == f"promptkit {argv[0]}: error: {message}"


class TestOptions:
    @pytest.mark.parametrize("name", INSTALLABLE)
    def test_options_follow_the_targets(self, name, project, promptkit):
        """Each option is one word after the targets, and `--tools` is added for a client without prompts."""
        code, _, err = promptkit("install", name, "prompts", "--", "--grace", "5", "--name=Team 'A'")
        tools = [] if CLIENTS[name].has_prompts else ["--tools"]

        assert (code, err) == (0, "")
        assert serve_arguments(name) == [
            "serve",
            str(project / "prompts"),
            "--grace=5",
            "--name=Team 'A'",
            *tools,
        ]

    @pytest.mark.parametrize("name", ["claude-code", "codex"])
    def test_installed_command_works(self, name, project, promptkit, served_prompts):
        """The installed command serves the prompts from any folder with an empty environment."""
        promptkit("install", name, "--", "--grace", "5", "--name=Team 'A'")

        assert served_prompts(command_in(INSTALLABLE[name], entries(name)["team-prompts"])) == ["greet"]

    def test_options_are_kept(self, project, promptkit):
        """Another `install` of the same name keeps the options, even for another target."""
        (project / "more").mkdir()
        (project / "more" / "one.py").touch()
        promptkit("install", "zed", "--", "--grace", "5", "--no-watch")
        _, repeated, _ = promptkit("install", "zed")
        promptkit("install", "zed", "more")

        assert ": nothing to change" in repeated
        assert serve_arguments("zed") == ["serve", str(project / "more"), "--grace=5", "--no-watch"]

    def test_options_edited_by_the_user(self, project, promptkit):
        """Options in any form are kept; an unknown one is removed, because `serve` would reject it."""
        promptkit("install", "zed")
        entry = entries("zed")["team-prompts"]
        entry["args"] += ["--grace", "5", "--tools", "--olden=1"]
        config_path("zed").write_text(json.dumps({"context_servers": {"team-prompts": entry}}))
        promptkit("install", "zed")

        assert serve_arguments("zed") == ["serve", str(project / "prompts"), "--grace=5", "--tools"]

    def test_options_are_replaced(self, project, promptkit):
        """The words after `--` replace all options, even if there are none."""
        promptkit("install", "zed", "--", "--grace", "5", "--tools")
        promptkit("install", "zed", "--", "--grace=5", "--strict")
        assert serve_arguments("zed")[2:] == ["--grace=5", "--strict"]

        promptkit("install", "zed", "--")
        assert serve_arguments("zed") == ["serve", str(project / "prompts")]

    def test_tools_are_added_once(self, project, promptkit):
        """`--tools` is not added if the user has already chosen an option for tools."""
        promptkit("install", "codex", "--", "--tools-search")
        assert serve_arguments("codex")[2:] == ["--tools-search"]

        promptkit("install", "codex", "--", "--tools")
        promptkit("install", "codex")
        assert serve_arguments("codex")[2:] == ["--tools"]

    def test_paths_are_absolute(self, project, promptkit):
        """Paths in options become absolute, because a client starts the server in any folder."""
        promptkit("install", "zed", "--", "--audit", "log/audit.jsonl", "--workspace=.")

        assert serve_arguments("zed")[2:] == [
            f"--audit={project / 'log' / 'audit.jsonl'}",
            f"--workspace={project}",
        ]

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (["--grase", "5"], "promptkit serve: error: unknown option '--grase'; did you mean '--grace'?"),
            (["--grace", "x"], "promptkit serve: error: argument --grace: 'x' is not a number from 0 to "),
            (["--workspace", "gone"], "promptkit serve: error: argument --workspace: 'gone' is not a folder"),
            (
                ["prompts"],
                "promptkit install: error: unexpected argument 'prompts' after --: put targets before",
            ),
            (
                ["--http", "80"],
                "promptkit install: error: --http is for HTTP, but clients use stdio for the servers",
            ),
        ],
        ids=" ".join,
    )
    def test_invalid_options(self, options, message, project, usage_error):
        """Invalid options are reported before anything is written."""
        assert usage_error("install", "zed", "--", *options).startswith(message)
        assert not config_path("zed").exists()


class TestLimitations:
    @pytest.mark.parametrize("name", INSTALLABLE)
    def test_limitations_are_listed(self, name, project, promptkit):
        """`install` prints a client's limitations and how to check for them; other clients have none."""
        limitations = CLIENTS[name].limitations
        _, out, _ = promptkit("install", name)
        _, removed, _ = promptkit("uninstall", name)

        for limitation in limitations:
            assert f"    {CLIENTS[name].title} {limitation}\n" in out
            assert limitation not in removed
        assert (f"promptkit check --client {name}" in out) == bool(limitations)

    def test_hidden_prompts(self, project, promptkit):
        """`install` names the prompts that a client's own commands hide; a prefix avoids that."""
        recipe = (project / "prompts" / "greet.py").read_text()
        (project / "prompts" / "plan.py").write_text(recipe.replace("def greet", "def plan"))
        line = "    Gemini CLI has its own command 'plan': give the prompt another name\n"

        assert line in promptkit("install", "gemini-cli")[1]
        assert "own command" not in promptkit("install", "claude-code")[1]
        (project / "prompts" / "plan.py").write_text("import nothing_like_this\n")
        assert "own command" not in promptkit("install", "gemini-cli")[1]

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("zed", "Zed hides prompts with more than 1 argument"),
            ("claude-code", "Claude Code sends assistant turns as user turns"),
            ("gemini-cli", "Gemini CLI sends only the first message of a prompt"),
            ("gemini-cli", "Gemini CLI omits images, recordings, documents, links"),
            ("claude-desktop", "Claude Desktop does not show users documents"),
            ("opencode", "opencode gives each argument one word, and the last argument the rest"),
            ("opencode", "opencode never fills in optional arguments"),
            ("opencode", "type a prompt as /team-prompts:NAME"),
            (
                "claude-code",
                "type a prompt as /mcp__team-prompts__NAME, without arguments, and fill in the form",
            ),
            ("gemini-cli", "Gemini CLI sends the text as a JSON string, with quotes and escapes"),
            ("codex", "Codex does not support prompts: it uses the tools that --tools adds"),
        ],
    )
    def test_wording(self, name, message, project, promptkit):
        """Each limitation is a sentence about the client."""
        assert f"    {message}\n" in promptkit("install", name)[1]
