"""Commands where the configuration of the project says what the command line does not."""

import json
import subprocess
import sys

import pytest

from promptkit.cli import main
from promptkit.cli.options import configure, parse
from promptkit.errors.rules import Rule
from tests.terminal import command

pytestmark = pytest.mark.sampled

GREET = """
from promptkit import prompt

@prompt
def greet(name: str = "you") -> str:
    return f"Hello, {name}."
"""
SILENT = "from promptkit import prompt\n\n@prompt\ndef silent():\n    pass\n"

#: Commands that take a target, and what each needs next to it.
COMMANDS = [["list"], ["render", "greet"], ["check"], ["complete", "greet", "name"], ["serve"]]


@pytest.fixture
def project(recipes, tmp_path, monkeypatch):
    """A function that writes a configuration into the current folder; its recipes are in `mine`."""
    recipes("mine", greet=GREET)
    monkeypatch.chdir(tmp_path)

    def write(table):
        (tmp_path / "pyproject.toml").write_text(table, encoding="utf-8")
        return tmp_path

    return write


class TestTarget:
    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_every_command_finds_it(self, argv, project):
        """
        From the folder of the configuration, and from any below, each command takes the same recipes.
        """
        folder = project('[tool.promptkit]\ntarget = "mine"\n')
        (folder / "below").mkdir()

        ended = [command(*argv, cwd=place)[0] for place in (folder, folder / "below")]

        assert ended == [0, 0]

    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_it_may_be_a_list(self, argv, project, recipes):
        """
        Every command takes all of them together.
        """
        recipes("shared/mine", part=GREET.replace("greet", "part"))
        folder = project('[tool.promptkit]\ntarget = ["mine", "shared/mine"]\n')

        code, out, err = command(*argv, cwd=folder)

        assert (code, err) == (0, b"")
        if argv == ["list"]:
            assert [line.split()[1] for line in out.decode().splitlines() if line.startswith("prompt")] == [
                "greet",
                "part",
            ]

    def test_the_command_line_comes_first(self, project, recipes, capsys):
        """
        A target that is named is taken.
        """
        recipes("other", other=GREET.replace("greet", "other"))
        project('[tool.promptkit]\ntarget = "mine"\n')

        assert main(["list", "other"]) == 0
        assert capsys.readouterr().out.startswith("prompt other\n")

    def test_without_one_it_is_the_folder_as_before(self, project, recipes, capsys):
        """
        A configuration that names no target leaves the folder `recipes`.
        """
        recipes(greet=GREET)
        project("[tool.promptkit]\n")

        assert main(["list"]) == 0

    @pytest.mark.parametrize("argv", COMMANDS[:-1], ids=lambda argv: argv[0])
    def test_there_is_none(self, argv, tmp_path, monkeypatch, capsys):
        """
        Where nothing is named and neither folder is there, it is said what to do. No module is taken instead.
        """
        monkeypatch.chdir(tmp_path)
        (tmp_path / "elsewhere" / "recipes").mkdir(parents=True)
        monkeypatch.syspath_prepend(tmp_path / "elsewhere")

        assert main(argv) == 2
        assert capsys.readouterr().err == (
            "promptkit: cannot load 'recipes': there is no folder recipes or prompts here: name one, or set "
            "target in [tool.promptkit]\n"
        )

    @pytest.mark.parametrize("argv", [["serve"], ["serve", "--http", "0"]], ids=" ".join)
    def test_there_is_none_to_serve(self, argv, tmp_path):
        """
        A server looks for itself, among modules too. If it finds none, it says what other commands do.
        """
        start = "import sys; sys.modules['recipes'] = None; from promptkit.cli import main; sys.exit(main())"
        ran = subprocess.run(
            [sys.executable, "-c", start, *argv], cwd=tmp_path, input=b"", capture_output=True, check=False
        )

        assert (ran.returncode, ran.stdout) == (2, b"")
        assert ran.stderr.decode() == (
            "promptkit: cannot load 'recipes': there is no folder recipes or prompts here: name one, or set "
            "target in [tool.promptkit]\n"
        )

    @pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
    def test_it_names_nothing(self, argv, project):
        """
        The error says which file has named it, as nobody typed it.
        """
        folder = project('[tool.promptkit]\ntarget = "mien"\n')

        code, out, err = command(*argv, cwd=folder)

        assert (code, out) == (2, b"")
        assert err.decode() == (
            "promptkit: cannot load 'mien': there is no such folder, file or module; did you mean 'mine/'? "
            f"(it is named by {folder / 'pyproject.toml'})\n"
        )


class TestIgnore:
    def test_a_code_is_switched_off_everywhere(self, project, recipes, capsys):
        """
        With the code there is no finding left, without it there is one.
        """
        recipes("mine", silent=SILENT)
        project('[tool.promptkit]\ntarget = "mine"\n')
        assert main(["check", "--json"]) == 1
        before = json.loads(capsys.readouterr().out)["diagnostics"]
        project('[tool.promptkit]\ntarget = "mine"\nignore = ["PK205"]\n')
        assert main(["check", "--json"]) == 0

        assert [one["code"] for one in before] == ["PK205"]
        assert json.loads(capsys.readouterr().out)["diagnostics"] == []

    @pytest.mark.parametrize("argv", [["list"], ["serve", "--grace=60"]], ids=str)
    def test_other_commands_leave_it_out_too(self, argv, project, tmp_path):
        """
        What `list` and `serve` would report beside their work is not reported either.
        """
        (tmp_path / "empty").mkdir()
        project('[tool.promptkit]\ntarget = "empty"\n')
        assert b"PK102" in command(*argv, cwd=tmp_path)[2]
        project('[tool.promptkit]\ntarget = "empty"\nignore = ["PK102"]\n')

        assert command(*argv, cwd=tmp_path) == (0, b"", b"")


class TestServe:
    def test_its_options(self, project):
        """
        They are written by their names, with the values that the command line takes.
        """
        settings = 'strict = true\ntimeout = 5\nname = "mine"\nno-watch = true\nmax-line = 9\n'
        project(f"[tool.promptkit.serve]\n{settings}")
        options = configure(parse(["serve", "--timeout", "7"]), ["serve", "--timeout", "7"])

        assert (options.strict, options.name, options.watch, options.max_line) == (True, "mine", False, 9)
        assert options.timeout == 7

    def test_they_hold(self, project, tmp_path):
        """
        A server that is told nothing obeys them; one that is told its target does not read them.
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
        """
        There are two flags for tools, and what is false takes nothing back.
        """
        project(f"[tool.promptkit.serve]\n{settings}\n")

        assert configure(parse(["serve"]), ["serve"]).tools == tools
        assert configure(parse(["serve", "--tools-search"]), ["serve", "--tools-search"]).tools == "search"

    def test_the_workspace(self, project):
        """
        It is a folder as seen from the current one, and known by its absolute path from then on.
        """
        folder = project('[tool.promptkit.serve]\nworkspace = "mine"\n')

        assert configure(parse(["serve"]), ["serve"]).workspace == str(folder / "mine")

    def test_false_is_as_if_it_were_not_there(self, project):
        """
        A flag that is false leaves what is usual.
        """
        project("[tool.promptkit.serve]\nno-watch = false\n")

        assert configure(parse(["serve"]), ["serve"]).watch is True


#: What is wrong with a configuration, and what is said.
MISTAKES = [
    ("[tool.promptkit]\ntarge = 'x'", "[tool.promptkit] has no setting 'targe': did you mean 'target'?"),
    (
        "[tool.promptkit]\nignore = ['PK2077']",
        "[tool.promptkit] ignore: there is no code 'PK2077'; did you mean 'PK207'?",
    ),
    (
        "[tool.promptkit]\nignore = ['PK301']",
        "[tool.promptkit] ignore: PK301 is an error that cannot be ignored: fix its cause",
    ),
    (
        "[tool.promptkit.serve]\ntimeot = 5",
        "[tool.promptkit.serve] has no setting 'timeot': did you mean 'timeout'?",
    ),
    ("[tool.promptkit.serve]\nstrict = 1", "[tool.promptkit.serve] strict takes true or false, not 1"),
    ("[tool.promptkit.serve]\nname = true", "[tool.promptkit.serve] name takes text or a number, not True"),
    (
        "[tool.promptkit.serve]\nworkspace = 'nowhere'",
        "[tool.promptkit.serve] workspace: 'nowhere' is not a folder",
    ),
    (
        "[tool.promptkit.serve]\ntimeout = 0",
        "[tool.promptkit.serve] timeout: '0' is not a number above 0 and up to 1,000,000,000",
    ),
]


@pytest.mark.parametrize(("table", "said"), MISTAKES, ids=[said[:40] for _, said in MISTAKES])
@pytest.mark.parametrize("argv", [["check"], ["serve"]], ids=" ".join)
def test_a_mistake_is_wrong_usage(table, said, argv, project):
    """
    The file is named, what is wrong with it, and what was probably meant; the exit code is 2.
    """
    folder = project(f"{table}\n")

    code, out, err = command(*argv, cwd=folder)

    assert (code, out) == (2, b"")
    assert err.decode() == f"promptkit: {folder / 'pyproject.toml'}: {said}\n"


@pytest.mark.parametrize("argv", COMMANDS, ids=lambda argv: argv[0])
@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("clients = ['zedd']", "clients: there is no client 'zedd': did you mean 'zed'?"),
        ("ignore = ['PK2077']", "ignore: there is no code 'PK2077'; did you mean 'PK207'?"),
        ("serve = { timeot = 5 }", "has no setting 'timeot': did you mean 'timeout'?"),
        ("targt = 'mine'", "has no setting 'targt': did you mean 'target'?"),
    ],
    ids=["clients", "ignore", "serve", "setting"],
)
def test_every_command_refuses_it(argv, table, said, project, capsys):
    """
    A mistake is told by whatever command reads the configuration, not only by the one that it concerns.
    """
    project(f"[tool.promptkit]\n{table}\n")

    assert main(argv) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.endswith(f"{said}\n")


def test_rules_are_what_is_ignored(project):
    """
    Commands are given rules, not texts.
    """
    project('[tool.promptkit]\ntarget = "mine"\nignore = ["PK207", "PK205"]\n')

    assert configure(parse(["check"]), ["check"]).ignore == {Rule.FORGOTTEN_F, Rule.SAYS_NOTHING}
