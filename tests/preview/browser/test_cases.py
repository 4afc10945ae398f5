"""Cases and changes in the browser."""

import subprocess

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

REVIEW = """
from promptkit import prompt

@prompt
def review(code: str, tone: str = "warm"):
    return f"Review {code} in a {tone} tone."

review.case("short", "x = 1")
review.case("cold", "y = 2", tone="cold")
"""


def test_page_opens_with_its_first_case(visit_recipes):
    """The form holds the values of the first case, and links select the other cases."""
    page = visit_recipes(review=REVIEW).prompt("review")
    expect(page.get_by_role("textbox", name="code")).to_have_value("x = 1")
    expect(page.get_by_role("tabpanel", name="Conversation")).to_contain_text("Review x = 1 in a warm tone.")

    page.get_by_role("navigation", name="Cases").get_by_role("link", name="cold").click()

    expect(page.get_by_role("textbox", name="tone")).to_have_value("cold")
    page.wait_for_load_state()  # before its style sheet is loaded, the new page shows both panels
    expect(page.get_by_role("tabpanel", name="Conversation")).to_contain_text("Review y = 2 in a cold tone.")


def test_cases_are_shown_side_by_side(visit_recipes):
    """The Cases tab shows one column per case, and a save updates all columns in place."""
    visit = visit_recipes(review=REVIEW)
    page = visit.prompt("review")
    page.get_by_role("tab", name="Cases").click()
    columns = page.get_by_role("group", name="All cases").get_by_role("article")
    expect(columns).to_have_count(2)
    first, second = (columns.nth(index).bounding_box() for index in range(2))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] <= second["x"]

    visit.save("review.py", REVIEW.replace("Review", "Judge"))

    expect(columns.nth(1)).to_contain_text("Judge y = 2 in a cold tone.")


def test_changes_tab_is_marked_after_a_change(visit_recipes):
    """After a save that changes the rendering, the Changes tab is marked until the tab is opened."""
    visit = visit_recipes(review=REVIEW)
    page = visit.prompt("review")
    tab = page.get_by_role("tab", name="Changes")
    visit.save("review.py", REVIEW + "# a comment\n")
    expect(page.locator("#announcement")).to_contain_text("Reloaded")
    expect(tab).not_to_have_class("changed")

    visit.save("review.py", REVIEW.replace("Review", "Judge"))

    expect(tab).to_have_class("changed")
    tab.click()
    expect(tab).not_to_have_class("changed")
    expect(page.get_by_role("tabpanel", name="Changes").locator("ins").first).to_have_text("Judge")


def test_changed_words_are_shown_for_each_case(visit_recipes):
    """The Changes tab shows word-level changes for each case, since the last save or the last commit."""
    visit = visit_recipes(review=REVIEW)
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@y", "-c", "commit.gpgsign=false"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], cwd=visit.folder.parent, check=True)
    page = visit.prompt("review")
    page.get_by_role("tab", name="Changes").click()
    panel = page.get_by_role("tabpanel", name="Changes")
    expect(panel).to_contain_text("No case has changed since the last commit.")

    visit.save("review.py", REVIEW.replace("Review", "Judge"))

    expect(panel.locator("del")).to_have_text(["Review", "Review"])
    expect(panel.locator("ins")).to_have_text(["Judge", "Judge"])
    expect(panel.get_by_role("heading")).to_have_text(["short", "cold"])
    since = panel.get_by_role("button", name="Since the last commit")
    since.click()
    expect(since).to_have_attribute("aria-pressed", "true")
    expect(panel.locator("ins")).to_have_text(["Judge", "Judge"])
