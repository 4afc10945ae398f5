"""The state that a page shows while a prompt runs."""

import pytest

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

GATED = """
import asyncio
from pathlib import Path
from promptkit import prompt

gate = Path(__file__).with_name("closed")

@prompt
async def gated(count: int):
    while gate.exists():
        await asyncio.sleep(0.02)
    return f"Counted {count}."
"""


def test_previous_errors_are_cleared_while_rendering(visit_recipes):
    """While a prompt runs, the page shows that it renders and clears the previous errors."""
    visit = visit_recipes(gated=GATED)
    page = visit.prompt("gated", "?count=many")
    count, state = page.get_by_label("count").first, page.locator("#state")
    expect(state).to_contain_text("1 argument needs attention")
    expect(count).to_have_attribute("aria-invalid", "true")

    (visit.folder / "closed").touch()
    count.fill("3")
    expect(state).to_have_text("Rendering...")
    expect(count).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator(".field-errors")).to_have_text("")
    (visit.folder / "closed").unlink()

    expect(state).to_contain_text("1 message")
    expect(page.locator("#conversation")).to_contain_text("Counted 3.")
    count.fill("")
    expect(state).to_contain_text("1 argument needs attention")
    expect(count).to_have_attribute("aria-invalid", "true")


def test_typing_does_not_postpone_the_state(visit_recipes):
    """Continuous typing does not postpone the "Rendering..." state."""
    visit = visit_recipes(gated=GATED)
    page = visit.prompt("gated", "?count=1")
    (visit.folder / "closed").touch()
    page.evaluate("""() => {
        const count = document.querySelector("#arguments [name=count]");
        let typed = 1;
        window.typing = setInterval(() => {
            count.value = ++typed;
            count.dispatchEvent(new Event("input", { bubbles: true }));
        }, 100);
    }""")

    expect(page.locator("#state")).to_have_text("Rendering...")
    page.evaluate("clearInterval(window.typing)")
    (visit.folder / "closed").unlink()
    expect(page.locator("#state")).to_contain_text("1 message")


def test_open_tab_shows_the_state(visit_recipes):
    """An open tab also shows "Rendering...", until it is up to date."""
    visit = visit_recipes(gated=GATED)
    page = visit.prompt("gated", "?count=1")
    panel = page.locator("#tab-panel")
    page.get_by_role("tab", name="Wire").click()
    expect(panel).to_contain_text("Counted 1.")

    (visit.folder / "closed").touch()
    page.get_by_label("count").first.fill("2")
    expect(panel).to_have_attribute("aria-busy", "true")
    script = "getComputedStyle(document.getElementById('tab-panel'), '::before').content"
    assert page.evaluate(script) == '"Rendering..."'
    (visit.folder / "closed").unlink()

    expect(panel).to_contain_text("Counted 2.")
    expect(panel).not_to_have_attribute("aria-busy", "true")
