"""Cases on the command line: `render --case`, `render --cases` and `check`."""

import json

import pytest

from promptkit.cli import main

RECIPE = """
    from typing import Annotated, Literal
    from promptkit import Arg, PromptError, prompt, resource

    @prompt
    def review(
        code: str,
        language: Literal["python", "rust"] = "python",
        key: Annotated[str | None, Arg(secret=True)] = None,
    ):
        if not code:
            raise PromptError(f"the code is empty, {key}")
        return f"Review this {language}: {code}"

    review.case("short", "x = 1")
    review.case("nothing", "", key="hunter2hunter2").refused("is empty")
    review.case_wire("as typed", {"code": "x", "language": "Rust"})

    @prompt
    def plain():
        return "x"

    @resource("docs://{page}")
    def docs(page: str) -> str:
        return f"Page {page}."

    docs.case("first", "1")
"""
FAULTY = """
    from promptkit import PromptError, prompt

    @prompt
    def ask(number: int):
        if number < 0:
            raise PromptError("too small")
        return str(1 / number)

    ask.case("fine", 1)
    ask.case("crashes", 0)
    ask.case("refused", -1)
    ask.case("other words", -1).refused("below")
    ask.case("not refused", 2).refused("above")
    ask.case("fine", 2)
    ask.case("wrong", "x")
"""


@pytest.fixture
def folder(recipes, tmp_path, monkeypatch):
    """The current folder, with recipes and their cases."""
    monkeypatch.chdir(tmp_path)
    return recipes("shelf", shelf=RECIPE)


def render(capsys, *options):
    """Run `render`; return the exit code, standard output and standard error."""
    code = main(["render", "shelf", *options])
    return code, *capsys.readouterr()


class TestRender:
    def test_all_cases(self, folder, capsys):
        """Each case is printed under its name, even if it is rejected, and secrets are hidden."""
        expected = (
            "# short\n\n[user]\nReview this python: x = 1\n\n"
            "# nothing\n\n[refused] the code is empty, <secret>\n\n"
            "# as typed\n\n[user]\nReview this rust: x\n"
        )

        assert render(capsys, "review", "--cases") == (0, expected, "")

    def test_single_case(self, folder, capsys):
        """A single case can be printed in every format."""
        assert render(capsys, "review", "--case", "as typed")[:2] == (0, "[user]\nReview this rust: x\n")
        code, out, _ = render(capsys, "review", "--case", "short", "--json")
        assert (code, json.loads(out)["messages"][0]["content"]["text"]) == (0, "Review this python: x = 1")

    def test_cases_of_a_resource(self, folder, capsys):
        """`render` accepts the template of the resource, or a URI that matches the template."""
        for uri in ("docs://{page}", "docs://7"):
            code, out, _ = render(capsys, uri, "--cases")

            assert (code, out) == (0, "# first\n\n[docs://1]\nPage 1.\n")

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            (("review", "--case", "shrt"), "prompt 'review' has no case 'shrt': did you mean 'short'?"),
            (("review", "--case", "x"), "has no case 'x': choose one of 'short', 'nothing', 'as typed'"),
            (("plain", "--cases"), "prompt 'plain' has no cases: save a case first"),
            (("review", "code=x", "--cases"), "a case has its own arguments: omit the arguments or the case"),
            (("review", "--cases", "--json"), "--cases supports only transcripts and Markdown"),
            (("rview", "--cases"), "unknown prompt 'rview'; did you mean 'review'?"),
            (("notes://1", "--cases"), "unknown resource 'notes://1'"),
        ],
    )
    def test_usage_errors(self, options, message, folder, capsys):
        """A usage error explains what to do."""
        try:
            code = main(["render", "shelf", *options])
        except SystemExit as exit:
            code = exit.code

        assert code == 2
        assert message in capsys.readouterr().err

    def test_failing_cases(self, recipes, folder, capsys):
        """Failing cases are reported, and all other cases are printed."""
        (folder / "shelf.py").unlink()
        recipes("shelf", faulty=FAULTY)

        code, out, err = render(capsys, "ask", "--cases")

        assert code == 1
        assert "# fine\n\n[user]\n1.0\n" in out
        assert "ZeroDivisionError" in err
        assert "the case 'refused' is rejected: too small" in err
        assert "the case 'not refused' should be rejected with 'above', but it succeeds" in err


class TestCheck:
    def test_check(self, recipes, folder, capsys):
        """`check` finds invalid arguments and duplicate names in the source, and failures by rendering."""
        (folder / "shelf.py").unlink()
        recipes("shelf", faulty=FAULTY)

        def check(*options):
            assert main(["check", "shelf", "--json", *options]) == 1
            return [
                (diagnostic["line"], diagnostic["code"], diagnostic["message"].partition(": ")[2])
                for diagnostic in json.loads(capsys.readouterr().out)["diagnostics"]
            ]

        in_source = [
            (14, "PK230", f"case 'fine': the case at {folder.name}/faulty.py:9 has the same name"),
            (15, "PK230", "case 'wrong': parameter 'number' takes int, not a str ('x')"),
        ]
        assert check() == in_source
        assert sorted(check("--render")) == sorted(
            [
                *in_source,
                (7, "PK231", "it fails for the case 'crashes': ZeroDivisionError: division by zero"),
                (11, "PK231", "the case 'refused' is rejected: too small"),
                (
                    12,
                    "PK231",
                    "the case 'other words' should be rejected with 'below', but the error is: too small",
                ),
                (13, "PK231", "the case 'not refused' should be rejected with 'above', but it succeeds"),
            ]
        )

    def test_cases_replace_examples(self, folder, capsys):
        """A prompt with cases needs no examples."""
        assert main(["check", "shelf", "--render"]) == 0
        assert capsys.readouterr().out.splitlines()[0] == "2 prompts and 1 resource can be served"
