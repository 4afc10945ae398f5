"""Reloading an open page while its recipes are edited."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

REVIEW = """
from promptkit import prompt

@prompt
def review(code: str, depth: int = 3):
    return f"Review {code} to {depth}."
"""


def locate_announcement(page):
    """Return the element that announces reloads."""
    return page.locator("#announcement")


def test_save_updates_the_page_in_place(visit_recipes):
    """A save updates the page in place and reports the change; entered text and the cursor are kept."""
    visit = visit_recipes(review=REVIEW)
    page = visit.prompt("review")
    code = page.get_by_role("textbox", name="code")
    code.press_sequentially("x = 1")
    code.press("ArrowLeft")
    expect(page.locator("#conversation")).to_contain_text("Review x = 1 to 3.")

    visit.save("review.py", REVIEW.replace("Review {", "Criticise {"))

    expect(page.locator("#conversation")).to_contain_text("Criticise x = 1 to 3.")
    expect(locate_announcement(page)).to_have_text("Reloaded: changed review.")
    expect(code).to_have_value("x = 1")
    expect(code).to_be_focused()
    code.press("2")
    expect(page.locator("#conversation")).to_contain_text("Criticise x = 21 to 3.")


def test_reload_does_not_move_the_focus(visit_recipes):
    """A reload does not move the focus."""
    visit = visit_recipes(review=REVIEW)
    page = visit.prompt("review")
    page.get_by_role("textbox", name="code").fill("x = 1")
    page.get_by_role("textbox", name="code").blur()

    visit.save("review.py", REVIEW.replace("Review {", "Criticise {"))

    expect(page.locator("#conversation")).to_contain_text("Criticise x = 1 to 3.")
    assert page.evaluate("document.activeElement === document.body")


def test_changed_signature_keeps_the_other_values(visit_recipes):
    """When the signature changes, other values are kept and a removed argument is reported as unknown."""
    visit = visit_recipes(review=REVIEW)
    page = visit.prompt("review", "?depth=7")
    page.get_by_role("textbox", name="code").fill("x = 1")
    expect(page.locator("#conversation")).to_contain_text("to 7.")

    visit.save(
        "review.py",
        REVIEW.replace("depth: int = 3", "tone: str = 'warm'").replace("{depth}", "{tone}"),
    )

    expect(page.get_by_role("textbox", name="tone", exact=True)).to_be_visible()
    expect(page.get_by_role("textbox", name="code", exact=True)).to_have_value("x = 1")
    gone = page.get_by_role("textbox", name="depth", exact=True)
    expect(page.locator(".field.unknown")).to_contain_text("This prompt has no such argument")
    expect(gone).to_have_value("7")
    gone.fill("")
    expect(page.locator("#conversation")).to_contain_text("Review x = 1 to warm.")
    expect(gone).to_have_count(0)


def test_broken_recipe_shows_its_error_until_fixed(visit_recipes):
    """A broken recipe shows its error and the last good rendering, until a save fixes it."""
    visit = visit_recipes(review=REVIEW)
    visit.page.clock.install()
    page = visit.prompt("review", "?code=x")
    visit.save("review.py", REVIEW.replace("return f", "retrn f"))

    diagnostics = page.get_by_role("region", name="Diagnostics for this file")
    expect(diagnostics).to_contain_text("recipes/review.py:6")
    expect(diagnostics.locator(".source")).to_contain_text('retrn f"Review {code} to {depth}."')
    banner = page.locator("#load-errors")
    expect(banner).to_have_text("Not loaded: 1 error in review.py.")
    expect(page.locator("#conversation")).to_contain_text("Review x to 3.")
    page.get_by_role("button", name="Copy turn 1").click()
    expect(locate_announcement(page)).to_have_text("Copied.")
    page.clock.run_for(8000)
    expect(banner).to_have_text("Not loaded: 1 error in review.py.")

    visit.save("review.py", REVIEW.replace("Review {", "Fix {"))
    expect(page.locator("#conversation")).to_contain_text("Fix x to 3.")
    expect(diagnostics).to_have_count(0)
    expect(locate_announcement(page)).to_contain_text("Reloaded: changed review.")
    expect(banner).to_have_text("")


def test_gallery_follows_changes_of_files(visit_recipes):
    """The gallery follows added, broken and removed recipe files, and keeps its search."""
    visit = visit_recipes(review=REVIEW)
    page = visit.page
    links = page.locator("#results").get_by_role("link")
    search = page.get_by_role("searchbox", name="Search prompts")
    search.fill("re")
    expect(links).to_have_text(["review"])

    visit.save("more.py", REVIEW.replace("def review", "def rewrite"))
    expect(locate_announcement(page)).to_have_text("Reloaded: added rewrite.")
    expect(links).to_have_text(["review", "rewrite"])
    expect(search).to_have_value("re")
    expect(page.locator("#counts")).to_have_text("2 prompts")

    visit.save("more.py", "import nowhere_to_be_found\n")
    diagnostics = page.get_by_role("region", name="Diagnostics")
    expect(diagnostics).to_contain_text("nowhere_to_be_found")

    (visit.folder / "more.py").unlink()
    expect(links).to_have_text(["review"])
    expect(diagnostics).to_have_text("")


def test_removed_prompt_can_return(visit_recipes):
    """A removed prompt is reported as gone, and shown again with its values when it returns."""
    visit = visit_recipes(review=REVIEW, other=REVIEW.replace("def review", "def other"))
    visit.window.allow(": 404", "404 (Not Found)")
    page = visit.prompt("review", "?code=x")

    visit.save("review.py", "")
    expect(page.locator("#state")).to_have_text("Prompt not found")
    visit.save("review.py", REVIEW)

    expect(page.locator("#conversation")).to_contain_text("Review x to 3.")


def test_first_recipe_appears(visit_recipes):
    """A page opened before any prompt exists shows the first one that is saved."""
    visit = visit_recipes()
    expect(visit.page.locator("#results")).to_contain_text("There are no prompts yet")

    visit.save("review.py", REVIEW)

    expect(visit.page.locator("#results").get_by_role("link")).to_have_text(["review"])
