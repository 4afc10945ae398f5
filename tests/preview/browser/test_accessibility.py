"""Accessibility of the pages: keyboard, assistive technology, color schemes and window sizes."""

import json
from pathlib import Path

import pytest

from tests.clients.node_clients import INSTALLING, install
from tests.preview.browser.sources import MEDIA
from tests.preview.browser.window import panel_of

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = [pytest.mark.slow, pytest.mark.installs, pytest.mark.timeout(INSTALLING)]

RECIPES = {
    "good.py": MEDIA
    + r'''
from datetime import date, datetime
from typing import Annotated, Literal
from promptkit import Arg, Audio, EmbeddedResource, Image, ResourceLink, assistant, prompt, resource, user

@prompt(title="Everything there is", tags=["all", "long"])
def everything(
    text: Annotated[str, Arg("A text", title="The text", examples=["One", "Two"])],
    number: int = 1,
    choice: Literal["a", "b", "c"] = "a",
    many: Literal["a", "b", "c", "d", "e"] | None = None,
    when: datetime | None = None,
    day: date | None = None,
    picture: bytes | None = None,
    items: list[int] | None = None,
    named: Annotated[str, Arg(complete=["x", "y"])] = "x",
    token: Annotated[str, Arg(secret=True)] = "",
    is_short: bool = False,
):
    """Say all there is."""
    yield user(
        "# A heading\n\n*Text* `code` [link](https://example.com)\n\n> quoted",
        "| a | b |\n| - | - |\n| 1 | 2 |",
        text,
    )
    yield assistant("```python\nprint(1)\n```\n\n1. one\n2. two")
    yield user(Image(png()), Audio(wav()), EmbeddedResource("notes://x", text="A note"))
    yield user(EmbeddedResource("notes://y", blob=b"x", mime_type="application/x-y"))
    yield user(ResourceLink("https://example.com/", name="elsewhere"))

@prompt
def fails():
    raise ValueError("no")

@prompt(elicit=True)
def asks(version: Annotated[str, Arg("Which one?")]):
    return version

@prompt
def nothing_to_fill():
    return "It takes no arguments."

@resource("notes://today", title="Today")
def today():
    return "# Notes"

@resource("notes://{day}/all")
def notes(day: str):
    return day
''',
    "faulty.py": "from promptkit import prompt\n\n@prompt\ndef bare(text):\n    return text\n",
}

#: Every page, and the button to click on it.
PAGES = {
    "gallery": ("/", None),
    "nothing found": ("/?q=nowhere", None),
    "conversation": ("/prompts/everything?text=hello", None),
    "raw": ("/prompts/everything?text=hello", "Raw"),
    "errors": ("/prompts/everything?number=x&unknown=1&items=a", None),
    "failure": ("/prompts/fails", None),
    "question": ("/prompts/asks", None),
    "no arguments": ("/prompts/nothing_to_fill", None),
    "resource": ("/resources?uri=notes%3A%2F%2Ftoday", None),
    "template": ("/resources?uri=notes%3A%2F%2F%7Bday%7D%2Fall", None),
    "no resource": ("/resources?uri=x%3A%2F%2Fy", None),
    "no page": ("/prompts/nowhere", None),
    **{
        f"tab {name}": ("/prompts/everything?text=hello", name)
        for name in ("Cases", "Changes", "Wire", "Vendors", "New case", "Command line", "Clients")
    },
}


@pytest.fixture(scope="session")
def axe(installations):
    """The source of axe-core."""
    folder = install(Path(__file__).parent / "axe", installations)
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")


def find_problems(page, axe):
    """Return the violations that axe-core reports, and any horizontal overflow of the window."""
    page.evaluate(axe)
    report = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    assert report["passes"]
    overflow = page.evaluate("document.documentElement.scrollWidth - innerWidth")
    return [
        *(f"{rule['id']}: {node['html'][:160]}" for rule in report["violations"] for node in rule["nodes"]),
        *([f"wider than the window by {overflow}"] if overflow > 0 else []),
    ]


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_rejection_pages_pass_axe(scheme, width, axe, served_recipes, windows):
    """The two 403 pages, without a token and after a link from another page, pass axe-core."""
    _, address = served_recipes
    window = windows(address, color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    window.allow("403")
    page = window.page
    page.goto(window.origin)
    rejected = page.get_by_role("heading", level=1).inner_text(), find_problems(page, axe)
    page.goto("about:blank")
    page.set_content(f'<a href="{window.origin}/prompts/everything?text=hello">Follow</a>')
    page.get_by_role("link", name="Follow").click()
    expect(page.get_by_role("link", name="Open the page")).to_be_visible()
    page.wait_for_load_state()  # wait for its stylesheet

    assert rejected == ("This page cannot be shown", [])
    assert find_problems(page, axe) == []


@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_pass_axe(scheme, width, axe, served_recipes, windows):
    """No page violates a rule of axe-core or is wider than the window."""
    _, address = served_recipes
    # axe-core runs in the page itself, whose policy allows no other scripts.
    window = windows(address, color_scheme=scheme, viewport={"width": width, "height": 800}, bypass_csp=True)
    window.allow(": 404", "404 (Not Found)")
    window.page.goto(address)
    problems_by_page = {}
    for name, (path, button) in PAGES.items():
        window.page.goto(window.origin + path)
        if button:
            window.page.locator(f"button:text-is('{button}')").click()
            expect(window.page.locator("[aria-selected=true], [aria-pressed=true]").first).to_be_visible()
            window.page.wait_for_load_state("networkidle") if button == "Raw" else expect(
                window.page.locator(".panel")
            ).to_be_visible()
        problems_by_page[name] = find_problems(window.page, axe)
    failing = {name: problems for name, problems in problems_by_page.items() if problems}
    assert failing == {}, json.dumps(problems_by_page, indent=1)


def test_examined_prompt_renders_all_messages(visit):
    """The prompt that axe-core examines renders all seven of its messages."""
    expect(visit.prompt("everything", "?text=hello").locator("#rendering > ol > li")).to_have_count(7)


def test_controls_have_accessible_names(visit):
    """Each control's accessible name is its argument's title, or the argument's name."""
    form = visit.prompt("everything").locator("#arguments")

    for name, role in (
        ("The text", "textbox"),
        ("number", "spinbutton"),
        ("choice", "radiogroup"),
        ("many", "combobox"),
        ("when", "textbox"),
        ("day", "textbox"),
        ("picture", "button"),
        ("items", "textbox"),
        ("named", "combobox"),
        ("token", "textbox"),
        ("is_short", "radiogroup"),
    ):
        expect(form.get_by_role(role, name=name, exact=True)).to_be_visible()


def focused_name(page):
    """Return the name of the focused element."""
    return page.evaluate(
        "(e => e.getAttribute('aria-label') || e.id || e.textContent.trim())(document.activeElement)"
    )


def press_until_focused(page, name, key="Tab", limit=80):
    """Press a key until the named element has the focus."""
    for _ in range(limit):
        page.keyboard.press(key)
        if focused_name(page) == name:
            return
    pytest.fail(f"{name!r} is not reached by {key}")


def test_keyboard_alone_is_enough(visit):
    """A user can go from the gallery through a form and its tabs and back, using only the keyboard."""
    page = visit.open("/")
    page.keyboard.press("Tab")
    assert focused_name(page) == "Skip to content"
    press_until_focused(page, "q")
    page.keyboard.type("everything")
    expect(page.locator("#results h3").get_by_role("link")).to_have_count(1)
    press_until_focused(page, "everything")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("everything")
    page.wait_for_load_state()  # the page's scripts have run

    press_until_focused(page, "argument-text")
    page.keyboard.type("by hand")
    press_until_focused(page, "argument-number")
    page.keyboard.press("ArrowUp")
    expect(page.locator("#conversation")).to_contain_text("by hand")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    expect(page.get_by_role("radiogroup", name="choice").get_by_role("radio").nth(1)).to_be_checked()

    press_until_focused(page, "Raw")
    page.keyboard.press("Enter")
    expect(page.locator("#turn-1 .raw")).to_be_visible()
    press_until_focused(page, "Copy turn 1")
    page.keyboard.press("Enter")
    expect(page.locator("#announcement")).to_have_text("Copied.")
    assert "by hand" in page.evaluate("navigator.clipboard.readText()")

    press_until_focused(page, "tab-conversation", "Shift+Tab")
    for name in ("Cases", "Changes", "Wire", "Vendors", "New case", "Command line"):
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name=name)).to_be_focused()
        panel_of(page, name)
    press_until_focused(page, "Copy Command")
    page.keyboard.press("Enter")
    expect(page.locator(".copied")).to_have_text("Copied")
    assert page.evaluate("navigator.clipboard.readText()").startswith("promptkit render recipes everything")

    press_until_focused(page, "argument-number", "Shift+Tab")


def test_focused_element_is_visible(visit):
    """Every element that Tab reaches is visible in the window and has an outline."""
    page = visit.prompt("everything", "?text=hello")
    seen = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        name, has_outline, is_visible = page.evaluate(
            """() => {
              const focused = document.activeElement, row = focused.closest("li") ?? focused;
              const label = focused.labels?.[0] ?? focused;
              const box = focused.getBoundingClientRect();
              const outlined = [focused, row, label].some((e) => getComputedStyle(e).outlineStyle !== "none");
              return [focused.outerHTML.slice(0, 90), outlined, box.bottom > 0 && box.top < innerHeight];
            }"""
        )
        if name.startswith("<body"):
            break
        seen.add(name)
        assert has_outline, name
        assert is_visible, name
    assert len(seen) > 25


@pytest.mark.parametrize("width", [320, 720, 1024])
def test_narrow_windows_do_not_overflow(width, served_recipes, windows):
    """No page overflows a narrow window; 320 px corresponds to a width of 1,280 px at 400% zoom."""
    _, address = served_recipes
    window = windows(address, viewport={"width": width, "height": 600})
    window.allow(": 404", "404 (Not Found)")
    window.page.goto(address)
    for path, _ in PAGES.values():
        window.page.goto(window.origin + path)
        assert window.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
