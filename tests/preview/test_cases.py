"""Cases on their prompt's page, and changes in their renderings."""

import re
import subprocess

import pytest

from promptkit.cli.diff_changes import CommitComparison
from promptkit.compiler.compilation import compile
from promptkit.errors.exceptions import InvalidArgument
from promptkit.loader.loader import load
from promptkit.preview.live import LiveCatalog
from promptkit.preview.rendering import Rendering
from promptkit.preview.routes import create_application
from promptkit.preview.tabs import build_tab
from tests.preview.conftest import HOST, TOKEN
from tests.preview.test_pages import extract_links, extract_text

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


def compile_prompt(source, recipes):
    """Compile a recipe file and return its prompt."""
    return compile(load(recipes(review=source), cases=True))["review"]


def render_tab(preview, name, prompt="review", **values):
    """Return a tab's HTML for the values of a form."""
    response = preview.client.post(f"/prompts/{prompt}/tabs/{name}", data=values)
    assert response.status_code == 200
    return response.text


class TestOpening:
    def test_page_lists_cases_and_opens_the_first(self, serve_preview):
        """Each case is a link that fills in the form; the page opens with the values of the first case."""
        page = serve_preview(review=REVIEW + CASES).page("/prompts/review")
        cases = re.search(r'<nav id="cases".*?</nav>', page, re.DOTALL)[0]

        assert list(extract_links(cases)) == ["short", "cold, and secret", "empty"]
        assert 'aria-current="true" href="/prompts/review?use-case=short"' in cases
        assert "Review x = 1 in a warm tone with nothing." in page

    def test_address_selects_a_case(self, serve_preview):
        """The address selects a case, whose secret is not rendered."""
        preview = serve_preview(review=REVIEW + CASES)
        page = preview.page("/prompts/review?use-case=cold%2C+and+secret")

        assert "in a cold tone" in page
        assert "with hunter2" not in page
        assert 'aria-current="true" href="/prompts/review?use-case=cold%2C+and+secret"' in page

    def test_refused_case_does_not_fill_in_the_form(self, serve_preview):
        """A case that expects a refusal does not fill in the form when the page opens."""
        page = serve_preview(review=REVIEW + 'review.case("empty", "").refused("code")\n').page(
            "/prompts/review"
        )

        assert "1 argument needs attention" in extract_text(page)

    def test_page_without_cases_opens_with_the_example(self, serve_preview):
        """Without cases the page opens with the author's example, unless the address gives a value."""
        source = REVIEW.replace("code: str", 'code: Annotated[str, Arg("The code", examples=["x = 7"])]')
        preview = serve_preview(review=source)

        assert "Review x = 7 in a warm tone" in preview.page("/prompts/review")
        assert "Review y in a warm tone" in preview.page("/prompts/review?code=y")
        assert "Bare." in preview.page("/prompts/bare")

    def test_cases_in_a_separate_file_are_shown(self, serve_preview, recipes):
        """Cases in a separate file are shown like those next to the prompt, after a reload."""
        preview = serve_preview(review=REVIEW)
        assert "</a>" not in re.search(r'<nav id="cases".*?</nav>', preview.page("/prompts/review"))[0]
        folder = recipes(review=REVIEW, cases_review="from review import review\n" + CASES)
        preview.live.publish(compile(load(folder, cases=True)))

        assert "use-case=short" in preview.page("/prompts/review")


class TestCasesTab:
    def test_all_cases_are_shown(self, serve_preview):
        """The Cases tab shows each case's location and its rendering or expected refusal."""
        preview = serve_preview(review=REVIEW + CASES)
        text = extract_text(render_tab(preview, "cases", code="z"))

        assert "Review x = 1 in a warm tone with nothing." in text
        assert "in a cold tone" in text
        assert "hunter2" not in text
        assert "Rejected as expected: there is no code" in text
        assert "there is no code" in text
        assert len(re.findall(r"review\.py:\d+", text)) == 3

    def test_unexpected_outcome_is_reported(self, serve_preview):
        """If a case renders although it should be rejected, the mismatch is reported at the case."""
        preview = serve_preview(review=REVIEW + 'review.case("wrong", "x").refused("code")\n')

        assert ", but it succeeds" in extract_text(render_tab(preview, "cases"))

    def test_form_is_copied_as_a_case(self, serve_preview, recipes):
        """The copied line, saved next to the prompt, defines a case with the form's values."""
        values = {"code": 'a "quoted"\nline', "tone": "cold"}
        content = build_tab(
            "new-case",
            Rendering(compile_prompt(REVIEW, recipes), values, argument_errors=(FAULT,)),
            "recipes",
        )
        source = content.blocks[-1].text

        (saved,) = compile_prompt(REVIEW + source, recipes).saved()
        assert saved.sent() == values
        assert "This prompt has no cases yet" in extract_text(
            render_tab(serve_preview(review=REVIEW), "cases")
        )


class TestSinceTheLastSave:
    def test_changed_words_are_marked(self, serve_preview, recipes):
        """Changed words are marked in each case and in the rendering of the form."""
        preview = serve_preview(review=REVIEW + CASES)
        assert "Nothing has been saved yet" in extract_text(render_tab(preview, "changes", code="z"))
        preview.live.publish(compile(load(recipes(review=(REVIEW + CASES).replace("Review", "Judge")))))

        page = render_tab(preview, "changes", code="z")
        assert page.count("<del>Review</del><ins>Judge</ins>") == 3
        assert "current form values" in page
        assert "empty" not in re.findall(r"<h3[^>]*>(.*?)</h3>", page)
        assert "hunter2" not in page

    def test_newly_failing_case_shows_its_error(self, serve_preview, recipes):
        """A newly failing case is shown with its error, and the unchanged cases are named."""
        preview = serve_preview(review=REVIEW + CASES)
        failing = (
            REVIEW.replace("    return f", "    assert tone != 'cold', 'too cold'\n    return f") + CASES
        )
        preview.live.publish(compile(load(recipes(review=failing))))

        text = extract_text(render_tab(preview, "changes", code="x = 1"))
        assert "[fails]" in text
        assert "too cold" in text
        assert "Unchanged: empty, short." in text

    def test_changes_stay_when_something_else_is_saved(self, serve_preview, recipes):
        """The changes stay visible across saves that leave this prompt's text unchanged."""
        preview = serve_preview(review=REVIEW + CASES)
        for comment in ("", "# a comment\n", "# another\n"):
            source = (REVIEW + CASES).replace("Review", "Judge") + comment
            preview.live.publish(compile(load(recipes(review=source))))
            assert render_tab(preview, "changes", code="z").count("<ins>Judge</ins>") == 3

    def test_unrelated_save_is_not_a_change(self, serve_preview, recipes):
        """A save that does not change this prompt is reported as no change."""
        preview = serve_preview(review=REVIEW + CASES)
        folder = recipes(review=REVIEW + CASES, other="X = 1\n")
        preview.live.publish(compile(load(folder)))

        assert "No case has changed since the last save." in extract_text(render_tab(preview, "changes"))


@pytest.fixture
def serve_over_commit(recipes, make_client, monkeypatch):
    """A function that commits recipes, overwrites them, and serves the new version."""

    def commit_and_serve(before, after):
        folder = recipes(review=before)
        monkeypatch.chdir(folder.parent)
        git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"]
        for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
            subprocess.run([*git, *arguments], cwd=folder.parent, check=True)
        (folder / "review.py").write_text(after)
        live = LiveCatalog(compile(load(folder, cases=True)))
        app = create_application(live, "recipes", TOKEN, [HOST], comparison=CommitComparison([folder.name]))
        client = make_client(live, app=app)
        client.get(f"/?access-token={TOKEN}")
        return client

    return commit_and_serve


class TestSinceTheLastCommit:
    def fetch_changes(self, client, name="review"):
        """Return the Changes tab of a prompt, compared with the last commit."""
        return client.post(f"/prompts/{name}/tabs/changes?choice=commit", data={"code": "z"}).text

    def test_changed_words_are_marked(self, serve_over_commit):
        """The versions are compared for the current cases; the current time in a prompt is not a change."""
        before = "from datetime import datetime\n" + REVIEW.replace('"Bare."', 'f"{datetime.now()}"')
        client = serve_over_commit(before, (before + CASES).replace("tone", "mood"))
        page = self.fetch_changes(client)

        assert "New." not in extract_text(page)
        assert page.count("<ins>mood</ins>") >= 1
        unchanged = "No case has changed since the last commit."
        assert unchanged in extract_text(self.fetch_changes(client, "bare"))

    def test_missing_repository_is_reported(self, serve_preview, recipes, make_client, tmp_path, monkeypatch):
        """Without a git repository, the tab shows the reason instead of changes."""
        monkeypatch.chdir(tmp_path)
        monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
        live = LiveCatalog(compile(load(recipes(review=REVIEW))))
        client = make_client(
            live,
            app=create_application(live, "recipes", TOKEN, [HOST], comparison=CommitComparison(["recipes"])),
        )
        client.get(f"/?access-token={TOKEN}")

        assert "git repository" in extract_text(self.fetch_changes(client))
