import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from promptkit.cli import main
from promptkit.version import VERSION
from tests.mistakes import FOUND, SIX_MISTAKES
from tests.terminal import on_terminal

REVIEW = '''
from typing import Literal
from promptkit import Image, PromptError, prompt, user

print("a recipe that prints")

@prompt
def review(diff: str, tone: Literal["plain", "strict"] = "plain"):
    """Review a [diff]."""
    print("a prompt that prints")
    return user(f"Review, {tone}:", diff)

@prompt
def look(picture: bytes | None = None):
    return user("Look.", Image(picture) if picture else None)

@prompt
def refuse():
    raise PromptError("not today")

@prompt
def leave():
    raise SystemExit(0)

@prompt
def fail():
    raise ValueError("a bug")
'''


@pytest.fixture
def shelf(recipes, tmp_path, monkeypatch):
    """A folder with four prompts, in the current folder."""
    recipes(shelf=REVIEW)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def faulty(recipes, tmp_path, monkeypatch):
    """A folder with six mistakes, in the current folder."""
    recipes(**SIX_MISTAKES)
    monkeypatch.chdir(tmp_path)


def run(capsys, *argv):
    """Run a command; return its exit code and what it printed."""
    code = main(argv)
    printed = capsys.readouterr()
    return code, printed.out, printed.err


class TestCheck:
    def test_six_mistakes(self, faulty, capsys):
        """
        Every mistake is named with file, line and remedy, and the exit code is 1.
        """
        code, out, _ = run(capsys, "check", "recipes")

        assert code == 1
        assert out == f"{FOUND}\n1 prompt can be served, 6 errors\n"

    def test_nothing_wrong(self, shelf, capsys):
        """
        Sound recipes are counted, and the exit code is 0; `recipes` is the default.
        """
        assert run(capsys, "check") == (0, "5 prompts can be served\n", "a recipe that prints\n")

    def test_for_machines(self, faulty, capsys):
        """
        The JSON holds every fault, and the exit code is the same.
        """
        code, out, _ = run(capsys, "check", "--json")

        found = json.loads(out)
        assert code == 1
        assert found["prompts"] == ["plan"]
        assert [d["code"] for d in found["diagnostics"]] == [
            "PK201",
            "PK301",
            "PK302",
            "PK304",
            "PK305",
            "PK202",
        ]

    def test_what_is_probably_wrong(self, recipes, tmp_path, monkeypatch, capsys):
        """
        Warnings are shown, and the exit code is 0; serving and listing do not look for them.
        """
        recipes(silent="from promptkit import prompt\n\n@prompt\ndef silent():\n    'Only a docstring.'\n")
        monkeypatch.chdir(tmp_path)

        code, out, _ = run(capsys, "check")

        assert (code, out.splitlines()) == (
            0,
            [
                "recipes/silent.py:4: warning PK205: prompt 'silent': it never returns or yields anything",
                "    return what it should say, or yield it",
                "1 prompt can be served, 1 warning",
            ],
        )
        assert run(capsys, "list")[2] == ""


#: How a recipe begins.
HEAD = "from promptkit import prompt\n\n@prompt\n"

#: What a terminal is told by its colours.
ESCAPES = re.compile("\x1b\\[[0-9;]*m")

CHANGED = """
from promptkit import prompt

@prompt
def review(diff, tone: str = "plain"):
    return diff

@prompt
def quiet():
    pass
"""

SHOWN = """\
recipes/changed.py:4: error PK301: prompt 'review': parameter 'diff' has no annotation
    4 | def review(diff, tone: str = "plain"):
      |            ^^^^
    write its type, as in 'diff: str'
"""


class TestDiagnosticsAreShown:
    @pytest.fixture
    def changed(self, recipes, tmp_path):
        """Two prompts, one with an error and one with a warning."""
        recipes(changed=CHANGED)
        return tmp_path

    def test_on_a_terminal(self, changed):
        """
        The line at fault is shown, marked, in the colour of the severity.
        """
        shown = on_terminal("check", cwd=changed)

        assert ESCAPES.sub("", shown).startswith(SHOWN)
        assert shown.startswith(
            "\x1b[1mrecipes/changed.py:4: \x1b[0m\x1b[1;31merror\x1b[0m\x1b[2m PK301\x1b[0m: "
        )
        assert "\x1b[1;31m^^^^\x1b[0m\n    write its type" in shown
        assert "\x1b[1;33mwarning\x1b[0m\x1b[2m PK205\x1b[0m: " in shown
        assert shown.endswith("\n1 prompt can be served, 1 error, 1 warning\n")

    def test_without_colour(self, changed):
        """
        NO_COLOR leaves the lines and takes every escape away.
        """
        shown = on_terminal("check", cwd=changed, NO_COLOR="1")

        assert shown.startswith(SHOWN)
        assert "\x1b" not in shown

    def test_in_a_pipe(self, changed, monkeypatch, capsys):
        """
        There, one fault is two lines, without colour, whatever the terminal could show.
        """
        monkeypatch.chdir(changed)

        _, out, _ = run(capsys, "check")

        assert out.startswith("".join(SHOWN.splitlines(keepends=True)[::3]))
        assert "\x1b" not in out

    def test_where_colour_is_demanded(self, changed, monkeypatch, capsys):
        """
        FORCE_COLOR is for logs that can show it.
        """
        monkeypatch.chdir(changed)
        monkeypatch.delenv("NO_COLOR", raising=False)
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("TERM", "xterm-256color")

        _, out, _ = run(capsys, "check")

        assert ESCAPES.search(out)
        assert ESCAPES.sub("", out).startswith(SHOWN)

    @pytest.mark.parametrize("command", ["list", "serve"])
    def test_beside_what_is_done(self, command, changed):
        """
        Commands that do something else show errors on standard error, in the same form.
        """
        shown = on_terminal(command, cwd=changed, stream="stderr")

        assert ESCAPES.sub("", shown) == SHOWN
        assert ESCAPES.search(shown)

    def test_wide_characters(self, recipes, tmp_path):
        """
        What takes two columns is marked by two.
        """
        recipes(wide=f"{HEAD}def p(概要: str, 本, z: str = '') -> str:\n    return 本\n")

        shown = on_terminal("check", cwd=tmp_path, NO_COLOR="1")

        assert "    4 | def p(概要: str, 本, z: str = '') -> str:\n      |                  ^^\n" in shown

    def test_a_long_line(self, recipes, tmp_path):
        """
        Of a line that the terminal is too narrow for, what is at fault is shown.
        """
        names = ", ".join(f"argument_{n}: str" for n in range(9))
        recipes(long=f"{HEAD}def p({names}, diff, *, z: str = '', y: str = '') -> str:\n\treturn diff\n")

        shown = on_terminal("check", cwd=tmp_path, NO_COLOR="1").splitlines()

        column = shown[2].index("^")
        assert shown[1][column:].startswith("diff, *")
        assert [len(shown[1]) <= 80, shown[1][8], shown[2].count("^")] == [True, "…", 4]

    def test_what_has_no_source(self, recipes, tmp_path):
        """
        A folder has no lines to show.
        """
        recipes(nothing="")

        shown = on_terminal("check", cwd=tmp_path, NO_COLOR="1")

        assert shown.splitlines()[:2] == [
            "recipes: warning PK102: there is no prompt here",
            "    decorate a function with @prompt, in a *.py file that begins with neither '_' nor 'test_'",
        ]

    def test_square_brackets_are_no_markup(self, recipes, tmp_path):
        """
        What looks like rich's markup, or an emoji, is shown as it is.
        """
        head = HEAD.replace("@prompt", "@prompt(name='[red]:smile:')")
        recipes(markup=f"{head}def p() -> str:\n    return 'x'\n")

        assert "prompt '[red]:smile:': a name" in on_terminal("check", cwd=tmp_path, NO_COLOR="1")

    def test_the_readme_shows_it(self, recipes, tmp_path):
        """
        The example in the README is what is printed.
        """
        readme = Path(__file__).parents[1].joinpath("README.md").read_text(encoding="utf-8")
        blocks = [token.content for token in MarkdownIt().parse(readme) if token.type == "fence"]
        recipes("prompts", review=CHANGED)

        shown = on_terminal("check", "prompts", cwd=tmp_path, NO_COLOR="1")

        (block,) = [block for block in blocks if " error PK" in block]
        assert shown.startswith(block)


class TestList:
    def test_for_people(self, shelf, capsys):
        """
        One line a prompt, with what it is for; below it one for each argument, with what it takes.
        """
        code, out, err = run(capsys, "list")

        assert (code, err) == (0, "a recipe that prints\n")
        assert out.splitlines()[-3:] == [
            "prompt review: Review a [diff].",
            "    diff: str, required",
            "    tone: Literal['plain', 'strict'], default 'plain'",
        ]

    def test_for_machines(self, shelf, capsys):
        """
        The JSON is what a client receives.
        """
        _, out, _ = run(capsys, "list", "recipes", "--json")

        shown = json.loads(out)["prompts"][-1]
        assert list(shown.pop("_meta")) == ["promptkit/arguments"]
        assert shown == {
            "name": "review",
            "description": "Review a [diff].",
            "arguments": [
                {"name": "diff", "required": True},
                {"name": "tone", "description": "one of plain, strict; default plain", "required": False},
            ],
        }

    def test_faults_are_said_beside(self, faulty, capsys):
        """
        What can be served is listed on standard output, what cannot on standard error.
        """
        code, out, err = run(capsys, "list", "--json")

        assert (code, err) == (1, f"{FOUND}\n")
        assert [prompt["name"] for prompt in json.loads(out)["prompts"]] == ["plan"]


class TestRender:
    def test_as_a_transcript(self, shelf, capsys):
        """
        Arguments are read as a client would send them; what prompts print stays out of it.
        """
        code, out, err = run(capsys, "render", "recipes", "review", "diff=a = b", "tone=STRICT")

        assert (code, out) == (0, "[user]\nReview, strict:\n\na = b\n")
        assert "a prompt that prints" in err

    def test_for_machines(self, shelf, capsys):
        """
        The JSON is the result that a client receives.
        """
        _, out, _ = run(capsys, "render", "recipes", "review", "diff=x", "--json")

        assert json.loads(out) == {
            "description": "Review a [diff].",
            "messages": [{"role": "user", "content": {"type": "text", "text": "Review, plain:\n\nx"}}],
        }

    def test_what_children_print_stays_out_of_it(self, recipes, tmp_path):
        """
        What a prompt writes past Python's own standard output does not garble the JSON.
        """
        noisy = """
            import os, subprocess
            from promptkit import prompt

            os.write(1, b"raw\\n")

            @prompt
            def noisy() -> str:
                subprocess.run(["echo", "child"], check=True)
                return "x"
        """
        folder = recipes(noisy=noisy)

        ran = subprocess.run(
            [sys.executable, "-m", "promptkit", "render", folder, "noisy", "--json"],
            capture_output=True,
            check=True,
        )

        assert json.loads(ran.stdout)["messages"]
        assert ran.stderr.split() == [b"raw", b"child"]

    def test_a_text_that_begins_with_an_at(self, shelf, capsys):
        """
        ``key=@@name`` sends ``@name``.
        """
        assert "@alice" in run(capsys, "render", "recipes", "review", "diff=@@alice did it")[1]

    def test_a_file_as_an_argument(self, shelf, capsys, tmp_path, png):
        """
        ``key=@file`` sends a file's text, or its bytes where the parameter takes bytes.
        """
        (tmp_path / "change.diff").write_text("+ ü", encoding="utf-8")
        (tmp_path / "dot.png").write_bytes(png)

        assert "+ ü" in run(capsys, "render", "recipes", "review", "diff=@change.diff")[1]
        assert "<image/png " in run(capsys, "render", "recipes", "look", "picture=@dot.png")[1]

    @pytest.mark.parametrize(
        ("words", "code", "message"),
        [
            (["review"], 1, "promptkit: prompt 'review': 'diff' is missing"),
            (
                ["review", "diff=x", "tone=odd"],
                1,
                "promptkit: prompt 'review': 'tone' is 'odd', not one of plain, strict",
            ),
            (["refuse"], 1, "promptkit: not today"),
            (["fail"], 1, "ValueError: a bug"),
            (["revew"], 2, "promptkit: unknown prompt 'revew'; did you mean 'review'?"),
            (["review", "diff=x", "diff=y"], 2, "promptkit: 'diff' is given twice"),
            (["leave"], 1, "SystemExit: 0"),
            (["review", "diff"], 2, "promptkit: 'diff' is no argument: write KEY=VALUE, or KEY=@FILE"),
            (
                ["review", "diff=@nowhere"],
                2,
                "promptkit: 'diff' cannot be read from 'nowhere': No such file or directory",
            ),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_what_goes_wrong(self, shelf, capsys, words, code, message):
        """
        A prompt that fails gives 1 and says why; wrong usage gives 2; nothing is on standard output.
        """
        ended, out, err = run(capsys, "render", "recipes", *words)

        assert (ended, out) == (code, "")
        assert err.splitlines()[-1] == message


class TestUsage:
    @pytest.mark.parametrize("command", ["check", "list", "serve"])
    def test_nothing_at_the_target(self, command, tmp_path):
        """
        A target that is not there is wrong usage.
        """
        ran = subprocess.run(
            [sys.executable, "-m", "promptkit", command, "nowhere"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

        assert (ran.returncode, ran.stdout) == (2, "")
        assert ran.stderr == "promptkit: cannot load 'nowhere': it is no folder, no file and no module\n"

    @pytest.mark.parametrize("argv", [[], ["nope"], ["list", "--nope"], ["render", "recipes"]], ids=str)
    def test_a_command_line_that_is_not_understood(self, argv, capsys):
        """
        It is wrong usage too.
        """
        with pytest.raises(SystemExit) as ended:
            main(argv)

        assert ended.value.code == 2
        assert "usage: promptkit" in capsys.readouterr().err

    @pytest.mark.parametrize("argv", [["--help"], ["serve", "--help"], ["check", "--help"]], ids=" ".join)
    def test_help_tells_the_exit_codes(self, argv, capsys):
        """
        Every command's help says what its exit code means.
        """
        with pytest.raises(SystemExit) as ended:
            main(argv)

        out = capsys.readouterr().out
        assert ended.value.code == 0
        for code in (
            "0    everything is fine",
            "1    recipes have faults, or a prompt failed",
            "2    wrong usage",
        ):
            assert code in out

    def test_a_reader_that_has_seen_enough(self, faulty):
        """
        ``promptkit check | head`` ends without a word about it.
        """
        process = subprocess.Popen(
            [sys.executable, "-u", "-m", "promptkit", "check"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        process.stdout.close()

        assert process.wait(timeout=20) == 1
        assert process.stderr.read() == b""
        process.stderr.close()

    def test_the_console_script_is_the_module(self):
        """
        ``promptkit`` and ``python -m promptkit`` are one program.
        """
        script = Path(sys.executable).with_name("promptkit")
        said = [
            subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout
            for command in ([script], [sys.executable, "-m", "promptkit"])
        ]

        assert said == [f"promptkit {VERSION}\n"] * 2
