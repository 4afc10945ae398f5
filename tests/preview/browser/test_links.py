"""Links from other pages to the preview, followed in a browser."""

import threading
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from promptkit.cli.dev import redirect_file

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = pytest.mark.installs

NOTES = """
from pathlib import Path
from promptkit import prompt

@prompt
def note(text: str):
    with open(Path(__file__).with_name("ran.txt"), "a") as file:
        file.write(text)
    return f"Noted {text}."
"""


def make_link_page(address):
    """Return an HTML page with one link."""
    return f'<!doctype html><link rel="icon" href="data:,"><a href="{address}">Follow</a>'


@pytest.fixture
def serve_link(servers):
    """A function that serves a page with a link on another port of this machine, and returns the port."""

    class Page(BaseHTTPRequestHandler):
        def __init__(self, address, *arguments):
            self.address = address
            super().__init__(*arguments)

        def do_GET(self):
            body = make_link_page(self.address).encode()
            self.send_response(200)
            self.send_header("content-type", "text/html")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_words):
            pass

    def serve(address):
        server = servers.enter_context(ThreadingHTTPServer(("127.0.0.1", 0), partial(Page, address)))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.callback(server.shutdown)
        return server.server_address[1]

    return serve


@pytest.mark.parametrize("is_file", [False, True], ids=["another port", "a file"])
def test_link_from_another_page_needs_a_click(is_file, visit_recipes, serve_link, tmp_path):
    """A link from another page renders the prompt only after a click on the confirmation page."""
    visit = visit_recipes(note=NOTES)
    link = f"{visit.window.origin}/prompts/note?text=a+b"
    visit.window.allow("requested another origin", "403")
    if is_file:
        (tmp_path / "page.html").write_text(make_link_page(link))
        visit.page.goto((tmp_path / "page.html").as_uri())
    else:
        visit.page.goto(f"http://127.0.0.1:{serve_link(link)}/")
    visit.page.get_by_role("link", name="Follow").click()

    confirm = visit.page.get_by_role("link", name="Open the page")
    expect(visit.page.get_by_role("heading")).to_have_text("Open this link?")
    expect(visit.page.locator("code")).to_have_text(["recipes", "/prompts/note?text=a+b"])
    assert not (visit.folder / "ran.txt").exists()
    confirm.click()

    expect(visit.page.locator("#conversation")).to_contain_text("Noted a b.")


def test_long_link_fits_a_narrow_window(visit_recipes, serve_link):
    """A long link is shown in full without making the page wider than the window."""
    visit = visit_recipes(note=NOTES)
    visit.page.set_viewport_size({"width": 360, "height": 800})
    visit.window.allow("requested another origin", "403")
    visit.page.goto(
        f"http://127.0.0.1:{serve_link(visit.window.origin + '/prompts/note?text=' + 'x' * 500)}/"
    )
    visit.page.get_by_role("link", name="Follow").click()

    expect(visit.page.locator("main code")).to_have_text("/prompts/note?text=" + "x" * 500)
    visit.page.wait_for_load_state()  # wait for its stylesheet
    assert visit.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_redirect_file_opens_the_gallery(visit_recipes):
    """The redirect file of `promptkit dev` opens the gallery without a click and removes the token."""
    visit = visit_recipes(note=NOTES)
    visit.page.goto("about:blank")  # the open page subscribes to events, which are refused without the cookie
    visit.window.context.clear_cookies()
    visit.window.allow("requested another origin: file:")
    with redirect_file(visit.address) as url:
        visit.page.goto(url)
        expect(visit.page.locator("#results").get_by_role("link")).to_have_text(["note"])

    assert visit.page.url == f"{visit.window.origin}/"
