"""The command line: usage, rejected options and values, and the error messages."""

import pytest

from promptkit.cli import main
from promptkit.cli.options import parse

COMMAND_NAMES = (
    "serve, list, render, check, complete, dev, diff, package, batch, export, import, new, install, uninstall"
)
COMMANDS = ("serve", "list", "render", "check", "complete")

#: The words that a command requires in addition to a target.
REQUIRED_WORDS = {"render": ["greet"], "complete": ["greet", "name"]}


def usage_error(capsys, *argv):
    """Run a command line with wrong usage and return the error message."""
    with pytest.raises(SystemExit) as exit:
        main(argv)
    captured = capsys.readouterr()
    assert (exit.value.code, captured.out) == (2, "")
    usage, error = captured.err.splitlines()
    assert usage.startswith("usage: promptkit")
    return error


class TestCommands:
    @pytest.mark.parametrize(
        ("typed", "hint"),
        [
            ("lst", "; did you mean 'list'?"),
            ("version", "; did you mean '--version'?"),
            ("frobnicate", f": choose one of {COMMAND_NAMES}"),
            ("\x1b[31mlist", f": choose one of {COMMAND_NAMES}"),
        ],
    )
    def test_unknown_command(self, typed, hint, capsys):
        """The error suggests the nearest command, or lists all of them."""
        assert usage_error(capsys, typed) == f"promptkit: error: unknown command {typed!r}{hint}"

    def test_missing_command(self, capsys):
        """Without a command, the help is printed, as with `--help` and `help`."""
        outputs = []
        for argv in ([], ["--help"], ["help"]):
            with pytest.raises(SystemExit) as exit_info:
                main(argv)
            outputs.append((exit_info.value.code, *capsys.readouterr()))

        code, out, err = outputs[0]
        assert (code, err) == (0, "")
        assert out.startswith("usage: promptkit [OPTION ...] COMMAND ...\n")
        assert outputs == outputs[:1] * 3

    @pytest.mark.parametrize(
        ("argv", "option", "suggestion"),
        [
            (["list", "--jsn"], "--jsn", "--json"),
            (["check", "-jsno"], "-jsno", "--json"),
            (["serve", "--max-rendrs=3"], "--max-rendrs", "--max-renders"),
            (["serve", "--worker=2"], "--worker", "--workers"),  # options cannot be abbreviated
            (["list", "a", "--jso\x1bn"], r"--jso\x1bn", "--json"),
            (["list", "--\udcff"], r"--\udcff", None),
        ],
        ids=str,
    )
    def test_unknown_option(self, argv, option, suggestion, capsys):
        """The error names the command and the option, and suggests the nearest option, or the help."""
        command, error = usage_error(capsys, *argv).split(": error: ")
        hint = f"did you mean {suggestion!r}?" if suggestion else f"run '{command} --help' to see all options"

        assert command == f"promptkit {argv[0]}"
        assert f"'{option}'" in error
        assert error.endswith(hint)

    @pytest.mark.parametrize("argv", [["--versoin"], ["--json", "list"]], ids=str)
    def test_unknown_option_before_a_command(self, argv, capsys):
        """The error explains where the options of a command belong."""
        error = usage_error(capsys, *argv)

        assert f"unknown option {argv[0]!r}" in error
        assert "after its name" in error

    @pytest.mark.parametrize(
        ("argv", "usage"),
        [
            (["--x"], "promptkit [OPTION ...] COMMAND ..."),
            (["serve", "--x"], "promptkit serve [OPTION ...] [TARGET ...]"),
            (["render", "--x"], "promptkit render [OPTION ...] [TARGET] NAME [KEY=VALUE ...]"),
            (["render", "a", "--format", "x"], "promptkit render [OPTION ...] [TARGET] NAME [KEY=VALUE ...]"),
            (["complete"], "promptkit complete [OPTION ...] NAME ARGUMENT [TYPED] [KEY=VALUE ...]"),
            (["import", "x"], "promptkit import [OPTION ...] FORMAT PATH [PATH ...]"),
            (
                ["install", "--x"],
                "promptkit install [OPTION ...] [CLIENT ...] [TARGET ...] [-- OPTION ...]",
            ),
        ],
        ids=str,
    )
    def test_usage_is_one_line(self, argv, usage, capsys):
        """An error shows only the usage line, so that the message is not lost among all options."""
        with pytest.raises(SystemExit):
            main(argv)

        first, second = capsys.readouterr().err.splitlines()
        assert first == f"usage: {usage}"
        assert second.startswith(f"{usage.partition(' [')[0]}: error: ")

    def test_option_without_a_value(self, capsys):
        """The error names the option."""
        message = usage_error(capsys, "serve", "--timeout")

        assert message == "promptkit serve: error: argument --timeout: expected one argument"

    @pytest.mark.parametrize(
        ("argv", "parts"),
        [
            (
                ["check", "--format", "jsn"],
                ["argument --format: invalid choice: 'jsn'", "text", "json", "github"],
            ),
            (
                ["render", "x", "--request", "openai"],
                ["argument --request: invalid choice: 'openai'", "openai-chat", "gemini"],
            ),
            (["serve", "--tools=search"], ["argument --tools: ignored explicit argument 'search'"]),
        ],
        ids=str,
    )
    def test_invalid_choice(self, argv, parts, capsys):
        """The error names the option and the value, and lists all choices."""
        message = usage_error(capsys, *argv)

        assert message.startswith(f"promptkit {argv[0]}: error: {parts[0]}")
        assert all(part in message for part in parts)

    def test_too_many_arguments(self, capsys):
        """The error names the first unexpected argument."""
        assert usage_error(capsys, "new", "a", "b") == "promptkit new: error: unexpected argument 'b'"

    @pytest.mark.parametrize("name", COMMANDS)
    def test_help_command(self, name, capsys):
        """
        `promptkit help list` equals `promptkit list --help`, and `promptkit help` equals `promptkit --help`.
        """
        outputs = []
        for argv in (["help", name], [name, "--help"], ["help"], ["--help"], ["help", "help"]):
            with pytest.raises(SystemExit) as exit:
                main(argv)
            assert not exit.value.code
            outputs.append(capsys.readouterr().out)

        assert outputs[0] == outputs[1]
        assert outputs[2] == outputs[3] == outputs[4]
        assert "Run promptkit help COMMAND for the options of a command" in outputs[2]
        assert all(f"    {command} " in outputs[2] for command in COMMANDS)


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
    def test_default_target(self, name, folders, expected, tmp_path, monkeypatch):
        """The default target of every command is `recipes` if that folder exists, otherwise `prompts`."""
        monkeypatch.chdir(tmp_path)
        for folder in folders:
            (tmp_path / folder).mkdir()

        assert parse([name, *REQUIRED_WORDS.get(name, [])]).targets == [expected]

    @pytest.mark.parametrize("name", ["serve", "list", "check", "complete", "dev", "diff"])
    def test_several_targets(self, name):
        """Every command except `render` takes several targets, wherever options appear."""
        words = ["one", "--json", "two"] if name in ("list", "check") else ["one", "two"]
        if name in ("complete", "diff"):
            words = ["--target", "one", "--target", "two"]

        assert parse([name, *words, *REQUIRED_WORDS.get(name, [])]).targets == ["one", "two"]

    @pytest.mark.parametrize("name", COMMANDS)
    def test_empty_target(self, name, capsys):
        """An empty target, as from an unset variable of a script, is an error."""
        target = ["--target", ""] if name == "complete" else [""]
        message = usage_error(capsys, name, *target, *REQUIRED_WORDS.get(name, []))

        argument = target[0] or "TARGET"
        assert message.endswith(f"argument {argument}: must not be empty: name a folder, a file or a module")

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
    def test_arguments_of_render(self, words, targets, name, arguments):
        """The last word before the first argument is the name, wherever options appear."""
        options = parse(["render", *words.split()])

        assert (options.targets if options.has_targets else []) == targets
        assert (options.name, options.arguments) == (name, arguments)
        assert (options.format == "json") == ("--json" in words.split())

    @pytest.mark.parametrize("words", ["", "a=1", "a=1 b=2", "--json"])
    def test_missing_name(self, words, capsys):
        """`render` requires the name of a prompt."""
        message = usage_error(capsys, "render", *words.split())

        assert message == "promptkit render: error: the following arguments are required: NAME"


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
    @pytest.mark.parametrize(
        ("option", "text"),
        [
            *((option, "x") for option in SECONDS),
            *(("--timeout", text) for text in ("inf", "nan", "-1", "0", "1e400", "1e300", "", "1,5")),
        ],
    )
    def test_seconds(self, option, text, capsys):
        """A value that is not a valid number of seconds is rejected."""
        message = usage_error(capsys, "serve", f"{option}={text}")

        assert f"argument {option}: {text!r} is not a number" in message

    @pytest.mark.parametrize(
        ("option", "text"),
        [
            *((option, "0") for option in NUMBERS),
            *(("--page-size", text) for text in ("-1", "1e9", "1.5", "", "٣", "9" * 5000, "1_0", " 1")),
        ],
        ids=lambda text: text[:10],
    )
    def test_whole_numbers(self, option, text, capsys):
        """Anything but a whole number within the limits is rejected, whatever its length."""
        message = usage_error(capsys, "serve", f"{option}={text}")

        assert f"argument {option}: {text!r} is not a whole number from 1 to 1,000,000,000,000" in message

    @pytest.mark.parametrize(
        "text",
        ["", " ", "a\x1b[31mb", "a\nb", "a\x00b", "\u202eabc", "a\u200b", "a\udcff", "a\x85"],
        ids=ascii,
    )
    def test_invalid_name(self, text, capsys):
        """A name that is blank or has control characters is rejected, because clients show it."""
        message = usage_error(capsys, "serve", "--name", text)

        assert "argument --name: " in message
        assert message.isprintable()

    @pytest.mark.parametrize("text", ["mine", "プロンプト 集", "日本語　名", "👩🏽‍💻", "Ünïcode", "می‌خواهم"])
    def test_name_in_any_script(self, text):
        """Names can be written in any script."""
        assert parse(["serve", "--name", text]).name == text

    def test_limits_of_values(self):
        """A grace period of 0 is valid, and so are numbers in scientific notation."""
        options = parse(["serve", "--grace", "0", "--timeout", "1e-3", "--max-line", "1000000000000"])

        assert (options.grace, options.timeout, options.max_line) == (0, 0.001, 10**12)
