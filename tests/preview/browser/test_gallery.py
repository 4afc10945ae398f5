import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

RECIPES = {
    "greetings.py": """
from typing import Annotated
from promptkit import Arg, prompt, resource

@prompt(title="Say hello", tags=["polite"])
def greet(name: str, tone: str = "warm"):
    '''Greet a person by name.'''
    return f"Greet {name} in a {tone} tone."

@prompt(tags=["polite", "short"])
def leave():
    return "Say goodbye."

@prompt(name="re-size")
def resize(percent: int):
    return f"Resize by {percent}."

@resource("notes://today", title="Notes of today")
def today():
    return "Nothing yet."

@resource("notes://{day}")
def notes(day: str):
    return f"Notes of {day}."
""",
    "faulty.py": "from promptkit import prompt\n\n@prompt\ndef bare(text):\n    return text\n",
}
NAMES = ["greet", "leave", "re-size"]


def test_each_name_links_to_its_prompt(visit):
    """Each prompt's name links to its page, even if the name contains special characters."""
    for name in NAMES:
        visit.open("/").get_by_role("link", name=name, exact=True).click()
        expect(visit.page.get_by_role("heading", level=1)).to_have_text(name)


def test_card_shows_the_metadata(visit):
    """A card shows the prompt's title, description, arguments and tags."""
    card = visit.page.get_by_role("listitem").filter(has=visit.page.get_by_role("link", name="greet"))

    for text in ("Say hello", "Greet a person by name.", "name*", "tone", "polite"):
        expect(card.get_by_text(text, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("typed", "matches"),
    [
        ("gre", ["greet"]),
        ("HELLO", ["greet"]),
        ("polite", ["greet", "leave"]),
        ("percent", ["re-size"]),
        ("", NAMES),
    ],
    ids=["name", "title", "tag", "argument", "nothing"],
)
def test_typing_filters_the_prompts(typed, matches, visit):
    """Typing in the search box filters the prompts by name, title, tag and argument."""
    search = visit.page.get_by_role("searchbox", name="Search prompts")
    search.press_sequentially(f"{typed}x")
    search.press("Backspace")

    expect(visit.page.locator("#results h3").get_by_role("link")).to_have_text(matches)


def test_search_without_matches_shows_the_query(visit):
    """A search without matches shows the query, and clearing it shows all prompts."""
    search = visit.page.get_by_role("searchbox", name="Search prompts")
    search.fill("<b>?")
    expect(visit.page.locator("#results")).to_have_text("Nothing matches <b>?.")

    search.fill("")
    expect(visit.page.locator("#results h3").get_by_role("link")).to_have_count(3)


def test_list_next_to_a_page_can_be_searched(visit):
    """The prompt list next to a page can be searched and marks the current prompt."""
    page = visit.prompt("greet")
    prompt_list = page.get_by_role("navigation", name="Prompts")
    expect(prompt_list.get_by_role("link", name="greet", exact=True)).to_have_attribute(
        "aria-current", "page"
    )

    page.get_by_role("searchbox", name="Search prompts").fill("short")
    expect(prompt_list.get_by_role("link")).to_have_text(["leave"])
    prompt_list.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("leave")


def test_enter_keeps_the_filtered_list(visit):
    """Enter keeps the filtered list, and a link with a query shows the same matches."""
    search = visit.page.get_by_role("searchbox", name="Search prompts")
    search.fill("leave")
    search.press("Enter")
    expect(visit.page.locator("#results h3").get_by_role("link")).to_have_text(["leave"])

    page = visit.open("/?q=leave")
    expect(page.locator("#results h3").get_by_role("link")).to_have_text(["leave"])
    expect(page.get_by_role("searchbox")).to_have_value("leave")


def test_diagnostic_is_shown_above_the_prompts(visit):
    """A diagnostic is shown above the prompts with its location and its source line."""
    diagnostics = visit.page.get_by_role("region", name="Diagnostics")

    expect(diagnostics).to_contain_text("recipes/faulty.py:4")
    expect(diagnostics.locator(".source")).to_contain_text("def bare(text):")
    expect(diagnostics.locator("mark")).to_have_text("text")


def test_resource_pages_show_their_contents(visit):
    """A resource's page shows its contents, and a template is read once its variables are filled in."""
    visit.page.get_by_role("link", name="notes://today", exact=True).click()
    expect(visit.page.locator("#conversation")).to_contain_text("Nothing yet.")

    page = visit.open("/")
    page.get_by_role("link", name="notes://{day}", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="variables")).to_be_visible()
    page.get_by_role("textbox", name="URI").fill("notes://monday")
    page.get_by_role("textbox", name="URI").press("Enter")
    expect(page.locator("#conversation")).to_contain_text("Notes of monday.")
