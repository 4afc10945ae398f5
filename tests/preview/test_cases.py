"""Cases on the page of their prompt, and what changes in them."""

import re
import subprocess

import pytest

from promptkit.cli.differences.renderings import SinceCommit
from promptkit.compiler.compilation import compile
from promptkit.errors.exceptions import InvalidArgument
from promptkit.loader.loader import load
from promptkit.preview.application import application
from promptkit.preview.live import Live
from promptkit.preview.rendering import Rendering
from promptkit.preview.tabs import content_of
from tests.preview.conftest import HOST, TOKEN
from tests.preview.test_pages import links, text_of

REVIEW = """
from typing import Annotated
from promptkit import Arg, PromptError, prompt

@prompt
def review(code: str, tone: str = "warm", key: Annotated[str, Arg(secret=True)] = ""):
    if not code.strip():
        raise PromptError("there is no code")
    return f"Review {code} in a {tone} tone with {key or 'nothing'}."

@prompt
def bare():
    return "Bare."
"""

CASES = """
review.case("short", "x = 1")
review.case("cold, and secret", "y", tone="cold", key="hunter2-hunter2")
review.case("empty", " ").refused("no code")
"""


FAULT = InvalidArgument("key", "is wrong")


def prompt_of(source, recipes):
    """The prompt of a file of recipes."""
    return compile(load(recipes(review=source), cases=True))["review"]


def tab(shown, name, prompt="review", **values):
    """What a tab shows for what a form holds."""
    answer = shown.client.post(f"/prompts/{prompt}/tabs/{name}", data=values)
    assert answer.status_code == 200
    return answer.text


class TestOpening:
    def test_the_page_begins_with_its_cases(self, preview):
        """
        Each is a link that fills the form; the first is in it already.
        """
        page = preview(review=REVIEW + CASES).page("/prompts/review")
        cases = re.search(r'<nav id="cases".*?</nav>', page, re.DOTALL)[0]

        assert list(links(cases)) == ["short", "cold, and secret", "empty"]
        assert 'aria-current="true" href="/prompts/review?use-case=short"' in cases
        assert "Review x = 1 in a warm tone with nothing." in page

    def test_a_case_is_chosen_by_its_address(self, preview):
        """
        Its values are in the form; a secret is no part of any address, and hidden in the conversation.
        """
        shown = preview(review=REVIEW + CASES)
        page = shown.page("/prompts/review?use-case=cold%2C+and+secret")

        assert "in a cold tone" in page
        assert "with hunter2" not in page
        assert 'aria-current="true" href="/prompts/review?use-case=cold%2C+and+secret"' in page

    def test_a_case_that_is_refused_does_not_open_the_page(self, preview):
        """
        It would be a page about a fault.
        """
        page = preview(review=REVIEW + 'review.case("empty", "").refused("code")\n').page("/prompts/review")

        assert "1 argument needs attention" in text_of(page)

    def test_without_cases_it_opens_with_the_authors_example(self, preview):
        """
        What the address says comes first, though.
        """
        source = REVIEW.replace("code: str", 'code: Annotated[str, Arg("The code", examples=["x = 7"])]')
        shown = preview(review=source)

        assert "Review x = 7 in a warm tone" in shown.page("/prompts/review")
        assert "Review y in a warm tone" in shown.page("/prompts/review?code=y")
        assert "Bare." in shown.page("/prompts/bare")

    def test_cases_of_a_file_of_their_own(self, preview, recipes):
        """
        They are on the page like those beside the prompt, also after a reload.
        """
        shown = preview(review=REVIEW)
        assert "</a>" not in re.search(r'<nav id="cases".*?</nav>', shown.page("/prompts/review"))[0]
        folder = recipes(review=REVIEW, cases_review="from review import review\n" + CASES)
        shown.live.publish(compile(load(folder, cases=True)))

        assert "use-case=short" in shown.page("/prompts/review")


class TestTab:
    def test_all_at_once(self, preview):
        """
        Each has a column with its name, where it is saved, and what is said, or that it is refused.
        """
        shown = preview(review=REVIEW + CASES)
        text = text_of(tab(shown, "cases", code="z"))

        assert "Review x = 1 in a warm tone with nothing." in text
        assert "in a cold tone" in text
        assert "hunter2" not in text
        assert "It is refused, as it has to be: there is no code" in text
        assert "there is no code" in text
        assert len(re.findall(r"review\.py:\d+", text)) == 3

    def test_what_its_author_does_not_expect(self, preview):
        """
        Is said at the case.
        """
        shown = preview(review=REVIEW + 'review.case("wrong", "x").refused("code")\n')

        assert "is not refused as expected" in text_of(tab(shown, "cases"))

    def test_the_form_as_a_case(self, preview, recipes):
        """
        The line to copy, saved beside the prompt, is a case of these values.
        """
        values = {"code": 'a "quoted"\nline', "tone": "cold"}
        content = content_of(
            "test", Rendering(prompt_of(REVIEW, recipes), values, faults=(FAULT,)), "recipes"
        )
        source = content.blocks[-1].text

        (saved,) = prompt_of(REVIEW + source, recipes).saved()
        assert saved.sent() == values
        assert "It has no case yet" in text_of(tab(preview(review=REVIEW), "cases"))


class TestSinceTheLastSave:
    def test_the_words_of_each_case(self, preview, recipes):
        """
        Of each case, and of what the form holds, the words are marked that are others.
        """
        shown = preview(review=REVIEW + CASES)
        assert "Nothing was saved yet" in text_of(tab(shown, "changes", code="z"))
        shown.live.publish(compile(load(recipes(review=(REVIEW + CASES).replace("Review", "Judge")))))

        page = tab(shown, "changes", code="z")
        assert page.count("<del>Review</del><ins>Judge</ins>") == 3
        assert "what the form holds" in page
        assert "empty" not in re.findall(r"<h3[^>]*>(.*?)</h3>", page)
        assert "hunter2" not in page

    def test_a_case_that_fails_now(self, preview, recipes):
        """
        That is said, and why; the others are named that say the same.
        """
        shown = preview(review=REVIEW + CASES)
        failing = (
            REVIEW.replace("    return f", "    assert tone != 'cold', 'too cold'\n    return f") + CASES
        )
        shown.live.publish(compile(load(recipes(review=failing))))

        text = text_of(tab(shown, "changes", code="x = 1"))
        assert "cold, and secret It fails now." in text
        assert "too cold" in text
        assert "Nothing else has changed: empty, short." in text

    def test_what_has_changed_stays_while_others_are_saved(self, preview, recipes):
        """
        Until this prompt renders another text again.
        """
        shown = preview(review=REVIEW + CASES)
        for other in ("", "# a comment\n", "# another\n"):
            source = (REVIEW + CASES).replace("Review", "Judge") + other
            shown.live.publish(compile(load(recipes(review=source))))
            assert tab(shown, "changes", code="z").count("<ins>Judge</ins>") == 3

    def test_a_save_of_something_else(self, preview, recipes):
        """
        Changes nothing here, and that is said.
        """
        shown = preview(review=REVIEW + CASES)
        folder = recipes(review=REVIEW + CASES, other="X = 1\n")
        shown.live.publish(compile(load(folder)))

        assert "Every case renders the same text as at the last save." in text_of(tab(shown, "changes"))


@pytest.fixture
def committed(recipes, stranger, monkeypatch):
    """A function that commits recipes, writes others over them, and shows these."""

    def show(before, after):
        folder = recipes(review=before)
        monkeypatch.chdir(folder.parent)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"]
        for words in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run([*git, *words], cwd=folder.parent, check=True)
        (folder / "review.py").write_text(after)
        live = Live(compile(load(folder, cases=True)))
        pages = application(live, "recipes", TOKEN, [HOST], comparison=SinceCommit([folder.name]))
        client = stranger(live, pages=pages)
        client.get(f"/?access-token={TOKEN}")
        return client

    return show


class TestSinceTheLastCommit:
    def ask(self, client):
        """What the tab shows."""
        return client.post("/prompts/review/tabs/changes?choice=commit", data={"code": "z"}).text

    def test_the_words_of_each_case(self, committed):
        """
        Both sides are rendered by processes of their own, for the cases of now.
        """
        page = self.ask(committed(REVIEW, (REVIEW + CASES).replace("tone", "mood")))

        assert "is new" not in text_of(page)
        assert page.count("<ins>mood</ins>") >= 1

    def test_nothing_has_changed(self, committed):
        """
        Not even where the clock tells the prompt something else.
        """
        source = (REVIEW + CASES).replace('f"Review', 'f"{datetime.now()} Review')
        source = "from datetime import datetime\n" + source

        assert "Every case renders the same text as at the last commit." in text_of(
            self.ask(committed(source, source))
        )

    def test_no_repository(self, preview, recipes, stranger, tmp_path, monkeypatch):
        """
        The reason is shown in place of changes.
        """
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        live = Live(compile(load(recipes(review=REVIEW))))
        client = stranger(
            live, pages=application(live, "recipes", TOKEN, [HOST], comparison=SinceCommit(["recipes"]))
        )
        client.get(f"/?access-token={TOKEN}")

        assert "git repository" in text_of(self.ask(client))
