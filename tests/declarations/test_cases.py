"""Cases: how authors save them, what a client would send for them, and when case files are imported."""

import os
import sys
from contextlib import closing
from datetime import date
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from promptkit import Context, PromptError, Text, prompt, resource
from promptkit.compiler.compilation import compile
from promptkit.compiler.reloading import Reloader
from promptkit.errors.rules import Rule
from promptkit.loader.loader import load

REVIEW = """
    from typing import Literal
    from promptkit import PromptError, prompt

    @prompt
    def review(code: str, language: Literal["python", "rust"] = "python", focus: str | None = None):
        if not code:
            raise PromptError("the code is empty")
        return f"Review this {language}: {code}"

    review.case("short", "x = 1")
"""
MORE = """
    from shelf.review import review

    review.case("rust", code="let x = 1;", language="rust")
    review.case("nothing", code="").refused("is empty")
"""


def list_case_names(recipes):
    """Return the case names of all prompts."""
    return [case.name for declaration in recipes.prompts for case in declaration.cases]


@prompt
def plan(
    task: str,
    days: list[date],
    size: Literal["s", "m"] = "m",
    depth: int = 1,
    note: str | None = None,
    *,
    context: Context,
):
    """Plan a task."""
    return f"{task} {days} {size} {depth} {note}"


class TestSentArguments:
    def test_arguments_are_sent_as_text(self):
        """A case takes the arguments of a direct call and sends them as text, like a client."""
        case = plan.case("one", "mow", [date(2026, 1, 31)], depth=2, note=None)

        assert case.sent() == {"task": "mow", "days": '["2026-01-31"]', "depth": "2"}
        assert (case.name, case.location.file, case.refusal) == ("one", __file__, None)
        assert repr(case) == f"<case 'one' at {case.location}>"

    @given(st.text(), st.lists(st.dates(), min_size=1), st.sampled_from("sm"), st.integers())
    def test_sent_arguments_are_parsed_back(self, task, days, size, depth):
        """Rendering what a case sends gives the same result as the direct call."""
        sent = plan.case("any", task, days, size, depth).sent()

        assert plan.render_wire(sent) == plan.render(task, days, size, depth)

    def test_case_wire_sends_text_verbatim(self):
        """`case_wire` sends its text verbatim, even if the parameter types reject it."""
        sent = {"task": "mow", "days": "tomorrow", "size": "XL"}

        assert plan.case_wire("any", sent).sent() == sent

    @pytest.mark.parametrize(
        ("save_case", "message"),
        [
            (lambda: plan.case("any", 1, []), "prompt 'plan': parameter 'task' takes str, not an int (1)"),
            (
                lambda: plan.case("any", "x", [], size="L"),
                "parameter 'size' takes one of s, m, not a str ('L')",
            ),
            (lambda: plan.case("any", tusk="x"), "got an unexpected keyword argument 'tusk'"),
        ],
    )
    def test_invalid_arguments_cannot_be_sent(self, save_case, message):
        """Saving a case with invalid arguments succeeds; `sent` raises a TypeError that names the problem."""
        case = save_case()

        with pytest.raises(TypeError) as caught:
            case.sent()
        assert message in str(caught.value)

    def test_values_that_mean_the_default_cannot_be_sent(self):
        """None or '' cannot be sent where the server would use another default instead."""

        @prompt
        def ask(text: str = "x", name: str | None = "y", note: str | None = None):
            return f"{text} {name} {note}"

        assert ask.case("any", "", note=None).sent() == {"text": ""}
        with pytest.raises(TypeError, match="'name' is None, which no client can send"):
            ask.case("any", name=None).sent()
        with pytest.raises(TypeError, match="'note' is '', which no client can send"):
            ask.case("any", note="").sent()

    def test_none_is_sent_as_null_where_no_text_is_expected(self):
        """A client can send null for a type without text, in place of another default."""

        @prompt
        def ask(depth: int | None = 3):
            return f"{depth}"

        sent = ask.case("any", depth=None).sent()

        assert sent == {"depth": "null"}
        assert ask.render_wire(sent).text == "None"

    def test_a_resource_case_sends_its_uri(self):
        """A resource case expands the URI from its arguments; `case_wire` takes the URI itself."""

        @resource("docs://{page}{?day}")
        def read(page: str, day: date | None = None) -> str:
            return page

        assert (
            read.case("one", "two words", day=date(2026, 1, 31)).sent() == "docs://two%20words?day=2026-01-31"
        )
        assert read.case_wire("other", "docs://x").sent() == "docs://x"
        assert [case.name for case in read.compile()[0].saved()] == ["one", "other"]


class TestRefusals:
    @pytest.mark.parametrize(
        ("expected", "outcome", "mismatch"),
        [
            (None, "text", None),
            (None, ZeroDivisionError(), None),
            (None, PromptError("it is empty"), "is rejected: it is empty"),
            ("empty", PromptError("it is empty"), None),
            ("empty", "text", "should be rejected with 'empty', but it succeeds"),
            ("empty", PromptError("no"), "should be rejected with 'empty', but the error is: no"),
            ("empty", ZeroDivisionError(), None),
        ],
    )
    def test_an_unexpected_outcome_is_a_mismatch(self, expected, outcome, mismatch):
        """`mismatch` reports an unexpected, missing or different PromptError, and ignores crashes."""
        case = plan.case("any", "x", [])
        if expected is not None:
            assert case.refused(expected) is case

        assert case.mismatch(outcome) == mismatch

    def test_refused_takes_text_only(self):
        """`refused` rejects anything but text immediately, before the case runs."""
        with pytest.raises(TypeError, match="part of the error message"):
            plan.case("any", "x", []).refused(None)


class TestFiles:
    @pytest.fixture
    def folder(self, recipes):
        """A folder with a recipe file and a case file."""
        return recipes("shelf", review=REVIEW, cases_more=MORE)

    def test_case_files_are_imported_only_on_request(self, folder):
        """Serving does not import case files."""
        load(str(folder))

        assert not any("cases_more" in name for name in sys.modules)

    def test_a_folder_loads_all_cases(self, folder):
        """The cases in the prompt's own file come before those in case files."""
        loaded = load(folder, cases=True)

        assert list_case_names(loaded) == ["short", "rust", "nothing"]
        assert [file.file.name for file in loaded.by_file] == ["cases_more.py", "review.py"]

    def test_a_single_file_loads_its_neighbours_cases(self, folder):
        """Loading a single file also loads the case files next to it."""
        assert list_case_names(load(folder / "review.py", cases=True)) == ["short", "rust", "nothing"]

    def test_a_case_file_can_be_the_target(self, recipes):
        """A `cases_*.py` file is a recipe file if it is the target itself, but not within a folder."""
        folder = recipes("shelf", cases_review=REVIEW)

        assert list(compile(load(folder / "cases_review.py", cases=True))) == ["review"]
        assert list(compile(load(folder))) == []

    def test_a_case_file_that_cannot_be_imported_is_reported(self, folder):
        """A case file that cannot be imported is reported and affects no prompts or other cases."""
        (folder / "cases_more.py").write_text("import nothing_of_that_name\n")

        loaded = load(folder, cases=True)
        catalog = compile(loaded)

        assert list_case_names(loaded) == ["short"]
        assert list(catalog) == ["review"]
        (diagnostic,) = catalog.diagnostics
        assert diagnostic.rule is Rule.IMPORT_FAILED
        assert diagnostic.message.startswith("cases 'cases_more' cannot be imported: ModuleNotFoundError")

    def test_a_prompt_in_a_case_file_is_reported(self, folder):
        """A prompt in a case file is not served, and is reported."""
        (folder / "cases_more.py").write_text(
            "from promptkit import prompt\n\n@prompt\ndef stray():\n    return 'x'\n"
        )

        (diagnostic,) = compile(load(folder)).diagnostics

        assert diagnostic.rule is Rule.NOT_SERVED
        assert diagnostic.message == "'stray' is not served: cases_more.py has the name of a case file"

    @pytest.mark.parametrize("edited", [["cases_more.py"], ["cases_more.py", "review.py"]])
    def test_a_reload_updates_the_cases(self, folder, edited):
        """A reload updates the cases of an edited file, whether or not the prompt's file is reimported."""
        for file in folder.glob("*.py"):
            os.utime(file, (1, 1))
        with closing(Reloader(str(folder), print, cases=True)) as reloader:
            published = [reloader.load()]
            reloader._publish = published.append

            (folder / "cases_more.py").write_text(
                "from shelf.review import review\n\nreview.case('other', 'y = 2')\n"
            )
            for name in edited:
                os.utime(folder / name, (2, 2))  # changed, but long enough ago to be read at once
            reloader._reload()

        assert [case.name for case in published[-1]["review"].saved()] == ["short", "other"]


def test_a_call_is_not_saved_as_a_case():
    """Calling a prompt does not save a case."""

    @prompt
    def ask(text: str):
        return Text(text)

    ask("x")

    assert ask.cases == ()
