"""Pages of a server's prompts: the server's text is never HTML, and cases are in `cases.toml`."""

from html import unescape
from html.parser import HTMLParser
from urllib.parse import quote

import pytest

from promptkit.foreign.cases import read_cases
from promptkit.foreign.catalog import catalog_of
from promptkit.foreign.lints import lint_listing
from promptkit.foreign.listing import parse_listing
from promptkit.preview.live import LiveCatalog
from promptkit.preview.prompt_pages import PANELS
from promptkit.preview.routes import create_application
from tests.foreign.replies import ScriptedConnection
from tests.preview.conftest import HOST, TOKEN, Preview

#: Text that runs code in pages that do not escape it, in each place.
XSS = "\"'><script>alert(1)</script><img src=x onerror=alert(1)><a href='javascript:alert(1)'>"
MARKDOWN = f"[x](javascript:alert(1)) ![y](https://evil.example/z.png) {XSS}\n\n<b>bold</b>"

ICON = {"src": "https://evil.example/track.png"}
HOSTILE = {
    "prompts": [
        {
            "name": f"../{XSS}",
            "title": XSS,
            "description": XSS,
            "icons": [ICON],
            "arguments": [{"name": XSS, "title": XSS, "description": XSS}],
        }
    ],
    "resources": [{"uri": f"a:{XSS}", "name": XSS, "description": XSS}],
    "tools": [{"name": XSS, "description": XSS * 100, "inputSchema": {}}],
}
BLOCKS = [
    {"type": "text", "text": MARKDOWN},
    {"type": "resource_link", "uri": "javascript:alert(1)", "name": XSS, "title": XSS},
    {"type": "resource", "resource": {"uri": "a:b", "text": MARKDOWN, "mimeType": "text/html"}},
]
REPLY = {"messages": [{"role": "user", "content": block} for block in BLOCKS]}


@pytest.fixture
def browse(make_client, tmp_path):
    """A function that serves preview pages for the lists of a server and its replies."""

    def serve(lists, cases="", **replies):
        file = tmp_path / "cases.toml"
        file.write_text(cases, encoding="utf-8")
        listing = parse_listing(lists)
        catalog = catalog_of(listing, ScriptedConnection(**replies), read_cases(file))
        live = LiveCatalog(
            catalog.with_diagnostics([*catalog.diagnostics, *lint_listing(listing, XSS * 100)])
        )
        client = make_client(live, app=create_application(live, ["--server=npx x"], TOKEN, [HOST]))
        assert client.get(f"/?access-token={TOKEN}").status_code == 303
        return Preview(client, live)

    return serve


class DangerCollector(HTMLParser):
    """A parser that collects the elements and attributes that could run code or load something."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        """Check an element."""
        attributes = dict(attrs)
        source = attributes.get("src") or attributes.get("href") or ""
        is_own = source.startswith(("/", "#")) or source == ""
        if tag in ("script", "img", "iframe", "object", "b") and not is_own:
            self.found.append((tag, source))
        if any(name.startswith("on") for name in attributes) or source.startswith("javascript:"):
            self.found.append((tag, attrs))


def test_no_text_of_a_server_is_html(browse):
    preview = browse(HOSTILE, prompts_get=REPLY, resources_read={"contents": [{"text": MARKDOWN}]})
    (prompt,) = preview.live.newest.catalog.prompts
    path = f"/prompts/{quote(prompt.name, safe='')}"
    pages = [
        preview.page("/"),
        preview.page(path),
        preview.page(f"/resources?uri={quote(HOSTILE['resources'][0]['uri'])}"),
        preview.client.post(f"{path}/render", data={XSS: XSS}).text,
        *(preview.client.post(f"{path}/tabs/{tab}", data={XSS: XSS}).text for tab in PANELS),
    ]

    assert [DangerCollector(page).found for page in pages] == [[]] * len(pages)
    assert sum("alert(1)" in unescape(page) for page in pages) >= len(pages) - 2  # two show no text of it


def test_a_case_to_copy_is_toml(browse):
    prompts = [{"name": "a b", "arguments": [{"name": "x"}]}]
    preview = browse({"prompts": prompts}, prompts_get=REPLY)

    test = preview.client.post("/prompts/a%20b/tabs/new-case", data={"x": 'a "b"\n'}).text
    command = preview.client.post("/prompts/a%20b/tabs/command-line", data={"x": "1"}).text

    assert "cases.toml" in test
    text = "".join(TextCollector(test).parts)
    assert '["a b"."a name"]\n"x" = "a \\"b\\"\\n"' in text
    assert "promptkit render '--server=npx x' 'a b' x=1" in "".join(TextCollector(command).parts)


class TextCollector(HTMLParser):
    """A parser that collects the text of a page."""

    def __init__(self, page):
        super().__init__()
        self.parts = []
        self.feed(page)

    def handle_data(self, data):
        """Add text."""
        self.parts.append(data)


def test_the_cases_of_a_prompt_are_shown_and_nothing_else_is_rendered(browse):
    replies = {"messages": [{"role": "user", "content": {"type": "text", "text": "Rendered."}}]}
    preview = browse(
        {"prompts": [{"name": "a", "arguments": [{"name": "x"}]}]},
        "[a.one]\nx = '1'\n",
        prompts_get=replies,
    )

    assert "Rendered." not in preview.page("/prompts/a")
    assert "Rendered." in preview.page("/prompts/a?use-case=one")
    assert "Rendered." in preview.client.post("/prompts/a/tabs/cases").text
