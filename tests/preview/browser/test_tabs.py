"""Tabs of a rendering: their contents are copied from the page and used."""

import json
import sys

import pytest

from promptkit.clients.profiles import CLIENTS
from promptkit.compiler.compilation import compile
from promptkit.protocol.revisions import REVISIONS
from tests.preview.browser.window import panel_of
from tests.terminal import in_shell

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

RECIPES = {
    "reviews.py": '''
from datetime import date
from typing import Annotated
from promptkit import Arg, assistant, prompt, user

@prompt
def review(code: Annotated[str, Arg("The code")], due: date | None = None, depth: int = 3):
    """Review code."""
    yield user(f"Review this to depth {depth}, until {due}:", code)
    yield assistant("Of course.")

@prompt
def long(count: int):
    return user("word " * count + "\\u202eend")

@prompt
def small(text: str):
    return f"Say {text}."
''',
}

QUERY = "?code=print(%22it%27s%22)%0Aprint(2)&due=2026-01-31&depth=5"


def open_tab(page, name):
    """Open a tab and return its panel."""
    page.get_by_role("tab", name=name).click()
    return panel_of(page, name)


def copy_first(panel):
    """Click the first copy button and return the clipboard's text."""
    panel.get_by_role("button", name="Copy").first.click()
    expect(panel.locator(".copied").first).to_have_text("Copied")
    return panel.page.evaluate("navigator.clipboard.readText()")


def test_all_tabs_fit_a_small_laptop(visit):
    """At 1,280 pixels, all tabs are on one line."""
    page = visit.prompt("review", QUERY)
    page.set_viewport_size({"width": 1280, "height": 800})
    tabs = page.get_by_role("tab").all()
    boxes = [box for tab in tabs if (box := tab.bounding_box()) is not None]

    assert len(boxes) == 8
    assert len({box["y"] for box in boxes}) == 1
    assert boxes[-1]["x"] + boxes[-1]["width"] <= 1280


def test_wire_tab_has_each_revision(visit):
    """The Wire tab has a result for each revision, and the oldest and newest list entries differ."""
    panel = open_tab(visit.prompt("review", QUERY), "Wire")
    oldest, *_, newest = REVISIONS
    expect(panel.get_by_role("button", name=newest)).to_have_attribute("aria-pressed", "true")
    text = json.loads(copy_first(panel))["messages"][0]["content"]["text"]
    assert text.startswith("Review this to depth 5, until 2026-01-31:")

    entries = {}
    for date in REVISIONS:
        panel.get_by_role("button", name=date).click()
        expect(panel.get_by_role("button", name=date)).to_have_attribute("aria-pressed", "true")
        entries[date] = panel.locator("pre").last.text_content()
    assert entries[oldest] != entries[newest]


def test_vendors_tab_keeps_the_choice(visit):
    """The Vendors tab shows one vendor's request, and keeps the choice when a value changes."""
    page = visit.prompt("review", QUERY)
    panel = open_tab(page, "Vendors")
    for vendor, key in (("OpenAI chat", "messages"), ("OpenAI responses", "input"), ("Gemini", "contents")):
        panel.get_by_role("button", name=vendor).click()
        expect(panel.get_by_role("button", name=vendor)).to_have_attribute("aria-pressed", "true")
        assert json.loads(panel.locator("pre").first.text_content()).keys() == {key}

    page.get_by_role("spinbutton", name="depth").fill("8")
    expect(panel.locator("pre").first).to_contain_text("to depth 8")
    expect(panel.get_by_role("button", name="Gemini")).to_have_attribute("aria-pressed", "true")


def test_complete_text_is_copied(visit):
    """Copying yields the complete text, even if it is truncated or shown with escapes."""
    page = visit.prompt("long", "?count=60000")
    text = "word " * 60_000 + "\u202eend"
    page.get_by_role("button", name="Copy turn 1").click()
    expect(page.locator("#announcement")).to_have_text("Copied.")
    assert page.evaluate("navigator.clipboard.readText()") == text

    panel = open_tab(page, "Wire")
    expect(panel.locator(".truncated")).to_contain_text("20,000 of 300,")
    assert json.loads(copy_first(panel))["messages"][0]["content"]["text"] == text


def test_long_value_scrolls_within_its_row(visit):
    """A long value scrolls within its row, and argument names stay on one line."""
    page = visit.prompt("small")
    page.get_by_role("textbox", name="text").fill("0123456789abcdef" * 1000)
    panel = open_tab(page, "Clients")
    panel.get_by_role("button", name="Cursor").click()
    row = panel.locator("tbody tr")
    expect(row.locator("pre")).to_contain_text("0123456789abcdef")

    assert row.bounding_box()["height"] < 320
    assert row.locator("th code").evaluate("code => code.getClientRects().length") == 1


def test_copied_case_has_the_values_of_the_form(visit, served_recipes, tmp_path):
    """The copied source, pasted below the prompt, defines a case with the values of the form."""
    source = copy_first(open_tab(visit.prompt("small?text=%F0%9F%90%8D%20%22quoted%22"), "New case"))
    folder, _ = served_recipes
    recipe = tmp_path / "reviews.py"
    recipe.write_text((folder / "reviews.py").read_text() + source, encoding="utf-8")

    (case,) = compile(str(recipe))["small"].saved()

    assert case.sent() == {"text": '\N{SNAKE} "quoted"'}


@pytest.mark.skipif(sys.platform == "win32", reason="the command is for the shells of Linux and macOS")
def test_copied_command_prints_the_same_rendering(visit, served_recipes):
    """The copied command line, run in a shell next to the recipes, prints the same rendering."""
    command = copy_first(open_tab(visit.prompt("review", QUERY), "Command line"))
    folder, _ = served_recipes

    code, out, err = in_shell(command, cwd=folder.parent)

    assert (code, err) == (0, b"")
    assert b"Review this to depth 5, until 2026-01-31:" in out
    assert b'print("it\'s")\nprint(2)' in out


def test_clients_tab_shows_the_view_of_a_client(visit):
    """Zed hides a prompt with several arguments, and Gemini CLI sends only the first message."""
    panel = open_tab(visit.prompt("review", QUERY), "Clients")
    panel.get_by_role("button", name=CLIENTS["zed"].title).click()
    expect(panel).to_contain_text("Zed does not offer this prompt to users.")

    panel.get_by_role("button", name=CLIENTS["gemini-cli"].title).click()
    turns = panel.locator(".turns li")
    expect(turns).to_have_count(2)
    expect(turns.nth(0)).not_to_contain_text("dropped by the client")
    expect(turns.nth(1)).to_contain_text("dropped by the client")

    panel = open_tab(visit.prompt("small", "?text=two words"), "Clients")
    panel.get_by_role("button", name=CLIENTS["zed"].title).click()
    expect(panel.locator(".turns")).to_contain_text("Say two words.")


def test_open_tab_follows_a_reload(visit_recipes):
    """An open tab is updated by a reload."""
    visit = visit_recipes(reviews=RECIPES["reviews.py"])
    panel = open_tab(visit.prompt("small", "?text=hello"), "Wire")
    expect(panel).to_contain_text("Say hello.")

    visit.save("reviews.py", RECIPES["reviews.py"].replace("Say ", "Sing "))

    expect(panel).to_contain_text("Sing hello.")
