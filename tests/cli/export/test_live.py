"""Live commands: whatever is typed, a real shell runs `promptkit render`, and nothing else."""

import io
import re
import shutil
import subprocess
import sys
import tomllib
from functools import cache
from types import SimpleNamespace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from promptkit import prompt
from promptkit.cli import main
from promptkit.cli.key_values import ArgumentSyntaxError, read_typed
from promptkit.exports.client_files import claude, gemini
from promptkit.exports.client_files.prompts import LiveCommand
from tests.cli.export.clients import Claude, gemini_runs

END = "end-0123456789abcdef0123456789abcdef"

#: Says that it ran, with what, and what it was given; the shell finds no other program.
STUB = """#!{python} -S
import os, sys
with open(os.environ["RECORD"], "ab") as file:
    file.write(b"\\0".join([*map(os.fsencode, sys.argv[1:]), sys.stdin.buffer.read()]) + b"\\0\\0")
"""

#: What ends quotes, blocks, documents and commands, what runs something, and what writes a file.
PIECES = [
    *(
        "'",
        '"',
        "`",
        "\\",
        "\n",
        "\r",
        " ",
        "\t",
        ";",
        "&",
        "|",
        "(",
        ")",
        "{",
        "}",
        "#",
        "~",
        "*",
        "?",
        "!",
        "%s",
    ),
    *(
        "$(> pwned)",
        "`> pwned`",
        "> pwned",
        "; > pwned #",
        "\n> pwned\n",
        "$HOME",
        "${HOME}",
        "-n",
        "--help",
        "-",
    ),
    *(
        END,
        f"{END}.",
        f"\n{END}\n{END}.\n",
        f"\n{END}.\n> pwned\n",
        f"<<'{END}.'",
        "EOF",
        "=",
        "@file",
        "@@",
        "@-",
    ),
    *(
        "```",
        "```!",
        "\n```\n",
        "```!\n> pwned\n```",
        " !`> pwned` ",
        "{{args}}",
        "$ARGUMENTS",
        "$0",
        "$1",
        "\\$1",
    ),
    *(
        "$'",
        "$&",
        "$$",
        "$`",
        "' ; > pwned ; '",
        '" ; > pwned ; "',
        "'$(> pwned)'",
        "é",
        "\u2028",
        "\xa0",
        "word",
    ),
]
VALUES = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=7).map("".join)
SHOWN = VALUES.filter(
    lambda value: "\0" not in value and all(not "\ud800" <= one <= "\udfff" for one in value)
)


@cache
def drops_bytes():
    """Whether ``sh`` drops a byte where a line begins as the last one does, as dash 0.5.12 does."""
    document = "cat <<'end'\ne\x80\nend\n".encode()
    said = subprocess.run(["/bin/sh"], input=document, capture_output=True, check=True).stdout
    return said != b"e\xc2\x80\n"


#: Where that happens: no UTF-8 is left.
DROPPED = re.compile("\n(?:" + "|".join(END[:size] for size in range(1, len(END))) + ")[^\0-\x7f]")


@prompt
def echo(text: str) -> str:
    """Say it again."""
    return text


COMMAND = LiveCommand(echo.compiled, "", END)
WORDS = ["render", "echo", "--typed", END]


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    """What gives a command to a shell; it returns what the stub was started with, each time."""
    folder = tmp_path_factory.mktemp("shell")
    programs, place, record = (folder / name for name in ("bin", "place", "record"))
    programs.mkdir()
    place.mkdir()
    (programs / "promptkit").write_text(STUB.format(python=sys.executable))
    (programs / "promptkit").chmod(0o755)
    environment = {"PATH": str(programs), "RECORD": str(record), "HOME": str(place), "LANG": "C.UTF-8"}

    def run(name, command):
        record.write_bytes(b"")
        subprocess.run(
            [shutil.which(name), "-c", command],
            cwd=place,
            env=environment,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert list(place.iterdir()) == [], "something else ran"
        return [one.split(b"\0") for one in record.read_bytes().split(b"\0\0")[:-1]]

    return run


def received(runs, monkeypatch):
    """What promptkit makes of what it was given; None if it refuses that, or was not started."""
    if not runs:
        return None
    (words,) = runs
    assert [word.decode() for word in words[:-1]] == WORDS
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(words[-1])))
    try:
        return read_typed(COMMAND.prompt.arguments, END).get("text", "")
    except ArgumentSyntaxError:
        return None


def expected(value):
    """What arrives of a value: line ends are those of text, and blanks alone are nothing."""
    value = value.replace("\r\n", "\n").replace("\r", "\n")
    return value if value.strip() else ""


@pytest.mark.parametrize("name", ["bash", "sh"])
class TestClaude:
    @given(value=SHOWN.filter(lambda value: f"{END}." not in value.split("\n")))
    @example(value="$(> pwned)`> pwned`'\"\\")
    @example(value=f"\n{END}\n > pwned")
    @example(value="a\n```\n> pwned\n```!\n> pwned\n```\n !`> pwned`")
    @example(value="\ne\x80")
    @example(value="it's\r")
    @example(value="")
    @settings(deadline=None)
    def test_nothing_runs_but_the_command(self, name, shell, value):
        """
        It is given exactly what Claude Code puts in, or refuses what was cut; but none is its last line.
        """
        made = Claude.reads(claude.live(COMMAND), value)
        (command,) = made.commands
        with pytest.MonkeyPatch.context() as monkeypatch:
            came = received(shell(name, command), monkeypatch)

        is_cut = "```" in value or END in value or (name == "sh" and drops_bytes() and DROPPED.search(value))
        assert came == (None if is_cut else expected(made.typed))


@pytest.mark.parametrize("name", ["bash", "sh"])
class TestGemini:
    @given(value=SHOWN)
    @example(value="' $'; > pwned #")
    @example(value="two $'")
    @example(value="~")
    @settings(deadline=None)
    def test_nothing_runs_but_the_command(self, name, shell, value):
        """
        It is given exactly what was typed, but for what Gemini CLI changes in it.
        """
        command = gemini_runs(gemini.live(COMMAND), value)
        with pytest.MonkeyPatch.context() as monkeypatch:
            came = received(shell(name, command), monkeypatch)

        is_changed = any(sign in value for sign in ("$$", "$&", "$`", "$'")) or value.endswith("$")
        is_changed |= "!" in value and "'" in value
        if END in value:
            assert came is None
        elif not is_changed:
            assert came == expected(value)

    def test_no_null_character_reaches_a_shell(self, name, shell):
        """
        No argument of a program has one.
        """
        with pytest.raises(ValueError, match="null"):
            shell(name, gemini_runs(gemini.live(COMMAND), "a\0b"))


class TestFiles:
    def test_claude(self, exported):
        """
        What is typed stands in a document that ends with the block.
        """
        lines = exported("claude-commands", "translate", "--live").decode().splitlines()
        end = lines[8].rpartition(" <<")[0].rpartition(" ")[2]

        assert len(end) == len(END)
        assert lines == [
            "---",
            "description: Translate a text.",
            'argument-hint: "[language=] [tone=] [text]"',
            'disable-model-invocation: "true"',
            f'allowed-tools: "Bash(promptkit render translate --typed {end} *)"',
            "---",
            "",
            "```!",
            f"promptkit render translate --typed {end} <<'{end}.'",
            *(".$ARGUMENTS", end, f"{end}.", "```"),
        ]

    def test_gemini(self, exported):
        """
        What is typed is a word of `printf`.
        """
        file = tomllib.loads(exported("gemini-commands", "translate", "--live").decode())
        end = file["prompt"].removesuffix("}").rpartition(" ")[2]

        assert file == {
            "description": "Translate a text.",
            "prompt": f"!{{printf %s\\\\n .{{{{args}}}} {end} | promptkit render translate --typed {end}}}",
        }

    def test_a_skill_says_how_to_render(self, exported):
        """
        A model runs it, with values in files.
        """
        body = exported("skills", "translate", "--live").decode()

        assert "\n    promptkit render translate\n" in body
        assert "- `text`\n- `language` (optional): one of German, French" in body

    def test_the_last_line_stays(self, exported):
        """
        So that writing a file again changes nothing; that of another prompt is another one.
        """
        first = exported("claude-commands", "explain", "--live")

        assert exported("claude-commands", "explain", "--live") == first
        assert first.splitlines()[-2] != exported("claude-commands", "compare", "--live").splitlines()[-2]

    def test_a_secret_is_refused(self, refused):
        """
        It would be hidden in what is printed.
        """
        assert "prompt 'unlock' cannot be written: it has a secret argument" in refused(
            "claude-commands", "unlock", "--live"
        )

    @pytest.mark.parametrize(
        ("options", "target"),
        [
            ([], ""),
            (["--target", "recipes"], "recipes "),
            (["--target", "recipes/words.py"], "recipes/words.py "),
        ],
    )
    def test_the_target_is_named_as_it_was(self, exported, options, target):
        """
        In the current folder, where the command will run.
        """
        file = exported("claude-commands", "explain", "--live", *options)
        assert f"promptkit render {target}explain --typed".encode() in file

    def test_elsewhere_it_is_the_whole_path(self, project, tmp_path, tmp_path_factory):
        """
        A client starts it anywhere.
        """
        folder = tmp_path_factory.mktemp("home") / "commands"
        assert main(["export", "claude-commands", str(folder), "explain", "--live"]) == 0
        assert f"promptkit render {project} explain".encode() in (folder / "explain.md").read_bytes()

    def test_a_target_that_a_shell_would_read_is_refused(self, recipes, tmp_path, monkeypatch, capsys):
        """
        It would stand in a command.
        """
        monkeypatch.chdir(tmp_path)
        recipes("my recipes", one="from promptkit import prompt\n\n@prompt\ndef a(): return 'b'\n")

        assert main(["export", "claude-commands", "out", "--live", "--target", "my recipes"]) == 1
        assert "the target 'my recipes' cannot be part of a command" in capsys.readouterr().err
