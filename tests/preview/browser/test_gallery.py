import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

RECIPES = {
    "greetings.py": """
from typing import Annotated
from promptkit import Arg, prompt, resource

@prompt(title="Say hello", tags=["polite"])
def greet(name: str, tone: str = "warm"):
    '''Greet somebody by name.'''
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


def test_every_prompt_is_a_link_of_its_name(visit):
    """Each prompt's name links to its page, even if the name contains special characters."""
    for name in NAMES:
        visit.open("/").get_by_role("link", name=name, exact=True).click()
        expect(visit.page.get_by_role("heading", level=1)).to_have_text(name)


def test_what_is_told_of_a_prompt(visit):
    """A card shows the prompt's title, description, arguments and tags."""
    card = visit.page.get_by_role("listitem").filter(has=visit.page.get_by_role("link", name="greet"))

    for text in ("Say hello", "Greet somebody by name.", "name*", "tone", "polite"):
        expect(card.get_by_text(text, exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("gre", ["greet"]),
        ("HELLO", ["greet"]),
        ("polite", ["greet", "leave"]),
        ("percent", ["re-size"]),
        ("", NAMES),
    ],
    ids=["name", "title", "tag", "argument", "nothing"],
)
def test_search_finds_while_one_types(typed, found, visit):
    """Typing in the search box filters the prompts by name, title, tag and argument."""
    search = visit.page.get_by_role("searchbox", name="Search prompts")
    search.press_sequentially(f"{typed}x")
    search.press("Backspace")

    expect(visit.page.locator("#found h3").get_by_role("link")).to_have_text(found)


def test_search_says_that_it_found_nothing(visit):
    """A search without matches shows the query, and clearing it shows all prompts."""
    search = visit.page.get_by_role("searchbox", name="Search prompts")
    search.fill("<b>?")
    expect(visit.page.locator("#found")).to_have_text("Nothing matches <b>?.")

    search.fill("")
    expect(visit.page.locator("#found h3").get_by_role("link")).to_have_count(3)


def test_search_beside_a_page(visit):
    """The prompt list next to a page can be searched and marks the current prompt."""
    page = visit.prompt("greet")
    beside = page.get_by_role("navigation", name="Prompts")
    expect(beside.get_by_role("link", name="greet", exact=True)).to_have_attribute("aria-current", "page")

    page.get_by_role("searchbox", name="Search prompts").fill("short")
    expect(beside.get_by_role("link")).to_have_text(["leave"])
    beside.get_by_role("link").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("leave")


def test_a_search_can_be_sent(visit):
    """Enter keeps the filtered list, and a link with a query shows the same matches."""
    search = visit.page.get_by_role("searchbox", name="Search prompts")
    search.fill("leave")
    search.press("Enter")
    expect(visit.page.locator("#found h3").get_by_role("link")).to_have_text(["leave"])

    page = visit.open("/?q=leave")
    expect(page.locator("#found h3").get_by_role("link")).to_have_text(["leave"])
    expect(page.get_by_role("searchbox")).to_have_value("leave")


def test_a_fault_is_beside_the_prompts(visit):
    """A diagnostic is shown above the prompts with its location and its source line."""
    faults = visit.page.get_by_role("region", name="What is wrong with the recipes")

    expect(faults).to_contain_text("recipes/faulty.py:4")
    expect(faults.locator(".source")).to_contain_text("def bare(text):")
    expect(faults.locator("mark")).to_have_text("text")


def test_resources(visit):
    """A resource's page shows its contents, and a template is read once its variables are filled in."""
    visit.page.get_by_role("link", name="notes://today", exact=True).click()
    expect(visit.page.locator("#conversation")).to_contain_text("Nothing yet.")

    page = visit.open("/")
    page.get_by_role("link", name="notes://{day}", exact=True).click()
    expect(page.get_by_role("status").filter(has_text="variables")).to_be_visible()
    page.get_by_role("textbox", name="URI").fill("notes://monday")
    page.get_by_role("textbox", name="URI").press("Enter")
    expect(page.locator("#conversation")).to_contain_text("Notes of monday.")
