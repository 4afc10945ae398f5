"""`promptkit check --cache`: what all renderings of a prompt begin with."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.errors.distribution import install_command

ROOT = Path(__file__).parents[2]

HEAD = "import random, time\nfrom typing import Annotated, Literal\nfrom promptkit import *\n\n"


@pytest.fixture
def measured(recipes, tmp_path, monkeypatch, capsys):
    """A function that writes one recipe and checks it; it returns what its prompt `p` begins with."""
    monkeypatch.chdir(tmp_path)

    def check(body, *argv):
        recipes(measured=f"{HEAD}{body}")
        capsys.readouterr()
        code = main(["check", "--cache", "--json", *argv])
        data = json.loads(capsys.readouterr().out)
        assert code == 0
        return data["common_prefixes"]["p"]

    return check


class TestPrefix:
    @pytest.mark.parametrize(
        ("body", "same"),
        [
            (
                '@prompt\ndef p(more: bool, unused: int):\n    return "Hello." + " Bye." * more',
                "[user]\nHello.",
            ),
            ('@prompt\ndef p(name: str):\n    return f"Greet {name} now."', "[user]\nGreet "),
            ('@prompt\ndef p(n: int, m: int):\n    return f"{n:03}: {m}."', "[user]\n"),
            ('@prompt\ndef p(n: int, m: int):\n    return f"From {m} to {n}."', "[user]\nFrom "),
            ('@prompt\ndef p(n: int):\n    return f"a {n}, {n}"', "[user]\na "),
            (
                '@prompt\ndef p(kind: Literal["one", "only"]):\n    return f"Say {kind}."',
                "[user]\nSay on",
            ),
            (
                '@prompt\ndef p(kind: Literal["same"], n: int):\n    return f"{kind} {n}"',
                "[user]\nsame ",
            ),
            (
                '@prompt\ndef p(n: int):\n    yield system("Be brief.")\n    yield user(f"n = {n}")',
                "[system]\nBe brief.\n\n[user]\nn = ",
            ),
            (
                '@prompt\ndef p(n: int):\n    yield user(f"n = {n}")\n    yield system(f"Know {n}.")',
                "[system]\nKnow ",
            ),
            (
                '@prompt\ndef p(asks: bool):\n    yield "x"\n    yield "y" if asks else assistant("y")',
                "[user]\nx\n\n[",
            ),
            (
                '@prompt\nasync def p(n: int = 3):\n    return f"It is {n}."',
                "[user]\nIt is ",
            ),
            (
                '@prompt\ndef p(picture: Image, n: int):\n    return user("See:", picture, f"{n} times.")',
                "[user]\nSee:\n\n[user]\n<image/",
            ),
        ],
        ids=[
            "left out",
            "text",
            "first",
            "second first",
            "twice",
            "choices that begin alike",
            "one choice",
            "system part",
            "system part first",
            "role",
            "default",
            "media",
        ],
    )
    def test_it_is_what_all_renderings_begin_with(self, body, same, measured):
        """
        As `render` shows them.
        """
        assert measured(body)["length"] == len(same)

    def test_all_of_it(self, measured, capsys):
        """
        Without arguments, or where they change nothing.
        """
        body = '@prompt\ndef p(unused: str):\n    return "Always this."'

        assert measured(body) == {"length": 19, "shortest": 19, "renderings": 1}
        assert main(["check", "--cache"]) == 0
        told = capsys.readouterr().out.splitlines()[1]
        assert told == "p: all renderings that were tried are the same 19 characters"

    def test_what_differs_for_the_same_arguments(self, measured):
        """
        Nothing is called the same because it was rendered once: what differs by itself is found.
        """
        body = '@prompt\ndef p():\n    return f"At {time.perf_counter_ns()}."'

        found = measured(body)

        assert len("[user]\nAt ") <= found["length"] < found["shortest"]

    def test_cases_and_examples_count(self, measured):
        """
        What only they show is found: no text that is made up is this one.
        """
        body = """
@prompt
def p(text: Annotated[str, Arg(examples=["open sesame"])]):
    return "It opens." if "sesame" in text else "It is closed." if text == "close" else "It is shut."

p.case("closing", "close")
"""
        assert measured(body)["length"] == len("[user]\nIt ")

    def test_it_is_the_same_each_time(self, recipes, tmp_path):
        """
        In another process, too; and nothing is written.
        """
        recipes(measured=f'{HEAD}@prompt\ndef p(a: str, b: dict[str, float]):\n    return f"{{a}} {{b}} ."\n')
        command = [sys.executable, "-m", "promptkit", "check", "--cache", "--json"]
        faster = {"HYPOTHESIS_STORAGE_DIRECTORY": str(ROOT / ".hypothesis")}

        first, second = (
            subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, check=True)
            for env in ({**os.environ}, {**os.environ, **faster})
        )

        assert first.stdout == second.stdout
        assert [path.name for path in tmp_path.iterdir()] == ["recipes"]

    def test_it_is_told(self, measured, capsys):
        """
        In one line.
        """
        measured('@prompt\ndef p(n: bool):\n    return f"Say {n}."')

        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "1 prompt can be served",
            "p: 2 renderings begin with the same 11 characters, of 16 or more",
        ]


class TestNotMeasured:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ('@prompt(sample=False)\ndef p(n: int):\n    return f"{n}"', "sample=False"),
            (
                '@prompt\ndef p(n: int):\n    raise PromptError("not today")',
                "it renders for none of 12 arguments; for n='0': not today",
            ),
            (
                """
@prompt
def p(key: Annotated[str, Arg(secret=True, examples=["hunter2"])]):
    raise ValueError(f"no {key}")""",
                "it renders for none of 13 arguments; for key=<secret>: ValueError: no <secret>",
            ),
            (
                '@prompt(timeout=0.05)\ndef p(n: int):\n    time.sleep(30)\n    return "x"',
                f"it took longer than its limit of 0.05 s, and was at {Path('recipes', 'measured.py')}:7",
            ),
        ],
        ids=["sample", "refuses", "fails", "hangs"],
    )
    def test_the_reason_is_said(self, body, reason, measured, capsys):
        """
        Of what is not to be called unasked, refuses everything, fails or hangs; in each format.
        """
        assert measured(body) == reason
        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out == f"1 prompt can be served\nnot measured: p: {reason}\n"
        assert main(["check", "--cache", "--format", "github"]) == 0
        assert f"::notice title=promptkit::not measured: p: {reason}\n" == capsys.readouterr().out

    def test_what_cannot_be_made_up(self, measured):
        """
        What hypothesis says is shown.
        """
        body = """
class Colour:
    def __init__(self, shade, tone):
        self.shade = shade

register_type(Colour, lambda text: Colour(text, 1), expected="a colour", write=lambda colour: colour.shade)

@prompt
def p(colour: Colour):
    return colour.shade
"""
        assert measured(body).startswith("no values can be made up for its arguments: ")

    def test_arguments_that_are_refused_are_left_out(self, measured):
        """
        A prompt that refuses some is measured by the others.
        """
        body = """
@prompt
def p(n: int, m: int):
    if n % 2 or m > 100:
        raise PromptError("even ones, please")
    return f"An even {n}."
"""
        assert measured(body)["length"] == len("[user]\nAn even ")

    def test_without_hypothesis(self, recipes, tmp_path, monkeypatch, capsys):
        """
        The command ends, and says what to install.
        """
        recipes(measured=f'{HEAD}@prompt\ndef p():\n    return "x"\n')
        monkeypatch.chdir(tmp_path)
        for name in ("promptkit.cli.common_prefix", "promptkit.testing.strategies"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, "hypothesis", None)

        assert main(["check", "--cache"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"promptkit: check --cache needs hypothesis: {install_command('testing')}\n"
