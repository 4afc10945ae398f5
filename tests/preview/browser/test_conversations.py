"""Conversations in the browser."""

import pytest

from tests.preview.browser.sources import MEDIA

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

HEAD = f"""
import asyncio, time
from typing import Annotated
from promptkit import Arg, Audio, EmbeddedResource, Image, PromptError, ResourceLink, assistant, prompt, user
{MEDIA}
"""

RECIPES = {
    "messages.py": HEAD
    + '''
@prompt
def everything():
    """Say all there is."""
    yield user(
        "# A heading\\n\\nSome *text* and `code`.\\n\\n- one\\n- two",
        "| a | b |\\n| - | - |\\n| 1 | 2 |",
    )
    yield assistant("Of course.")
    yield user(Image(png()))
    yield user(Audio(wav()))
    yield user(EmbeddedResource("notes://plain", text="Plain *text*", mime_type="text/plain"))
    yield user(EmbeddedResource("notes://data", blob=b"\\0\\1\\2", mime_type="application/x-thing"))
    yield user(ResourceLink("https://example.com/page", name="page", description="A page"))

@prompt
def long(size: int):
    return "word " * size

@prompt(timeout=0.3)
def hangs():
    time.sleep(60)

@prompt
def raises(text: str = "it"):
    raise ValueError(f"cannot do {text}")

@prompt
def refuses():
    raise PromptError("Not today: the office is closed.")

@prompt(elicit=True)
def asks(version: Annotated[str, Arg("Which version?")], note: str = "none"):
    return f"Release {version}, {note}."

@prompt
async def waits(text: str = "so"):
    await asyncio.sleep(0)
    return f"Waited, {text}."
''',
}


def locate_turns(page):
    return page.locator("#rendering > ol > li")


def test_turns_show_roles_and_tokens(visit):
    """Each message shows its role, and the page shows approximate token counts."""
    page = visit.prompt("everything")

    expect(locate_turns(page)).to_have_count(7)
    expect(locate_turns(page).locator(".role")).to_have_text(["user", "assistant", *["user"] * 5])
    expect(locate_turns(page).nth(0).locator(".turn-header")).to_contain_text("tokens")
    expect(page.locator("#state")).to_contain_text("7 messages, about")


def test_text_is_shown_formatted_or_raw(visit):
    """Text is shown formatted or raw, and the choice persists across pages."""
    page = visit.prompt("everything")
    first = locate_turns(page).nth(0)
    expect(first.locator("em")).to_have_text("text")
    expect(first.locator("table")).to_be_visible()
    expect(first.locator(".raw")).to_be_hidden()

    page.get_by_role("button", name="Raw").click()
    expect(first.locator(".raw")).to_be_visible()
    expect(first.locator(".raw")).to_contain_text(
        "# A heading\n\nSome *text* and `code`.", use_inner_text=True
    )
    expect(first.locator(".formatted")).to_be_hidden()
    page.reload()
    expect(page.get_by_role("button", name="Raw")).to_have_attribute("aria-pressed", "true")
    expect(first.locator(".raw")).to_be_visible()


def test_image_is_displayed(visit):
    """The browser decodes an image and displays it at its size."""
    image = locate_turns(visit.prompt("everything")).nth(2).get_by_role("img")

    expect(image).to_have_accessible_name("image of turn 3")
    size = "async (image) => (await image.decode(), [image.naturalWidth, image.naturalHeight])"
    assert image.evaluate(size) == [3, 2]


def test_recording_can_be_played(visit):
    """The browser can play a recording and knows its duration."""
    player = locate_turns(visit.prompt("everything")).nth(3).locator("audio")

    expect(player).to_have_js_property("duration", 1)
    assert player.evaluate("(audio) => audio.play().then(() => audio.error)") is None


def test_embedded_resources_are_shown(visit):
    """An embedded text is shown, an embedded blob can be downloaded, and a resource link is a link."""
    page = visit.prompt("everything")
    expect(locate_turns(page).nth(4)).to_contain_text("notes://plain")
    expect(locate_turns(page).nth(4)).to_contain_text("Plain *text*")

    with page.expect_download() as saved:
        locate_turns(page).nth(5).get_by_role("link", name="Save this file").click()
    assert saved.value.path().read_bytes() == b"\0\1\2"

    link = locate_turns(page).nth(6).get_by_role("link", name="page")
    assert link.get_attribute("href") == "https://example.com/page"
    assert "noreferrer" in link.get_attribute("rel")


def test_copying_a_turn_copies_its_raw_text(visit):
    """Copying a turn copies its raw text, not its formatted Markdown."""
    page = visit.prompt("everything")
    page.get_by_role("button", name="Copy turn 1").click()
    expect(page.locator("#announcement")).to_have_text("Copied.")

    assert page.evaluate("navigator.clipboard.readText()").startswith("# A heading\n\nSome *text*")


def test_long_text_is_truncated_until_requested(visit):
    """Long text is truncated, with its length shown, and a button shows all of it."""
    page = visit.prompt("long", "?size=50000")
    turn = locate_turns(page).nth(0)
    expect(turn).to_contain_text("20,000 of 250,000 characters are shown.")

    turn.get_by_role("button", name="Show all").click()
    expect(turn.locator(".truncated")).to_have_count(0)
    assert len(turn.locator(".raw").text_content()) == 250_000


def test_hanging_prompt_shows_its_limit(visit):
    """If a prompt exceeds its timeout, the page shows the limit, and other prompts still render."""
    page = visit.prompt("hangs")
    expect(page.locator("#conversation")).to_contain_text("took longer than its limit of 0.3 s")

    expect(locate_turns(visit.prompt("everything"))).to_have_count(7)


def test_exception_shows_a_traceback(visit):
    """An exception shows a traceback that includes the recipe's file."""
    page = visit.prompt("raises")
    page.get_by_role("textbox", name="text").fill("<that>")

    expect(page.locator("#conversation")).to_contain_text("ValueError: cannot do <that>")
    expect(page.locator("#conversation")).to_contain_text("recipes/messages.py")
    expect(page.locator("#state")).to_have_text("This prompt failed")
    expect(page.get_by_text("This prompt failed")).to_have_count(1)


def test_refused_defaults_show_the_message(visit):
    """A `PromptError` raised for the default values shows its message, without a traceback or a failure."""
    page = visit.prompt("refuses")

    expect(page.locator("#conversation .not-rendered")).to_have_text(
        "Not rendered: Not today: the office is closed."
    )
    expect(page.locator(".failure")).to_have_count(0)


def test_missing_argument_is_asked_for(visit):
    """The page shows the argument that clients ask for, and the form supplies it."""
    page = visit.prompt("asks")
    expect(page.locator("#state")).to_have_text("1 argument needs attention: version")
    expect(page.locator("#conversation")).to_contain_text(
        "Clients that support forms ask the user for version. All others receive an error."
    )

    page.get_by_role("textbox", name="version").fill("1.0")
    expect(locate_turns(page)).to_contain_text(["Release 1.0, none."])


def test_asynchronous_prompt_renders(visit):
    """An asynchronous prompt renders like any other."""
    expect(locate_turns(visit.prompt("waits"))).to_contain_text(["Waited, so."])
