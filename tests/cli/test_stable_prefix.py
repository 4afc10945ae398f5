"""`promptkit check --cache`: how much of what prompts say never differs, and what ends it."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from promptkit.cli import main
from promptkit.errors.diagnostics import Rule
from promptkit.errors.distribution import install_command

ROOT = Path(__file__).parents[2]
PAGE = ROOT.joinpath("docs", "diagnostics.md").read_text(encoding="utf-8")

HEAD = "import random, time\nfrom typing import Annotated, Literal\nfrom promptkit import *\n\n"

#: Text of about 1,400 characters, in one line and in several.
GUIDE = " ".join(f"Rule {number} is that each fault is named with its line." for number in range(27))


@pytest.fixture
def measured(recipes, tmp_path, monkeypatch, capsys):
    """A function that writes one recipe and checks it; it returns what was found of the prompt `p`."""
    monkeypatch.chdir(tmp_path)

    def check(body, *argv):
        recipes(measured=f"{HEAD}GUIDE = {GUIDE!r}\n{body}")
        capsys.readouterr()
        code = main(["check", "--cache", "--json", *argv])
        data = json.loads(capsys.readouterr().out)
        assert code == 0
        assert (data["never_differs"].keys() | data["not_measured"].keys()) == {"p"}
        return data

    return check


def prefix_of(data):
    """How many characters never differ, and what ends them."""
    found = data["never_differs"]["p"]
    return found["prefix"], found["changed_by"], found["differs_by_itself"]


class TestPrefix:
    @pytest.mark.parametrize(
        ("body", "same", "changed_by"),
        [
            (
                '@prompt\ndef p(more: bool, unused: int):\n    return "Hello." + " Bye." * more',
                "[user]\nHello.",
                ["more"],
            ),
            ('@prompt\ndef p(name: str):\n    return f"Greet {name} now."', "[user]\nGreet ", ["name"]),
            ('@prompt\ndef p(n: int, m: int):\n    return f"{n:03}: {m}."', "[user]\n", ["n"]),
            ('@prompt\ndef p(n: int, m: int):\n    return f"From {m} to {n}."', "[user]\nFrom ", ["m"]),
            ('@prompt\ndef p(n: int):\n    return f"a {n}, {n}"', "[user]\na ", ["n"]),
            (
                '@prompt\ndef p(kind: Literal["one", "only"]):\n    return f"Say {kind}."',
                "[user]\nSay on",
                ["kind"],
            ),
            (
                '@prompt\ndef p(kind: Literal["same"], n: int):\n    return f"{kind} {n}"',
                "[user]\nsame ",
                ["n"],
            ),
            (
                '@prompt\ndef p(n: int):\n    yield system("Be brief.")\n    yield user(f"n = {n}")',
                "[system]\nBe brief.\n\n[user]\nn = ",
                ["n"],
            ),
            (
                '@prompt\ndef p(n: int):\n    yield user(f"n = {n}")\n    yield system(f"Know {n}.")',
                "[system]\nKnow ",
                ["n"],
            ),
            (
                '@prompt\ndef p(asks: bool):\n    yield "x"\n    yield "y" if asks else assistant("y")',
                "[user]\nx\n\n[",
                ["asks"],
            ),
            (
                '@prompt\nasync def p(n: int = 3):\n    return f"It is {n}."',
                "[user]\nIt is ",
                ["n"],
            ),
            (
                '@prompt\ndef p(picture: Image, n: int):\n    return user("See:", picture, f"{n} times.")',
                "[user]\nSee:\n\n[user]\n<image/",
                ["picture"],
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
    def test_it_is_what_all_renderings_begin_with(self, body, same, changed_by, measured):
        """
        As `render` shows them; and the argument is named that is the first to change something.
        """
        assert prefix_of(measured(body)) == (len(same), changed_by, False)

    def test_all_of_it(self, measured, capsys):
        """
        Without arguments, or where they change nothing.
        """
        body = '@prompt\ndef p(unused: str):\n    return "Always this."'

        assert prefix_of(measured(body)) == (len("[user]\nAlways this."), [], False)
        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out.splitlines()[1] == "p: all 19 characters never differ"

    def test_what_differs_for_the_same_arguments(self, measured, capsys):
        """
        That is said, as no order of arguments helps.
        """
        body = '@prompt\ndef p(n: int):\n    return f"At {time.perf_counter_ns()}: {n}"'

        prefix, _, by_itself = prefix_of(measured(body))

        assert prefix >= len("[user]\nAt ")
        assert by_itself
        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out.endswith("comes text that differs from call to call\n")

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
        assert prefix_of(measured(body))[0] == len("[user]\nIt ")

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

    def test_no_secret_is_shown(self, measured, capsys):
        """
        Not even one that all renderings have, as the prompt takes no other.
        """
        body = """
@prompt
def p(key: Annotated[str, Arg(secret=True, examples=["hunter2hunter2"])], n: int):
    if key != "hunter2hunter2":
        raise PromptError("that is not the key")
    return user(f"Key: {key}, {n}. {GUIDE.replace('Rule', key)}")
"""
        data = measured(body)

        assert prefix_of(data) == (len("[user]\nKey: hunter2hunter2, "), ["n"], False)
        assert codes(data) == ["PK241"]
        assert "from '<secret> 0 is that each fault" in data["diagnostics"][0]["message"]
        assert "hunter2" not in str(data)
        assert main(["check", "--cache"]) == 0
        assert (
            "then, after 'Key: <secret>,' in line 2, comes text that 'n' changes" in capsys.readouterr().out
        )

    def test_it_is_told(self, measured, capsys):
        """
        In one line, with the end of the line that ends it.
        """
        long = "A line that is longer than what is worth to be shown of one, for which its end will do: "
        measured(f'@prompt\ndef p(a: str, b: str):\n    return "Two words:\\n{long}" + a + b')

        assert main(["check", "--cache"]) == 0
        assert re.sub("[0-9]{3,}", "N", capsys.readouterr().out).splitlines() == [
            "1 prompt can be served",
            (
                "p: the first N of N or more characters never differ; then, after '...what is worth to be "
                "shown of one, for which its end will do:' in line 3, comes text that 'a' and 'b' change"
            ),
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
                f"it took longer than its limit of 0.05 s, and was at {Path('recipes', 'measured.py')}:8",
            ),
        ],
        ids=["sample", "refuses", "fails", "hangs"],
    )
    def test_the_reason_is_said(self, body, reason, measured, capsys):
        """
        Of what is not to be called unasked, refuses everything, fails or hangs; in each format.
        """
        assert measured(body)["not_measured"] == {"p": reason}
        assert main(["check", "--cache"]) == 0
        assert capsys.readouterr().out == f"1 prompt can be served\nnot measured: p: {reason}\n"
        assert main(["check", "--cache", "--format", "github"]) == 0
        assert f"::notice title=promptkit::not measured: p: {reason}\n" == capsys.readouterr().out

    def test_what_cannot_be_made_up(self, measured):
        """
        The argument is named, and what hypothesis says.
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
        reason = measured(body)["not_measured"]["p"]

        assert reason.startswith("no values can be made up for 'colour': ")

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
        assert prefix_of(measured(body)) == (len("[user]\nAn even "), ["n"], False)

    def test_without_hypothesis(self, recipes, tmp_path, monkeypatch, capsys):
        """
        The command ends, and says what to install.
        """
        recipes(measured=f'{HEAD}@prompt\ndef p():\n    return "x"\n')
        monkeypatch.chdir(tmp_path)
        for name in ("promptkit.cli.stable_prefix", "promptkit.testing.strategies"):
            monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setitem(sys.modules, "hypothesis", None)

        assert main(["check", "--cache"]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err == f"promptkit: check --cache needs hypothesis: {install_command('testing')}\n"


def codes(data):
    """The codes that were found."""
    return [one["code"] for one in data["diagnostics"]]


class TestCachePoints:
    @pytest.mark.parametrize(
        "said",
        [
            'user("Rules.", cache_point(), code)',
            'user("Rules.", cache_point(), code if len(code) > 3 else None)',
            '[system("Rules."), cache_point(), user(code)]',
            '[system("Rules."), user("More."), cache_point(), user(code)]',
            '[system("Rules.", cache_point(), code), user("x")]',
            '[user("Rules.", Image(PIXEL), cache_point(), code)]',
        ],
        ids=["text", "left out", "system part", "turns", "in the system part", "media"],
    )
    def test_before_what_differs(self, said, measured):
        """
        It is where it belongs.
        """
        pixel = f"PIXEL = bytes.fromhex({PIXEL!r})\n"

        assert codes(measured(f"{pixel}@prompt\ndef p(code: str):\n    return {said}")) == []

    @pytest.mark.parametrize(
        ("said", "fault"),
        [
            (
                'user("Rules.", code, "More.", cache_point())',
                "a cache point stands behind text that 'code' changes, after 'Rules.' in line 2",
            ),
            (
                '[system(f"Rules for {code}."), cache_point(), user("x")]',
                "a cache point stands behind text that 'code' changes, after 'Rules for' in line 2",
            ),
            (
                '[system("Rules."), cache_point(), user(f"A {code}."), cache_point(), "B", cache_point()]',
                "2 cache points stand behind text that 'code' changes, after 'A' in line 5",
            ),
        ],
        ids=["text", "system part", "several"],
    )
    def test_behind_what_differs(self, said, fault, measured):
        """
        It is found, and what it stands behind.
        """
        found = measured(f"@prompt\ndef p(code: str):\n    return {said}")["diagnostics"]

        assert [(one["code"], one["severity"], one["message"]) for one in found] == [
            ("PK240", "warning", f"prompt 'p': {fault}")
        ]

    def test_it_is_ignored_like_other_findings(self, measured, capsys):
        """
        On its line; and it ends with 1 where warnings do.
        """
        body = '@prompt\ndef p(code: str):\n    return user(code, "More.", cache_point())'

        assert codes(measured(body)) == ["PK240"]
        assert main(["check", "--cache", "--fail-on", "warning"]) == 1
        assert main(["check", "--fail-on", "warning"]) == 0
        assert codes(measured(body.replace("@prompt", "@prompt  # promptkit: ignore[PK240]"))) == []


class TestTextBehind:
    @pytest.mark.parametrize(
        "said",
        [
            'f"Review {code}.\\n\\n{GUIDE}"',
            'f"Review {code}. {GUIDE} It is written in {language}."',
            'f"Review {code}.\\n" + GUIDE.replace(". ", ".\\n")',
            '[system(f"Know {code}."), user(GUIDE[:700]), assistant("Well."), user(GUIDE[700:])]',
        ],
        ids=["a line", "between others", "lines", "turns"],
    )
    def test_much_of_it_is_found(self, said, measured):
        """
        In one piece or in several, with the number of its characters.
        """
        (found,) = measured(f"@prompt\ndef p(code: str, language: str):\n    return {said}")["diagnostics"]

        says = re.fullmatch(
            r"prompt 'p': (1,[34]\d\d) characters that never differ stand behind text that 'code' changes, "
            r"from 'Rule 0 is that each fault is named with its line\.' on",
            found["message"],
        )
        assert (found["code"], found["severity"]) == ("PK241", "warning")
        assert 1_300 < int(says[1].replace(",", "")) <= len(GUIDE)

    @pytest.mark.parametrize(
        "said",
        [
            'f"{GUIDE} Review {code}."',
            'f"Review {code}. {GUIDE[:800]}"',
            'f"Review {code}. {GUIDE if len(code) > 2 else None}"',
        ],
        ids=["before", "too little", "not always"],
    )
    def test_nothing_else_is(self, said, measured):
        """
        What stands first, what no vendor would keep, and what is not in all renderings.
        """
        assert codes(measured(f"@prompt\ndef p(code: str):\n    return {said}")) == []


#: A picture of one pixel.
PIXEL = (
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de"
    "0000000c4944415478da63f8cfc0000003010100f70341430000000049454e44ae426082"
)

#: What an author changes who does as the remedies on the page say.
MENDED = {
    "PK240": ('code, "Name the input that fails.", cache_point()', 'cache_point(), code, "Name the input."'),
    "PK241": ("code, RULES", "RULES, code"),
}


@pytest.mark.parametrize("code", MENDED)
def test_the_page_shows_it(code, recipes, tmp_path, monkeypatch, capsys):
    """
    The example on the page of diagnostics is found as it says there, and the remedy helps.
    """
    source, printed = re.search(
        r"```python[^\n]*\n(.*?)```\n\n```text\n(.*?)```\n", PAGE[PAGE.index(f"\n## {code}\n") :], re.DOTALL
    ).groups()
    monkeypatch.chdir(tmp_path)
    recipes(**{Rule(code).name.lower(): source})

    assert main(["check", "--cache"]) == 0
    assert capsys.readouterr().out.startswith(f"{printed}1 prompt can be served, 1 warning\n")
    assert source.count(MENDED[code][0]) == 1
    recipes(**{Rule(code).name.lower(): source.replace(*MENDED[code])})
    assert main(["check", "--cache", "--fail-on", "warning"]) == 0
