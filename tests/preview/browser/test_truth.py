"""Pages show the current state: broken files, slow prompts, a server that has stopped."""

import signal
import subprocess
import sys

import pytest

from tests.terminal import environment

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

RED = "rgb(179, 38, 30)"

GOOD = """
from promptkit import prompt

@prompt
def good(text: str, count: int = 1):
    return text * count
"""
READING = "from promptkit import resource\n\n@resource('note://x')\ndef note() -> str:\n    return 'A note'\n"


def test_every_page_reports_broken_files(visit_recipes):
    """Every page reports broken files, until a save fixes them."""
    visit = visit_recipes(good=GOOD, reading=READING, broken="import nowhere_to_be_found\n")
    for path in ("/", "/prompts/good", "/resources?uri=note://x"):
        page = visit.open(path)
        expect(page.get_by_role("link", name="Not loaded: 1 error in broken.py.")).to_be_in_viewport()

    visit.save("broken.py", "")
    expect(page.get_by_role("link", name="Not loaded")).to_have_count(0)
    visit.save("broken.py", "import nowhere_to_be_found\n")
    page.get_by_role("link", name="Not loaded: 1 error in broken.py.").click()
    expect(page.get_by_role("region", name="Diagnostics")).to_contain_text("nowhere")


def test_page_of_a_slow_prompt_loads_immediately(visit_recipes):
    """The page of a slow prompt loads immediately and shows the rendering when it is ready."""
    slow = "from pathlib import Path\nimport asyncio\nfrom promptkit import prompt\n\n"
    slow += "gate = Path(__file__).with_name('closed')\n\n@prompt\nasync def slow(text: str = 'a'):\n"
    slow += "    while gate.exists():\n        await asyncio.sleep(0.02)\n    return f'Said {text}.'\n"
    visit = visit_recipes(slow=slow)
    (visit.folder / "closed").touch()

    page = visit.prompt("slow", "?text=b")
    expect(page.locator("#state")).to_have_text("Rendering...")
    expect(page.get_by_role("textbox", name="text")).to_have_value("b")
    (visit.folder / "closed").unlink()

    expect(page.get_by_role("tabpanel", name="Conversation")).to_contain_text("Said b.")
    expect(page.locator("#state")).to_contain_text("1 message")


def test_slow_prompt_is_rendered_once(visit_recipes):
    """Opening the page renders a slow prompt once, in whatever order its case lists the values."""
    slow = "from pathlib import Path\nimport asyncio\nfrom promptkit import prompt\n\n"
    slow += "calls = Path(__file__).parents[1] / 'calls'\n\n@prompt\nasync def slow(text: str, count: int):\n"
    slow += "    calls.write_text(calls.read_text() + 'x' if calls.exists() else 'x')\n"
    slow += "    await asyncio.sleep(0.6)\n    return text * count\n\n"
    slow += "slow.case_wire('case', {'count': '2', 'text': 'ab'})\n"
    visit = visit_recipes(slow=slow)

    page = visit.prompt("slow")
    expect(page.locator("#rendering")).to_contain_text("abab")
    assert (visit.folder.parent / "calls").read_text() == "x"


def test_stopped_server_is_reported(recipes, windows):
    """When the server stops, the page reports it in red and marks the rendering as outdated."""
    folder = recipes(good=GOOD)
    command = [sys.executable, "-m", "promptkit", "dev", "--no-open", "--port", "0", folder.name]
    process = subprocess.Popen(
        command, cwd=folder.parent, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        address = process.stdout.readline().decode().strip()
        window = windows(address)
        window.allow("ERR_", "failed")
        page = window.page
        page.goto(address)
        page.goto(f"{window.origin}/prompts/good?text=a")
        expect(page.locator("#state")).to_contain_text("1 message")

        process.send_signal(signal.SIGTERM)
        process.wait(20)

        expect(page.locator("#announcement")).to_have_text("promptkit dev is not responding.")
        expect(page.locator("#state")).to_have_text("Not connected: this may be outdated")
        expect(page.locator("#announcement")).to_have_css("color", RED)
        expect(page.locator(".turn")).to_have_css("border-top-style", "dashed")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_prompt_of_a_broken_file_keeps_its_rendering(visit_recipes):
    """A prompt of a broken file keeps its last rendering, which is labelled as outdated."""
    visit = visit_recipes(good=GOOD)
    page = visit.prompt("good", "?text=abc")
    visit.save("good.py", GOOD.replace("return", "retrn"))

    expect(page.locator("#problems")).to_contain_text("The file of this prompt cannot be loaded")
    expect(page.get_by_text("Before the last change:")).to_be_visible()
    expect(page.locator("#rendering .turn")).to_have_css("border-top-style", "dashed")
    visit.save("good.py", GOOD)
    expect(page.locator("#rendering .turn")).to_have_css("border-top-style", "solid")


def test_last_rendering_stays_while_a_value_is_invalid(visit_recipes):
    """The last rendering stays in place, labelled as outdated, until the value is valid again."""
    page = visit_recipes(good=GOOD).prompt("good", "?text=abc&count=2")
    rendering, label = page.locator("#rendering"), page.get_by_text("Before the last change:")
    turn = rendering.locator(".turn")
    expect(rendering).to_contain_text("abcabc")
    expect(label).to_be_hidden()
    before = turn.bounding_box()

    page.get_by_role("textbox", name="text").fill("")
    expect(label).to_be_visible()
    expect(rendering).to_contain_text("abcabc")
    expect(turn).to_have_css("border-top-style", "dashed")
    expect(page.locator("#errors-of-text")).to_contain_text("is missing")
    assert turn.bounding_box() == before
    page.get_by_role("textbox", name="text").fill("x")

    expect(rendering).to_contain_text("xx")
    expect(label).to_be_hidden()
    expect(turn).to_have_css("border-top-style", "solid")


def test_untouched_fields_are_not_marked(visit_recipes):
    """A missing argument is marked as invalid only after its field was touched."""
    page = visit_recipes(good=GOOD).prompt("good")
    text = page.get_by_role("textbox", name="text")
    expect(page.locator("#state")).to_contain_text("1 argument needs attention")
    expect(text).not_to_have_attribute("aria-invalid", "true")
    expect(page.locator("#errors-of-text")).to_be_hidden()

    text.focus()
    text.blur()

    expect(text).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#errors-of-text")).to_be_visible()
