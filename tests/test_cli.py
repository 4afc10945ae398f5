import json
import subprocess
import sys
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.version import VERSION
from tests.mistakes import FOUND, SIX_MISTAKES

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


class TestList:
    def test_as_a_table(self, shelf, capsys):
        """
        One line a prompt: its name, its arguments, optional ones in brackets, what it is for.
        """
        code, out, err = run(capsys, "list")

        row = next(row for row in out.splitlines() if "review" in row)
        assert (code, err) == (0, "a recipe that prints\n")
        assert row.split() == ["review", "diff", "[tone]", "Review", "a", "[diff]."]

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
            (["review", "diff=@nowhere"], 2, "promptkit: [Errno 2] No such file or directory: 'nowhere'"),
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
