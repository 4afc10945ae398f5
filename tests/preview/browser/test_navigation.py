"""Navigation: tabs, the prompt list and the search."""

import re

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

LONG = """
from promptkit import prompt, user, assistant

@prompt(tags=["two words"])
def long(count: int = 40, text: str = "a long line of text, as there are some: " + "on and on " * 9):
    for number in range(count):
        yield (user, assistant)[number % 2](f"Turn {number}: " + "word " * 40)

long.case("forty", 40)
"""

MANY = "from promptkit import prompt\n" + "".join(
    f"@prompt(title='Prompt {n} and its topic', tags=['t{n % 3}'])\n"
    f"def prompt_{n:04}():\n    return 'Said by {n}.'\n"
    for n in range(1000)
)


def test_tabs_stay_visible_while_scrolling(visit_recipes):
    """The tabs stay visible however far a long conversation is scrolled."""
    page = visit_recipes(long=LONG).prompt("long")
    expect(page.locator("#turn-40")).to_contain_text("Turn 39")

    page.locator("#turn-40").scroll_into_view_if_needed()

    expect(page.locator("#turn-1")).not_to_be_in_viewport()
    for name in (
        "Conversation",
        "Cases",
        "Changes",
        "Wire",
        "Vendors",
        "New case",
        "Command line",
        "Clients",
    ):
        expect(page.get_by_role("tab", name=name, exact=True)).to_be_in_viewport(ratio=1)
    page.get_by_role("tab", name="Wire").click()
    expect(page.get_by_role("tabpanel", name="Wire")).to_contain_text("Turn 0")
    expect(page.locator("#turn-1")).to_be_hidden()


def test_address_holds_the_open_tab(visit_recipes):
    """The address holds the open tab, even after a value changes."""
    page = visit_recipes(long=LONG).prompt("long")
    page.get_by_role("tab", name="Wire").click()
    page.get_by_role("spinbutton", name="count").fill("2")
    expect(page).to_have_url(re.compile("count=2&open-tab=wire$"))

    page.goto(page.url)
    expect(page.get_by_role("tab", name="Wire")).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("tabpanel", name="Wire")).to_contain_text("Turn 1")
    page.get_by_role("tab", name="Conversation").click()
    expect(page).to_have_url(re.compile("count=2$"))


def test_arguments_are_a_tab_on_a_small_screen(small_page):
    """On a small screen the arguments are a tab, and every tab fits the window's width."""
    page = small_page
    expect(page.get_by_role("spinbutton", name="count")).to_be_hidden()
    page.get_by_role("tab", name="Arguments").click()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    page.get_by_role("spinbutton", name="count").fill("3")
    expect(page.locator("#state")).to_contain_text("3 messages")
    expect(page.locator("#state")).to_be_in_viewport()
    page.get_by_role("tab", name="Conversation").click()
    expect(page.locator("#turn-1")).to_be_in_viewport()
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


@pytest.fixture
def small_page(recipes, windows, servers):
    """The page of a long conversation in a window of 360 px."""
    from benchmarks.browser import serve_preview

    address = servers.enter_context(serve_preview(recipes(long=LONG)))
    window = windows(address, viewport={"width": 360, "height": 740})
    window.page.goto(address)
    window.page.goto(f"{window.origin}/prompts/long")
    return window.page


def test_current_prompt_is_scrolled_into_view(visit_recipes):
    """The current prompt is scrolled into view when the page opens and after a reload."""
    visit = visit_recipes(many=MANY)
    page = visit.prompt("prompt_0777")
    current = page.get_by_role("navigation", name="Prompts").locator("[aria-current]")
    expect(current).to_be_in_viewport()
    expect(current).to_have_text("prompt_0777")

    visit.save("many.py", MANY.replace("Said by 777", "Told by 777"))

    expect(page.locator("#rendering")).to_contain_text("Told by 777.")
    expect(current).to_be_in_viewport()


def test_going_back_restores_the_search(visit_recipes):
    """Going back to the gallery restores the search, which is part of the address."""
    page = visit_recipes(many=MANY, long=LONG).page
    page.get_by_role("searchbox", name="Search prompts").fill("prompt_001")
    expect(page.locator("#counts")).to_contain_text("10 of 1,001")
    page.get_by_role("link", name="prompt_0015", exact=True).click()
    expect(page.locator("#rendering")).to_contain_text("Said by 15.")

    page.go_back()

    expect(page.get_by_role("searchbox", name="Search prompts")).to_have_value("prompt_001")
    expect(page.locator("#counts")).to_contain_text("10 of 1,001")


def test_tag_filters_the_prompts(visit_recipes):
    """A tag filters the prompts in the gallery and in the list next to a page."""
    visit = visit_recipes(many=MANY, long=LONG)
    page = visit.page
    page.locator(".card").get_by_role("link", name="two words").click()
    expect(page.locator("#counts")).to_contain_text("1 of 1,001")

    page = visit.prompt("long")
    side = page.get_by_role("navigation", name="Prompts")
    side.get_by_text("Tags").click()
    side.get_by_role("button", name="two words").click()
    expect(side.locator(".prompt-list").get_by_role("link")).to_have_text(["long"])


def test_a_shortcut_opens_the_search(visit_recipes):
    """``/`` focuses the search."""
    page = visit_recipes(many=MANY).prompt("prompt_0001")
    page.keyboard.press("/")
    expect(page.get_by_role("navigation", name="Prompts").get_by_role("searchbox")).to_be_focused()
