"""`promptkit check --cache`: the common prefix of all renderings of a prompt."""

import json
import sys
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.errors.distribution import install_command
from tests.terminal import command

HEAD = "import random, time\nfrom typing import Annotated, Literal\nfrom promptkit import *\n\n"


@pytest.fixture
def measure(recipes, tmp_path, monkeypatch, capsys):
    """A function that writes a recipe, checks it, and returns the common prefix of its prompt `p`."""
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
        ("body", "prefix"),
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
    def test_common_prefix(self, body, prefix, measure):
        """The prefix is that of the renderings as `render` shows them."""
        assert measure(body)["length"] == len(prefix)

    def test_constant_text(self, measure, capsys):
        """Without arguments, or if they change nothing, the whole text is common."""
        body = '@prompt\ndef p(unused: str):\n    return "Always this."'

        assert measure(body) == {"length": 19, "shortest": 19, "renderings": 1}
        assert main(["check", "--cache"]) == 0
        output = capsys.readouterr().out.splitlines()[-1]
        assert output == "p: all tried renderings have the same 19 characters"

    def test_nondeterministic_text(self, measure):
        """A text that differs for equal arguments ends the prefix, because each is rendered repeatedly."""
        body = '@prompt\ndef p():\n    return f"At {time.perf_counter_ns()}."'

        prefix = measure(body)

        assert len("[user]\nAt ") <= prefix["length"] < prefix["shortest"]

    def test_cases_and_examples_are_rendered(self, measure):
        """Cases and examples reach branches that generated values do not."""
        body = """
@prompt
def p(text: Annotated[str, Arg(examples=["open sesame"])]):
    return "It opens." if "sesame" in text else "It is closed." if text == "close" else "It is shut."

p.case("closing", "close")
"""
        assert measure(body)["length"] == len("[user]\nIt ")

    def test_result_is_reproducible(self, measure, tmp_path):
        """The result is the same in another process, and no files are written."""
        prefix = measure('@prompt\ndef p(a: float, b: dict[int, float]):\n    return f"{a} {b} ."\n')

        code, out, _ = command("check", "--cache", "--json", cwd=tmp_path)

        assert (code, json.loads(out)["common_prefixes"]) == (0, {"p": prefix})
        assert [path.name for path in tmp_path.iterdir()] == ["recipes"]

    def test_text_output(self, measure, capsys):
        """The text output takes one line per prompt."""
        measure('@prompt(description="Say it.")\ndef p(n: bool):\n    return f"Say {n}."')

        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out.splitlines() == [
            "1 prompt can be served",
            "p: 2 renderings start with the same 11 characters, of 16 or more",
        ]


class TestNotMeasured:
    @pytest.mark.parametrize(
        ("body", "reason"),
        [
            ('@prompt(sample=False)\ndef p(n: int):\n    return f"{n}"', "sample=False"),
            (
                '@prompt\ndef p(n: int):\n    raise PromptError("not today")',
                "it failed to render with all 24 sets of arguments; for n='0': not today",
            ),
            (
                """
@prompt
def p(key: Annotated[str, Arg(secret=True, examples=["hunter2"])]):
    raise ValueError(f"no {key}")""",
                (
                    "it failed to render with all 25 sets of arguments; "
                    "for key=<secret>: ValueError: no <secret>"
                ),
            ),
            (
                '@prompt(timeout=0.05)\ndef p(n: int):\n    time.sleep(30)\n    return "x"',
                f"it took longer than its limit of 0.05 s, and was at {Path('recipes', 'measured.py')}:7",
            ),
        ],
        ids=["sample", "refuses", "fails", "hangs"],
    )
    def test_reason(self, body, reason, measure, capsys):
        """The reason is reported in each format if a prompt is not sampled, always fails, or hangs."""
        assert measure(body) == reason
        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out.splitlines()[-1] == f"not measured: p: {reason}"
        assert main(["check", "--cache", "--format", "github"]) == 0
        assert f"::notice title=promptkit::not measured: p: {reason}" in capsys.readouterr().out.splitlines()

    def test_unsupported_type(self, measure):
        """The error of hypothesis is shown."""
        body = """
class Colour:
    def __init__(self, shade, tone):
        self.shade = shade

register_type(Colour, lambda text: Colour(text, 1), expected="a colour", write=lambda colour: colour.shade)

@prompt
def p(colour: Colour):
    return colour.shade
"""
        assert measure(body).startswith("cannot generate values for its arguments: ")

    def test_rejected_arguments_are_ignored(self, measure):
        """A prompt that rejects some arguments is measured by the others."""
        body = """
@prompt
def p(n: int, m: int):
    if n % 2 or m > 100:
        raise PromptError("even ones, please")
    return f"An even {n}."
"""
        assert measure(body)["length"] == len("[user]\nAn even ")

    def test_missing_hypothesis(self, recipes, tmp_path, monkeypatch, capsys):
        """The error names the command that installs hypothesis."""
        recipes(measured=f'{HEAD}@prompt\ndef p():\n    return "x"\n')
        monkeypatch.chdir(tmp_path)
        monkeypatch.setitem(sys.modules, "hypothesis", None)

        assert main(["check", "--cache"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err == f"promptkit: check --cache needs hypothesis: {install_command('testing')}\n"
