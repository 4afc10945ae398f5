"""Cases at the command line: `render --case`, `render --cases` and `check`."""

import json

import pytest

from promptkit.cli import main

SHELF = """
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
    return recipes("shelf", shelf=SHELF)


def rendered(capsys, *options):
    """The code, and both outputs, of a rendering."""
    code = main(["render", "shelf", *options])
    return code, *capsys.readouterr()


class TestRender:
    def test_all(self, folder, capsys):
        """
        Each stands under its name, refused ones, too; secrets are hidden.
        """
        shown = (
            "# short\n\n[user]\nReview this python: x = 1\n\n"
            "# nothing\n\n[refused] the code is empty, <secret>\n\n"
            "# as typed\n\n[user]\nReview this rust: x\n"
        )

        assert rendered(capsys, "review", "--cases") == (0, shown, "")

    def test_one(self, folder, capsys):
        """
        It is shown in every form that a rendering has.
        """
        assert rendered(capsys, "review", "--case", "as typed")[:2] == (0, "[user]\nReview this rust: x\n")
        code, out, _ = rendered(capsys, "review", "--case", "short", "--json")
        assert (code, json.loads(out)["messages"][0]["content"]["text"]) == (0, "Review this python: x = 1")

    def test_of_a_resource(self, folder, capsys):
        """
        Its template is named, or a URI that it has.
        """
        for uri in ("docs://{page}", "docs://7"):
            code, out, _ = rendered(capsys, uri, "--cases")

            assert (code, out) == (0, "# first\n\n[docs://1]\nPage 1.\n")

    @pytest.mark.parametrize(
        ("options", "says"),
        [
            (("review", "--case", "shrt"), "prompt 'review' has no case 'shrt': did you mean 'short'?"),
            (("review", "--case", "x"), "has no case 'x': it has 'short', 'nothing', 'as typed'"),
            (("plain", "--cases"), "prompt 'plain' has no case: it has none"),
            (("review", "code=x", "--cases"), "a case has its arguments: leave out either"),
            (("review", "--cases", "--json"), "--cases shows transcripts, or Markdown"),
            (("rview", "--cases"), "unknown prompt 'rview'; did you mean 'review'?"),
            (("notes://1", "--cases"), "unknown resource 'notes://1'"),
        ],
    )
    def test_what_is_refused(self, options, says, folder, capsys):
        """
        It is wrong usage, and the words say what to do.
        """
        try:
            code = main(["render", "shelf", *options])
        except SystemExit as end:
            code = end.code

        assert code == 2
        assert says in capsys.readouterr().err

    def test_those_that_fail(self, recipes, folder, capsys):
        """
        What is wrong is said, and the others are shown.
        """
        (folder / "shelf.py").unlink()
        recipes("shelf", faulty=FAULTY)

        code, out, err = rendered(capsys, "ask", "--cases")

        assert code == 1
        assert "# fine\n\n[user]\n1.0\n" in out
        assert "ZeroDivisionError" in err
        assert "the case 'refused' is refused: too small" in err
        assert "the case 'not refused' is not refused as expected: 'above'" in err


class TestCheck:
    def test_what_is_wrong_is_found(self, recipes, folder, capsys):
        """
        What no client can send, and equal names, are found in the source; the rest when they are rendered.
        """
        (folder / "shelf.py").unlink()
        recipes("shelf", faulty=FAULTY)

        def found(*options):
            assert main(["check", "shelf", "--json", *options]) == 1
            return [
                (one["line"], one["code"], one["message"].partition(": ")[2])
                for one in json.loads(capsys.readouterr().out)["diagnostics"]
            ]

        in_source = [
            (14, "PK230", f"case 'fine': another one at {folder.name}/faulty.py:9 has this name"),
            (15, "PK230", "case 'wrong': parameter 'number' takes int, not a str ('x')"),
        ]
        assert found() == in_source
        assert sorted(found("--render")) == sorted(
            [
                *in_source,
                (7, "PK231", "it fails for the case 'crashes': ZeroDivisionError: division by zero"),
                (11, "PK231", "the case 'refused' is refused: too small"),
                (
                    12,
                    "PK231",
                    "the case 'other words' is refused with another error than 'below': too small",
                ),
                (13, "PK231", "the case 'not refused' is not refused as expected: 'above'"),
            ]
        )

    def test_they_are_rendered_in_place_of_examples(self, folder, capsys):
        """
        A prompt that needs examples needs none if it has cases.
        """
        assert main(["check", "shelf", "--render"]) == 0
        assert capsys.readouterr().out == "2 prompts and 1 resource can be served\n"
