"""Commands with settings in `[tool.promptkit]`."""

import json

import pytest

from promptkit.cli import main
from promptkit.cli.options import configure, parse
from promptkit.errors.rules import Rule
from tests.terminal import command
from tests.wire import line, modern

GREET = """
from promptkit import prompt

@prompt
def greet(name: str = "you") -> str:
    return f"Hello, {name}."
"""
SILENT = "from promptkit import prompt\n\n@prompt\ndef silent():\n    pass\n"

#: Commands that take a target, with their required words.
COMMANDS = [["list"], ["render", "greet"], ["check"], ["complete", "greet", "name"]]


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A function that writes a configuration into the current folder; the recipes are in `mine`."""
    recipes("mine", greet=GREET)
    monkeypatch.chdir(tmp_path)

    def write(table):
        (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
        return tmp_path

    return write


class TestTarget:
    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_configured_target(self, argv, project, run, monkeypatch):
        """
        Each command finds the configured recipes from the configuration's folder and from any folder below.
        """
        folder = project('[tool.promptkit]\ntarget = "mine"\n')
        (folder / "below").mkdir()

        assert run(*argv)[0] == 0
        monkeypatch.chdir(folder / "below")
        assert run(*argv)[0] == 0

    def test_server(self, project):
        """A server also finds the configured recipes from a folder below."""
        folder = project('[tool.promptkit]\ntarget = "mine"\n')
        (folder / "below").mkdir()

        assert command("serve", cwd=folder / "below") == (0, b"", b"")

    def test_list_of_targets(self, project, recipes, run):
        """All configured targets are loaded."""
        recipes("shared/mine", part=GREET.replace("greet", "part"))
        project('[tool.promptkit]\ntarget = ["mine", "shared/mine"]\n')

        code, out, err = run("list")

        assert (code, err) == (0, "")
        assert [line.split()[1] for line in out.splitlines() if line.startswith("prompt")] == [
            "greet",
            "part",
        ]

    def test_command_line_overrides_the_configuration(self, project, recipes, capsys):
        """A target on the command line overrides the configured one."""
        recipes("other", other=GREET.replace("greet", "other"))
        project('[tool.promptkit]\ntarget = "mine"\n')

        assert main(["list", "other"]) == 0
        assert capsys.readouterr().out.startswith("prompt other\n")

    def test_default_target(self, project, recipes, capsys):
        """Without a configured target, the default is the folder `recipes`."""
        recipes(greet=GREET)
        project("[tool.promptkit]\n")

        assert main(["list"]) == 0

    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_missing_default(self, argv, tmp_path, monkeypatch, capsys):
        """
        Without a target and without a default folder, the error explains the options; no module is imported.
        """
        monkeypatch.chdir(tmp_path)
        (tmp_path / "elsewhere" / "recipes").mkdir(parents=True)
        monkeypatch.syspath_prepend(tmp_path / "elsewhere")

        assert main(argv) == 2
        (error,) = capsys.readouterr().err.splitlines()
        assert all(name in error for name in ("'recipes'", "prompts", "[tool.promptkit]"))

    @pytest.mark.parametrize("argv", [["serve"], ["serve", "--http", "0"]], ids=" ".join)
    def test_missing_default_of_a_server(self, argv, tmp_path, monkeypatch, run):
        """A server reports a missing default like other commands."""
        monkeypatch.chdir(tmp_path)

        code, out, err = run(*argv)

        assert (code, out) == (2, "")
        assert err.startswith("promptkit: cannot load 'recipes': ")

    def test_invalid_configured_target(self, project, run):
        """The error names the configuration file, because the user has not typed the target."""
        folder = project('[tool.promptkit]\ntarget = "mien"\n')

        code, out, err = run("list")

        assert (code, out) == (2, "")
        assert err.startswith("promptkit: cannot load 'mien': ")
        assert "there are recipes in 'mine/'" in err
        assert str(folder / "pyproject.toml") in err


class TestIgnore:
    def test_ignored_code(self, project, recipes, capsys):
        """`check` does not report an ignored code."""
        recipes("mine", silent=SILENT)
        project('[tool.promptkit]\ntarget = "mine"\n')
        assert main(["check", "--json"]) == 1
        reported = json.loads(capsys.readouterr().out)["diagnostics"]
        project('[tool.promptkit]\ntarget = "mine"\nignore = ["PK205"]\n')
        assert main(["check", "--json"]) == 0

        assert [diagnostic["code"] for diagnostic in reported] == ["PK205"]
        assert json.loads(capsys.readouterr().out)["diagnostics"] == []

    def test_ignored_code_in_other_commands(self, project, tmp_path, run):
        """`list` and `serve` do not report an ignored code either."""
        (tmp_path / "empty").mkdir()
        project('[tool.promptkit]\ntarget = "empty"\n')
        assert "PK102" in run("list")[2]
        project('[tool.promptkit]\ntarget = "empty"\nignore = ["PK102"]\n')

        assert run("list") == (0, "", "")
        assert command("serve", "--grace=60", cwd=tmp_path) == (0, b"", b"")


class TestServe:
    @pytest.fixture(autouse=True)
    def default(self, recipes):
        """The default folder of recipes."""
        recipes(greet=GREET)

    def test_options(self, project):
        """
        Options of `serve` can be configured under their names; options on the command line override them.
        """
        settings = 'strict = true\ntimeout = 5\nname = "mine"\nno-watch = true\nmax-line = 9\n'
        project(f"[tool.promptkit.serve]\n{settings}")
        options = configure(parse(["serve", "--timeout", "7"]), ["serve", "--timeout", "7"])

        assert (options.strict, options.name, options.watch, options.max_line) == (True, "mine", False, 9)
        assert options.timeout == 7

    def test_options_apply_without_a_target(self, project, tmp_path):
        """
        A server without a typed target uses the configured options; with a typed target, it ignores them.
        """
        (tmp_path / "mine" / "broken.py").write_text("1 / 0\n")
        project('[tool.promptkit]\ntarget = "mine"\n[tool.promptkit.serve]\nstrict = true\ngrace = 60\n')

        assert command("serve", cwd=tmp_path)[0] == 1
        assert command("serve", "mine", "--grace=60", cwd=tmp_path)[0] == 0

    @pytest.mark.parametrize(
        ("settings", "tools"),
        [
            ("tools = true", True),
            ("tools-search = true", "search"),
            ("tools = true\ntools-search = false", True),
            ("tools = false", False),
        ],
    )
    def test_tools(self, settings, tools, project):
        """`tools` and `tools-search` are separate flags, and `false` does not disable the other one."""
        project(f"[tool.promptkit.serve]\n{settings}\n")

        assert configure(parse(["serve"]), ["serve"]).tools == tools
        assert configure(parse(["serve", "--tools-search"]), ["serve", "--tools-search"]).tools == "search"

    def test_workspace(self, project):
        """A relative workspace is resolved to an absolute path."""
        folder = project('[tool.promptkit.serve]\nworkspace = "mine"\n')

        assert configure(parse(["serve"]), ["serve"]).workspace == str(folder / "mine")

    def test_false_means_default(self, project):
        """A flag that is `false` has no effect."""
        project("[tool.promptkit.serve]\nno-watch = false\n")

        assert configure(parse(["serve"]), ["serve"]).watch is True


#: Invalid configurations, and the error messages.
MISTAKES = [
    ("[tool.promptkit]\ntarge = 'x'", "[tool.promptkit] has no setting 'targe': did you mean 'target'?"),
    (
        "[tool.promptkit]\nignore = ['PK2077']",
        "[tool.promptkit] ignore: unknown code 'PK2077'; did you mean 'PK207'?",
    ),
    (
        "[tool.promptkit]\nignore = ['PK301']",
        "[tool.promptkit] ignore: PK301 is an error that cannot be ignored: fix its cause",
    ),
    (
        "[tool.promptkit.serve]\ntimeot = 5",
        "[tool.promptkit.serve] has no setting 'timeot': did you mean 'timeout'?",
    ),
    ("[tool.promptkit.serve]\nstrict = 1", "[tool.promptkit.serve] strict must be true or false, not 1"),
    ("[tool.promptkit.serve]\nname = true", "[tool.promptkit.serve] name must be text or a number, not True"),
    (
        "[tool.promptkit.serve]\nworkspace = 'nowhere'",
        "[tool.promptkit.serve] workspace: 'nowhere' is not a folder",
    ),
    (
        "[tool.promptkit.serve]\ntimeout = 0",
        "[tool.promptkit.serve] timeout: '0' is not a number above 0 and up to 1,000,000,000",
    ),
]


@pytest.mark.parametrize(("table", "message"), MISTAKES, ids=[message[:40] for _, message in MISTAKES])
@pytest.mark.parametrize("argv", [["check"], ["serve"]], ids=" ".join)
def test_invalid_configuration(table, message, argv, project, run):
    """An invalid configuration is a usage error with the file, the problem and a suggestion."""
    folder = project(f"{table}\n")

    assert run(*argv) == (2, "", f"promptkit: {folder / 'pyproject.toml'}: {message}\n")


@pytest.mark.parametrize("argv", [*COMMANDS, ["serve"]], ids=lambda argv: argv[0])
@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("clients = ['zedd']", "clients: unknown client 'zedd': did you mean 'zed'?"),
        ("ignore = ['PK2077']", "ignore: unknown code 'PK2077'; did you mean 'PK207'?"),
        ("serve = { timeot = 5 }", "has no setting 'timeot': did you mean 'timeout'?"),
        ("targt = 'mine'", "has no setting 'targt': did you mean 'target'?"),
    ],
    ids=["clients", "ignore", "serve", "setting"],
)
def test_every_command_validates_the_configuration(argv, table, message, project, capsys):
    """Every command reports invalid settings, even if only another command uses them."""
    project(f"[tool.promptkit]\n{table}\n")

    assert main(argv) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith(f"{message}\n")


class TestElicit:
    @pytest.mark.parametrize(("argv", "asks"), [(["serve"], False), (["serve", "mine"], True)])
    def test_server(self, argv, asks, project, recipes):
        """
        With `elicit = false`, a server asks for no arguments, unless a typed target disables the settings.
        """
        recipes("mine", greet=GREET.replace(' = "you"', ""))
        folder = project('[tool.promptkit]\ntarget = "mine"\nelicit = false\n')
        request = modern(1, "prompts/get", {"name": "greet"}, capabilities={"elicitation": {"form": {}}})
        _, out, _ = command(*argv, cwd=folder, input=line(request))

        assert ("inputRequests" in json.loads(out).get("result", ())) is asks

    def test_check(self, project, recipes, capsys):
        """`check` reports the prompts that need a form, except prompts that set `elicit` themselves."""
        asking = GREET.replace("@prompt", "@prompt(elicit=True)").replace("def greet", "def ask")
        recipes("mine", ask=asking)
        project('[tool.promptkit]\ntarget = "mine"\nelicit = false\n')

        assert main(["check", "--client", "claude-code"]) == 0
        printed = capsys.readouterr().out
        assert printed.count("PK503") == 1
        assert "prompt 'greet'" in printed


def test_ignored_codes_become_rules(project):
    """Ignored codes are converted to rules."""
    project('[tool.promptkit]\ntarget = "mine"\nignore = ["PK207", "PK205"]\n')

    assert configure(parse(["check"]), ["check"]).ignore == {Rule.MISSING_F_PREFIX, Rule.NO_MESSAGE}
