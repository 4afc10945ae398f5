"""Cases on their prompt's page, and changes in their renderings."""

import re
import subprocess

import pytest

from promptkit.cli.diff_changes import SinceCommit
from promptkit.compiler.compilation import compile
from promptkit.errors.exceptions import InvalidArgument
from promptkit.loader.loader import load
from promptkit.preview.live import Live
from promptkit.preview.rendering import Rendering
from promptkit.preview.routes import application
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
    """Compile a recipe file and return its prompt."""
    return compile(load(recipes(review=source), cases=True))["review"]


def tab(shown, name, prompt="review", **values):
    """Return a tab's HTML for the values of a form."""
    answer = shown.client.post(f"/prompts/{prompt}/tabs/{name}", data=values)
    assert answer.status_code == 200
    return answer.text


class TestOpening:
    def test_the_page_begins_with_its_cases(self, preview):
        """Each case is a link that fills in the form, and the first one is already filled in."""
        page = preview(review=REVIEW + CASES).page("/prompts/review")
        cases = re.search(r'<nav id="cases".*?</nav>', page, re.DOTALL)[0]

        assert list(links(cases)) == ["short", "cold, and secret", "empty"]
        assert 'aria-current="true" href="/prompts/review?use-case=short"' in cases
        assert "Review x = 1 in a warm tone with nothing." in page

    def test_a_case_is_chosen_by_its_address(self, preview):
        """The address selects a case; its secret is not rendered."""
        shown = preview(review=REVIEW + CASES)
        page = shown.page("/prompts/review?use-case=cold%2C+and+secret")

        assert "in a cold tone" in page
        assert "with hunter2" not in page
        assert 'aria-current="true" href="/prompts/review?use-case=cold%2C+and+secret"' in page

    def test_a_case_that_is_refused_does_not_open_the_page(self, preview):
        """A case that expects a refusal does not fill in the form when the page opens."""
        page = preview(review=REVIEW + 'review.case("empty", "").refused("code")\n').page("/prompts/review")

        assert "1 argument needs attention" in text_of(page)

    def test_without_cases_it_opens_with_the_authors_example(self, preview):
        """Without cases the page opens with the author's example, unless the address gives a value."""
        source = REVIEW.replace("code: str", 'code: Annotated[str, Arg("The code", examples=["x = 7"])]')
        shown = preview(review=source)

        assert "Review x = 7 in a warm tone" in shown.page("/prompts/review")
        assert "Review y in a warm tone" in shown.page("/prompts/review?code=y")
        assert "Bare." in shown.page("/prompts/bare")

    def test_cases_of_a_file_of_their_own(self, preview, recipes):
        """Cases in a separate file are shown like those next to the prompt, after a reload."""
        shown = preview(review=REVIEW)
        assert "</a>" not in re.search(r'<nav id="cases".*?</nav>', shown.page("/prompts/review"))[0]
        folder = recipes(review=REVIEW, cases_review="from review import review\n" + CASES)
        shown.live.publish(compile(load(folder, cases=True)))

        assert "use-case=short" in shown.page("/prompts/review")


class TestTab:
    def test_all_at_once(self, preview):
        """The Cases tab shows each case's location and its rendering or expected refusal."""
        shown = preview(review=REVIEW + CASES)
        text = text_of(tab(shown, "cases", code="z"))

        assert "Review x = 1 in a warm tone with nothing." in text
        assert "in a cold tone" in text
        assert "hunter2" not in text
        assert "It is refused, as it has to be: there is no code" in text
        assert "there is no code" in text
        assert len(re.findall(r"review\.py:\d+", text)) == 3

    def test_what_its_author_does_not_expect(self, preview):
        """A case that is not refused as expected is reported at the case."""
        shown = preview(review=REVIEW + 'review.case("wrong", "x").refused("code")\n')

        assert "is not refused as expected" in text_of(tab(shown, "cases"))

    def test_the_form_as_a_case(self, preview, recipes):
        """The copied line, saved next to the prompt, defines a case with the form's values."""
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
        """Changed words are marked in each case and in the rendering of the form."""
        shown = preview(review=REVIEW + CASES)
        assert "Nothing was saved yet" in text_of(tab(shown, "changes", code="z"))
        shown.live.publish(compile(load(recipes(review=(REVIEW + CASES).replace("Review", "Judge")))))

        page = tab(shown, "changes", code="z")
        assert page.count("<del>Review</del><ins>Judge</ins>") == 3
        assert "what the form holds" in page
        assert "empty" not in re.findall(r"<h3[^>]*>(.*?)</h3>", page)
        assert "hunter2" not in page

    def test_a_case_that_fails_now(self, preview, recipes):
        """A case that fails now is shown with its error, and the unchanged cases are named."""
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
        """The changes stay visible across saves that leave this prompt's text unchanged."""
        shown = preview(review=REVIEW + CASES)
        for other in ("", "# a comment\n", "# another\n"):
            source = (REVIEW + CASES).replace("Review", "Judge") + other
            shown.live.publish(compile(load(recipes(review=source))))
            assert tab(shown, "changes", code="z").count("<ins>Judge</ins>") == 3

    def test_a_save_of_something_else(self, preview, recipes):
        """A save that does not change this prompt is reported as no change."""
        shown = preview(review=REVIEW + CASES)
        folder = recipes(review=REVIEW + CASES, other="X = 1\n")
        shown.live.publish(compile(load(folder)))

        assert "Every case renders the same text as at the last save." in text_of(tab(shown, "changes"))


@pytest.fixture
def committed(recipes, stranger, monkeypatch):
    """A function that commits recipes, overwrites them, and serves the new version."""

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
    def ask(self, client, name="review"):
        """Return the Changes tab of a prompt, compared with the last commit."""
        return client.post(f"/prompts/{name}/tabs/changes?choice=commit", data={"code": "z"}).text

    def test_the_words_of_each_case(self, committed):
        """The versions are compared for the current cases; the current time in a prompt is not a change."""
        before = "from datetime import datetime\n" + REVIEW.replace('"Bare."', 'f"{datetime.now()}"')
        client = committed(before, (before + CASES).replace("tone", "mood"))
        page = self.ask(client)

        assert "is new" not in text_of(page)
        assert page.count("<ins>mood</ins>") >= 1
        unchanged = "Every case renders the same text as at the last commit."
        assert unchanged in text_of(self.ask(client, "bare"))

    def test_no_repository(self, preview, recipes, stranger, tmp_path, monkeypatch):
        """Without a git repository, the tab shows the reason instead of changes."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        live = Live(compile(load(recipes(review=REVIEW))))
        client = stranger(
            live, pages=application(live, "recipes", TOKEN, [HOST], comparison=SinceCommit(["recipes"]))
        )
        client.get(f"/?access-token={TOKEN}")

        assert "git repository" in text_of(self.ask(client))
