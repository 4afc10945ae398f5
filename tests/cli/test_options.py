"""The command line: usage, what is refused, and the messages."""

import pytest

from promptkit.cli import main
from promptkit.cli.command_options import COMMANDS as ALL_COMMANDS
from promptkit.cli.options import options_of, parse

ALL = (
    "serve, list, render, check, complete, dev, diff, package, batch, export, import, new, install, uninstall"
)
COMMANDS = ("serve", "list", "render", "check", "complete")

#: The forms of `render`.
FORMS = "transcript, markdown, json, openai-chat, openai-responses, anthropic, gemini"

#: Those with an option that takes a value.
COMMANDS_WITH_VALUES = [
    name for name in ALL_COMMANDS if any(action.nargs is None for action in options_of(name).values())
]

#: What each needs beside a target.
NEEDED = {"render": ["greet"], "complete": ["greet", "name"]}


def refused(capsys, *argv):
    """The line that refuses a command line; the exit code is that of wrong usage."""
    with pytest.raises(SystemExit) as ended:
        main(argv)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    usage, why = said.err.splitlines()
    assert usage.startswith("usage: promptkit")
    return why


class TestCommands:
    @pytest.mark.parametrize(
        ("typed", "hint"),
        [
            ("lst", "; did you mean 'list'?"),
            ("Serve", "; did you mean 'serve'?"),
            ("chekc", "; did you mean 'check'?"),
            ("hlep", "; did you mean 'help'?"),
            ("version", "; did you mean '--version'?"),
            ("frobnicate", f": there are {ALL}"),
            ("\x1b[31mlist", f": there are {ALL}"),
        ],
    )
    def test_an_unknown_command(self, typed, hint, capsys):
        """
        The nearest command is named, or all of them.
        """
        assert refused(capsys, typed) == f"promptkit: error: unknown command {typed!r}{hint}"

    def test_no_command(self, capsys):
        """
        All of them are named.
        """
        assert refused(capsys) == f"promptkit: error: name a command: {ALL}"

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (["list", "--jsn"], "promptkit list: error: unknown option '--jsn'; did you mean '--json'?"),
            (["check", "-jsno"], "promptkit check: error: unknown option '-jsno'; did you mean '--json'?"),
            (
                ["serve", "--max-rendrs=3"],
                "promptkit serve: error: unknown option '--max-rendrs'; did you mean '--max-renders'?",
            ),
            (
                ["serve", "--worker=2"],  # the beginning of an option is none
                "promptkit serve: error: unknown option '--worker'; did you mean '--workers'?",
            ),
            (
                ["list", "a", "--jso\x1bn"],
                r"promptkit list: error: unknown option '--jso\x1bn'; did you mean '--json'?",
            ),
            (["--versoin"], "promptkit: error: unknown option '--versoin'; did you mean '--version'?"),
            (
                ["list", "--\udcff"],
                "promptkit list: error: unknown option '--\\udcff'; promptkit list --help shows all",
            ),
            (
                ["list", "--lossy"],
                "promptkit list: error: unknown option '--lossy'; it is an option of render, batch",
            ),
            (
                ["new", "--repeat"],
                "promptkit new: error: unknown option '--repeat'; it is an option of diff",
            ),
            (
                ["--json", "list"],
                "promptkit: error: unknown option '--json'; options of a command follow its name",
            ),
        ],
        ids=str,
    )
    def test_an_unknown_option(self, argv, said, capsys):
        """
        The nearest option is named.
        """
        assert refused(capsys, *argv) == said

    @pytest.mark.parametrize(
        ("argv", "usage"),
        [
            (["--x"], "promptkit [OPTION ...] COMMAND ..."),
            (["serve", "--x"], "promptkit serve [OPTION ...] [TARGET ...]"),
            (["render", "--x"], "promptkit render [OPTION ...] [TARGET] NAME [KEY=VALUE ...]"),
            (["render", "a", "--format", "x"], "promptkit render [OPTION ...] [TARGET] NAME [KEY=VALUE ...]"),
            (["complete"], "promptkit complete [OPTION ...] NAME ARGUMENT [TYPED] [KEY=VALUE ...]"),
            (["import", "x"], "promptkit import [OPTION ...] FORMAT PATH [PATH ...]"),
            (["install", "--x"], "promptkit install [OPTION ...] [CLIENT] [TARGET ...]"),
        ],
        ids=str,
    )
    def test_the_usage_is_one_line(self, argv, usage, capsys):
        """
        It says what the words are; what is wrong is not lost behind all options.
        """
        with pytest.raises(SystemExit):
            main(argv)

        first, second = capsys.readouterr().err.splitlines()
        assert first == f"usage: {usage}"
        assert second.startswith(f"{usage.partition(' [')[0]}: error: ")

    @pytest.mark.parametrize("name", COMMANDS_WITH_VALUES)
    def test_an_option_without_its_value(self, name, capsys):
        """
        The error shows what stands behind it, for every option of every command that takes something.
        """
        for option, action in options_of(name).items():
            if action.nargs is None:
                said = refused(capsys, name, f"--{option}")
                value = action.metavar or "|".join(action.choices or ()) or action.dest.upper()
                assert said.endswith(f": it needs a value, as in --{option} {value}"), option

    @pytest.mark.parametrize(
        ("argv", "said"),
        [
            (
                ["check", "--format", "jsn"],
                "argument --format: 'jsn' is not one of text, json, github; did you mean 'json'?",
            ),
            (
                ["render", "x", "--request", "openai"],
                "argument --request: 'openai' is not one of openai-chat, openai-responses, anthropic, gemini",
            ),
            (
                ["serve", "--tools=search"],
                "argument --tools: it takes no value, and has 'search'",
            ),
            (
                ["render", "x", "--format", "markdwn"],
                f"argument --format: 'markdwn' is not one of {FORMS}; did you mean 'markdown'?",
            ),
            (
                ["install", "zed", "--scope", "projet"],
                "argument --scope: 'projet' is not one of user, project; did you mean 'project'?",
            ),
        ],
        ids=str,
    )
    def test_a_value_that_is_no_choice(self, argv, said, capsys):
        """
        All choices are listed, and the one that was meant is named if that can be told.
        """
        assert refused(capsys, *argv) == f"promptkit {argv[0]}: error: {said}"

    def test_too_many_words(self, capsys):
        """
        The first that has no meaning is named.
        """
        assert refused(capsys, "new", "a", "b") == "promptkit new: error: unexpected argument 'b'"

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_is_a_command(self, name, capsys):
        """
        ``promptkit help list`` is ``promptkit list --help``, and ``promptkit help`` that of all.
        """
        said = []
        for argv in (["help", name], [name, "--help"], ["help"], ["--help"], ["help", "help"]):
            with pytest.raises(SystemExit) as ended:
                main(argv)
            assert not ended.value.code
            said.append(capsys.readouterr().out)

        assert said[0] == said[1]
        assert said[2] == said[3] == said[4]
        assert "promptkit help COMMAND shows the options of one" in said[2]
        assert all(f"    {command} " in said[2] for command in COMMANDS)


class TestTarget:
    @pytest.mark.parametrize(
        ("folders", "expected"),
        [
            (["recipes", "prompts"], "recipes"),
            (["prompts"], "prompts"),
            (["recipes"], "recipes"),
            ([], "recipes"),
        ],
        ids=str,
    )
    @pytest.mark.parametrize("name", COMMANDS)
    def test_what_is_left_out(self, name, folders, expected, tmp_path, monkeypatch):
        """
        It is the folder `recipes`, else the folder `prompts`, for every command.
        """
        monkeypatch.chdir(tmp_path)
        for folder in folders:
            (tmp_path / folder).mkdir()

        assert parse([name, *NEEDED.get(name, [])]).targets == [expected]

    @pytest.mark.parametrize("name", ["serve", "list", "check", "complete", "dev", "diff"])
    def test_several(self, name):
        """
        Every command takes several, wherever options stand, but for `render`: a prompt is in one of them.
        """
        words = ["one", "--json", "two"] if name in ("list", "check") else ["one", "two"]
        if name in ("complete", "diff"):
            words = ["--target", "one", "--target", "two"]

        assert parse([name, *words, *NEEDED.get(name, [])]).targets == ["one", "two"]

    @pytest.mark.parametrize("name", COMMANDS)
    def test_an_empty_one(self, name, capsys):
        """
        It is what a script's unset variable gives, and names nothing.
        """
        target = ["--target", ""] if name == "complete" else [""]
        said = refused(capsys, name, *target, *NEEDED.get(name, []))

        shown = target[0] or "TARGET"
        assert said.endswith(f"argument {shown}: must not be empty: name a folder, a file or a module")

    @pytest.mark.parametrize(
        ("words", "targets", "name", "arguments"),
        [
            ("greet", [], "greet", []),
            ("greet a=1", [], "greet", ["a=1"]),
            ("greet a=1 b=2", [], "greet", ["a=1", "b=2"]),
            ("recipes greet", ["recipes"], "greet", []),
            ("recipes greet a=1 b=2", ["recipes"], "greet", ["a=1", "b=2"]),
            ("recipes greet more", ["recipes"], "greet", ["more"]),
            ("./a=b greet a=1", ["./a=b"], "greet", ["a=1"]),
            ("--json recipes greet a=1", ["recipes"], "greet", ["a=1"]),
            ("recipes --json greet a=1", ["recipes"], "greet", ["a=1"]),
            ("greet my-key=1", [], "greet", ["my-key=1"]),
            ("greet --json a=1", [], "greet", ["a=1"]),
            ("recipes greet a=1 --json b=2", ["recipes"], "greet", ["a=1", "b=2"]),
            ("greet a=1 more", [], "greet", ["a=1", "more"]),
            ("greet a=-1 b=--json", [], "greet", ["a=-1", "b=--json"]),
            ("greet url=http://x/?a=1", [], "greet", ["url=http://x/?a=1"]),
            ("docs://page?lines=3", [], "docs://page?lines=3", []),
            ("recipes docs://page?lines=3", ["recipes"], "docs://page?lines=3", []),
        ],
    )
    def test_words_of_render(self, words, targets, name, arguments):
        """
        Of the words before the first argument the last is the name, wherever options stand.
        """
        options = parse(["render", *words.split()])

        assert (options.targets if options.has_targets else []) == targets
        assert (options.name, options.arguments) == (name, arguments)
        assert (options.format == "json") == ("--json" in words.split())

    @pytest.mark.parametrize("words", ["", "a=1", "a=1 b=2", "--json"])
    def test_no_name(self, words, capsys):
        """
        A prompt has to be named.
        """
        said = refused(capsys, "render", *words.split())

        assert said == "promptkit render: error: the following arguments are required: NAME"


SECONDS = ("--timeout", "--rate", "--completion-rate", "--grace")
NUMBERS = (
    "--page-size",
    "--max-renders",
    "--max-waiting",
    "--max-line",
    "--max-held",
    "--max-depth",
    "--max-values",
    "--max-messages",
    "--max-arguments",
    "--max-argument",
    "--max-reply",
)


class TestValues:
    @pytest.mark.parametrize("option", SECONDS)
    @pytest.mark.parametrize("text", ["inf", "-inf", "nan", "-1", "1e400", "1e300", "", "x", "1e9001", "1,5"])
    def test_seconds(self, option, text, capsys):
        """
        What no clock can count is refused in a sentence.
        """
        said = refused(capsys, "serve", f"{option}={text}")

        assert f"argument {option}: {text!r} is not a number" in said

    @pytest.mark.parametrize("option", NUMBERS)
    @pytest.mark.parametrize(
        "text",
        ["0", "-1", "1e9", "1.5", "", "x", "٣", "9" * 30, "9" * 5000, "1_0", "0x10", " 1", "²"],
        ids=lambda text: text[:10],
    )
    def test_whole_numbers(self, option, text, capsys):
        """
        Anything but a whole number is refused in a sentence, whatever its length.
        """
        said = refused(capsys, "serve", f"{option}={text}")

        assert f"argument {option}: {text!r} is not a whole number from 1 to 1,000,000,000,000" in said

    @pytest.mark.parametrize(
        "text",
        ["", " ", "a\x1b[31mb", "a\nb", "a\x00b", "\u202eabc", "a\u200b", "a\udcff", "a\x85"],
        ids=ascii,
    )
    def test_a_name_that_cannot_be_shown(self, text, capsys):
        """
        Clients show the name, so that it shows something, and orders a terminal about nowhere.
        """
        said = refused(capsys, "serve", "--name", text)

        assert "argument --name: " in said
        assert said.isprintable()

    @pytest.mark.parametrize("text", ["mine", "プロンプト 集", "日本語　名", "👩🏽‍💻", "Ünïcode", "می‌خواهم"])
    def test_a_name_of_any_script(self, text):
        """
        Names are for people.
        """
        assert parse(["serve", "--name", text]).name == text

    def test_no_grace(self):
        """
        Nothing need be waited for; and what counts is what was meant.
        """
        options = parse(["serve", "--grace", "0", "--timeout", "1e-3", "--max-line", "1000000000000"])

        assert (options.grace, options.timeout, options.max_line) == (0, 0.001, 10**12)
