"""What a client starts a server with: variables of the environment and options; and what is said of it."""

import json

import pytest

from promptkit.clients.profiles import CLIENTS, INSTALLABLE
from promptkit.clients.servers import command_in, variables_in
from tests.cli.install.entries import entries, file_of

URL = "https://prompts.example.com/mcp"
WITH_URL = [name for name, settings in INSTALLABLE.items() if settings.url is not None]

#: Where each client has the variables, as their documentation says; elsewhere ``env``.
KEYS = {"goose": "envs", "opencode": "environment"}


def words(name, scope="user"):
    """What follows the program in the entry of a client."""
    return command_in(INSTALLABLE[name], entries(name, scope)["team-prompts"])[1:]


@pytest.mark.parametrize("name", INSTALLABLE)
class TestVariables:
    def test_stand_where_the_client_reads_them(self, name, project, promptkit):
        """
        Each as it is written, also with ``=``, quotes and what a client may put something in for.
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

    def test_are_kept(self, name, project, promptkit):
        """
        By the next `install`, which adds its own, and changes those of the same name.
        """
        promptkit("install", name, "--env", "A=1", "--env", "B=2")
        promptkit("install", name, "--env", "B=3", "--env", "C=4")
        wanted = {"A": "1", "B": "3", "C": "4"}
        assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == wanted

        _, out, _ = promptkit("install", name)
        assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == wanted
        assert ": nothing to change" in out
        assert "removed" not in out

        _, out, _ = promptkit("install", name, "--", "--grace", "5")
        assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == wanted
        assert "removed" not in out


@pytest.mark.parametrize("name", WITH_URL)
def test_variables_go_where_the_server_is_reached(name, project, promptkit, data_of):
    """
    What is not started has no environment; that they are gone is said, without their values.
    """
    promptkit("install", name, "--env", "TOKEN=secret")
    told = data_of("install", name, "--url", URL, "--name", "team-prompts")

    assert variables_in(INSTALLABLE[name], entries(name)["team-prompts"]) == {}
    assert "TOKEN" in told["removed"]
    assert "secret" not in "".join(told["removed"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [("TOKEN", "TOKEN"), ("=x", ""), ("MY-TOKEN=x", "MY-TOKEN"), ("A B=x", "A B"), ("É=x", "É")],
)
def test_what_is_no_variable(text, shown, project, refused):
    """
    The name is told, and no value.
    """
    assert refused("install", "zed", "--env", text) == (
        f"promptkit install: error: argument --env: {shown!r} is not a variable name followed by "
        f"'=': write NAME=VALUE"
    )


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["install", "zed", "--url", URL, "--env", "A=1"], "--env is for a server that the client starts"),
        (["install", "zed", "--url", URL, "--", "--tools"], "-- is for a server that the client starts"),
        (["install", "zed", "--skills", "--env", "A=1"], "--env is for a server that the client starts"),
        (["install", "zed", "--list", "--env", "A=1"], "--env is for what install writes"),
        (["uninstall", "zed", "--", "--tools"], "-- is for what install writes"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_where_nothing_is_started(argv, said, project, refused):
    """
    Nothing is started with anything, and that is said.
    """
    assert refused(*argv) == f"promptkit {argv[0]}: error: {said}"


class TestOptions:
    @pytest.mark.parametrize("name", INSTALLABLE)
    def test_stand_behind_the_targets(self, name, project, promptkit, prompts_of):
        """
        Each as one word; a client without prompts is offered tools all the same, and the server starts.
        """
        code, _, err = promptkit("install", name, "prompts", "--", "--grace", "5", "--name=Team 'A'")
        tools = [] if CLIENTS[name].has_prompts else ["--tools"]

        assert (code, err) == (0, "")
        assert words(name) == ["serve", str(project / "prompts"), "--grace=5", "--name=Team 'A'", *tools]
        assert prompts_of(command_in(INSTALLABLE[name], entries(name)["team-prompts"])) == ["greet"]

    def test_are_kept(self, project, promptkit):
        """
        By the next `install` of the same name, for other prompts, too.
        """
        (project / "more").mkdir()
        (project / "more" / "one.py").touch()
        promptkit("install", "zed", "--", "--grace", "5", "--no-watch")
        _, again, _ = promptkit("install", "zed")
        _, other, _ = promptkit("install", "zed", "more")

        assert ": nothing to change" in again
        assert words("zed") == ["serve", str(project / "more"), "--grace=5", "--no-watch"]
        assert f"    removed: {project / 'prompts'}\n" in other
        assert "--grace" not in other

    def test_that_people_wrote_are_kept(self, project, promptkit):
        """
        In whatever form; what is no option of `serve` goes, as the server would not start, and is told.
        """
        promptkit("install", "zed")
        entry = entries("zed")["team-prompts"]
        entry["args"] += ["--grace", "5", "--tools", "--olden=1"]
        file_of("zed").write_text(json.dumps({"context_servers": {"team-prompts": entry}}))
        _, out, _ = promptkit("install", "zed")

        assert words("zed") == ["serve", str(project / "prompts"), "--grace=5", "--tools"]
        assert [line for line in out.splitlines() if "removed" in line] == ["    removed: --olden=1"]

    def test_are_replaced_by_others(self, project, promptkit, data_of):
        """
        What stands behind ``--`` is all of them, also nothing; those that go are told.
        """
        promptkit("install", "zed", "--", "--grace", "5", "--tools")
        told = data_of("install", "zed", "--", "--grace=5", "--strict")
        assert (told["removed"], told["entry"]["args"][2:]) == (["--tools"], ["--grace=5", "--strict"])

        _, out, _ = promptkit("install", "zed", "--")
        assert words("zed") == ["serve", str(project / "prompts")]
        assert "    removed: --grace=5\n    removed: --strict\n" in out

    def test_tools_are_offered_once(self, project, promptkit):
        """
        Where people have chosen how, in that way.
        """
        promptkit("install", "codex", "--", "--tools-search")
        assert words("codex")[2:] == ["--tools-search"]

        promptkit("install", "codex", "--", "--tools")
        promptkit("install", "codex")
        assert words("codex")[2:] == ["--tools"]

    def test_paths_are_absolute(self, project, promptkit):
        """
        As a client starts the server anywhere.
        """
        promptkit("install", "zed", "--", "--audit", "log/audit.jsonl", "--workspace=.")

        assert words("zed")[2:] == [f"--audit={project / 'log' / 'audit.jsonl'}", f"--workspace={project}"]

    @pytest.mark.parametrize(
        ("served", "said"),
        [
            (["--grase", "5"], "promptkit serve: error: unknown option '--grase'; did you mean '--grace'?"),
            (["--grace", "x"], "promptkit serve: error: argument --grace: 'x' is not a number from 0 to "),
            (["--workspace", "gone"], "promptkit serve: error: argument --workspace: 'gone' is not a folder"),
            (
                ["prompts"],
                "promptkit install: error: unexpected argument 'prompts' after --: name targets before",
            ),
            (
                ["--http", "80"],
                "promptkit install: error: --http is for HTTP, and a client speaks to what it starts",
            ),
        ],
        ids=" ".join,
    )
    def test_that_are_wrong(self, served, said, project, refused):
        """
        They are told before anything is written, as the server would not start.
        """
        assert refused("install", "zed", "--", *served).startswith(said)
        assert not file_of("zed").exists()


class TestLimitations:
    @pytest.mark.parametrize("name", INSTALLABLE)
    def test_are_said(self, name, project, promptkit, data_of):
        """
        Whatever is known to get in the way of prompts there, and how to see where; of the others nothing.
        """
        known = CLIENTS[name].limitations
        _, out, _ = promptkit("install", name)
        _, removed, _ = promptkit("uninstall", name)

        for limitation in known:
            assert f"    {CLIENTS[name].title} {limitation}\n" in out
            assert limitation not in removed
        assert (f"promptkit check --client {name}" in out) == bool(known)
        assert data_of("install", name)["limitations"] == list(known)

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("zed", "Zed hides prompts with more than 1 argument"),
            ("claude-code", "Claude Code sends assistant turns as user turns"),
            ("gemini-cli", "Gemini CLI sends only the first message of a prompt"),
            ("gemini-cli", "Gemini CLI leaves out images, recordings, documents, links"),
            ("claude-desktop", "Claude Desktop does not show users documents"),
            ("opencode", "opencode sends '$1' for each argument when it starts"),
            ("codex", "Codex does not show prompts: it uses the tools of --tools"),
        ],
    )
    def test_in_words(self, name, said, project, promptkit):
        """
        Each is a sentence about the client.
        """
        assert f"    {said}\n" in promptkit("install", name)[1]
