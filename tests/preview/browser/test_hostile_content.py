"""Hostile content is displayed and never executed."""

from contextlib import closing
from http.client import HTTPConnection
from urllib.parse import quote, urlsplit

import pytest

from tests.preview.browser.window import panel_of

expect = pytest.importorskip("playwright.sync_api").expect

pytestmark = [pytest.mark.slow, pytest.mark.installs]

#: Texts that would run a script, contact another server, or disguise themselves.
TEXTS = {
    "script": "<script>alert(1)</script>",
    "closes": "</textarea></pre></title></style></select><script>alert(1)</script>",
    "image": '<img src=x onerror="alert(1)">',
    "attribute": '" onmouseover="alert(1)" autofocus onfocus="alert(1)" x="',
    "svg": '<svg onload="alert(1)"><script>alert(1)</script></svg>',
    "frame": '<iframe src="https://evil.example/"></iframe><object data="https://evil.example/x"></object>',
    "style": "<style>@import url(https://evil.example/x.css);body{background:url(https://evil.example/y)}</style>",
    "htmx": '<div hx-get="https://evil.example/" hx-trigger="load" hx-on:load="alert(1)">x</div>',
    "partial": '<hx-partial hx-target="body" hx-swap="innerHTML">gone</hx-partial>',
    "markdown-script": "[link](javascript:alert(1)) <javascript:alert(1)> [d](data:text/html,<b>x</b>)",
    "markdown-image": "![x](https://evil.example/x.png) ![y](//evil.example/y.png) ![z](/media/z)",
    "markdown-fence": "```\n</code></pre><script>alert(1)</script>\n```",
    "template": "{{ 7 * 7 }} {% raw %} ${alert(1)}",
    "bidi": "user\u202e\u2066txt.exe\u2069\u2067 admin\u200b\u00ad\x07\x1b[31m\ufeff",
    "entities": "&lt;script&gt;alert(1)&lt;/script&gt; &#x3c;script>",
    "lines": "a\u2028b\u2029c\r\nd\x00e\x85f",
}

#: All texts in one that can be typed.
ALL = "\n".join(TEXTS.values()).replace("\0", "").replace("\r", "")

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
    'width="40" height="20" onload="alert(1)"><script>alert(1)</script>'
    '<image href="https://evil.example/x.png" width="9" height="9"/>'
    '<a xlink:href="javascript:alert(1)"><rect width="40" height="20" fill="red"/></a></svg>'
)

RECIPES = {
    "hostile.py": f"""
from typing import Annotated, Literal
from promptkit import Arg, EmbeddedResource, PromptError, ResourceLink, assistant, prompt, resource, user

TEXTS = {TEXTS!r}
SVG = {SVG!r}
BAD = {ALL!r}
TEXTS["all"] = BAD
LINE = " ".join(BAD.split())

@prompt(title=LINE[:900], description=BAD, tags=["<script>alert(1)</script>", '"onclick="alert(1)'])
def described(
    text: Annotated[str, Arg(BAD, title='<img src=x onerror=alert(1)>" onfocus="x', examples=[BAD])] = "",
    choice: Annotated[Literal['"><script>alert(1)</script>', "b"], Arg("x")] = "b",
    offered: Annotated[str, Arg(complete=lambda typed: list(TEXTS.values()))] = "",
):
    return text or "nothing"

@prompt
def says(which: str):
    return TEXTS[which]

@prompt
def repeats(text: str, count: int = 1):
    return text * count

@prompt
def raises(which: str):
    raise ValueError(TEXTS[which])

@prompt
def refuses(which: str):
    raise PromptError(TEXTS[which])

@prompt
def needs(number: int):
    return str(number)

@prompt
def attaches():
    yield user(EmbeddedResource("notes://alert(1);'x'", text=BAD, mime_type="text/markdown"))
    yield user(EmbeddedResource("notes://page", text="<script>alert(1)</script>", mime_type="text/html"))
    yield user(EmbeddedResource("notes://drawing", text=SVG, mime_type="image/svg+xml"))
    yield user(EmbeddedResource("notes://blob", blob=SVG.encode(), mime_type="text/html"))
    yield user(ResourceLink("javascript:alert(1)", name="<b>run</b>", description=LINE[:500]))
    yield assistant(ResourceLink("https://evil.example/", name="elsewhere"))

@resource("notes://bad", title="<script>alert(1)</script>", description=BAD, mime_type="text/html")
def bad():
    return "<script>alert(1)</script>"
"""
}

#: JavaScript that returns the attributes and addresses that could execute code.
DANGEROUS = """
() => [...document.querySelectorAll("*")].flatMap((element) => [...element.attributes]
  .filter(({ name, value }) => name.startsWith("on") || name.startsWith("hx-on")
    || (["href", "src", "action", "formaction", "data", "srcdoc"].includes(name)
        && !/^(\\/(?!\\/)|#)/.test(value) && !(element.localName === "a" && /^https:/.test(value))))
  .map(({ name, value }) => `${element.localName} ${name}=${value.slice(0, 60)}`))
"""

FOREIGN = "script:not([src^='/static/']), iframe, object, embed, base, style, svg, meta[http-equiv]"


def is_harmless(page):
    """Return whether the page is harmless, so that nothing can run, and nothing comes from another origin."""
    assert page.evaluate(DANGEROUS) == []
    expect(page.locator(FOREIGN)).to_have_count(0)
    return all(page.evaluate("[...document.images].map((image) => new URL(image.src).origin === origin)"))


@pytest.mark.parametrize("which", TEXTS)
def test_prompt_text_is_harmless(which, visit):
    """Hostile prompt text is shown as Markdown and raw, with invisible characters escaped."""
    page = visit.prompt("says", f"?which={which}")
    expect(page.locator("#rendering > ol > li")).to_have_count(1)
    page.get_by_role("button", name="Raw").click()

    raw = page.locator(".raw").text_content()
    assert ("alert(1)" in raw) == ("alert(1)" in TEXTS[which])
    assert not set(raw) & set("\u202e\u2066\u2067\u200b\u00ad\x07\x1b\ufeff\u2028\u2029\x00\x85")
    assert is_harmless(page)


def test_typed_text_is_harmless(visit):
    """Hostile input is harmless in its control, the address, the conversation and every tab."""
    page = visit.prompt("repeats")
    page.get_by_role("textbox", name="text").fill(ALL)
    expect(page.locator("#rendering > ol > li")).to_have_count(1)
    for name in ("Wire", "Vendors", "New case", "Command line", "Clients"):
        page.get_by_role("tab", name=name).click()
        panel_of(page, name)
        assert is_harmless(page)
    page.reload()

    expect(page.locator("#rendering > ol > li")).to_have_count(1)
    assert is_harmless(page)


@pytest.mark.parametrize(
    ("path", "state"),
    [
        (f"needs?number={quote(ALL)}", "1 argument needs attention"),
        (f"needs?number=1&{quote(ALL.replace('.', ''))}=x", "1 argument needs attention"),
        ("raises?which=all", "This prompt failed"),
        ("refuses?which=all", "This prompt failed"),
    ],
    ids=["value", "name", "exception", "refusal"],
)
def test_error_messages_are_harmless(path, state, visit):
    """Error messages quote hostile values, unknown argument names and exceptions harmlessly."""
    page = visit.open(f"/prompts/{path}")

    expect(page.locator("#state")).to_contain_text(state)
    assert "alert(1)" in page.locator("#main").inner_text()
    assert is_harmless(page)


def test_search_query_is_harmless(visit):
    """A hostile search query is repeated harmlessly, whether typed or taken from a link."""
    visit.page.get_by_role("searchbox", name="Search prompts").fill(f"nowhere {' '.join(ALL.split())}")
    expect(visit.page.locator(".empty")).to_contain_text("alert(1)")
    assert is_harmless(visit.page)

    page = visit.open(f"/?q=nowhere{quote(ALL)}")
    expect(page.locator(".empty")).to_contain_text("alert(1)")
    assert is_harmless(page)


def test_metadata_is_harmless(visit):
    """Hostile titles, descriptions and completion values are harmless."""
    assert is_harmless(visit.page)
    page = visit.prompt("described")
    expect(page.get_by_role("heading", level=1)).to_have_text("described")
    page.get_by_role("combobox", name="offered").focus()
    expect(page.locator("datalist option")).to_have_count(len(TEXTS) + 1)
    assert is_harmless(page)


def test_resources_and_media_are_harmless(visit):
    """HTML is shown as text, SVG as an image that runs nothing, and `javascript:` URIs are not links."""
    page = visit.prompt("attaches")
    expect(page.locator("#rendering > ol > li")).to_have_count(6)
    images = page.locator("#conversation img")
    expect(images).to_have_count(1)
    assert images.evaluate("async (img) => (await img.decode(), img.naturalWidth)") == 40
    assert is_harmless(page)
    expect(page.get_by_role("link", name="elsewhere")).to_have_count(1)
    expect(page.get_by_role("link", name="run")).to_have_count(0)

    page = visit.open("/resources?uri=notes%3A%2F%2Fbad")
    expect(page.locator("#conversation")).to_contain_text("<script>alert(1)</script>")
    assert is_harmless(page)


def test_media_opened_as_pages_are_harmless(visit):
    """An SVG opened as a page is sandboxed, and other files are downloaded instead of displayed."""
    page = visit.prompt("attaches")
    source = page.locator("#conversation img").get_attribute("src")
    saved = page.get_by_role("link", name="Save this file").get_attribute("href")

    visit.window.allow("frame is sandboxed", "Content Security Policy", "Content-Security-Policy", ": csp")
    # The policy blocks the request.
    visit.window.allow("requested another origin: https://evil.example/x.png")
    visit.open(source)
    response = page.request.get(visit.window.origin + source)
    assert "sandbox" in response.headers["content-security-policy"]
    headers = page.request.get(visit.window.origin + saved).headers
    assert headers["content-disposition"] == "attachment"
    assert headers["content-type"] == "application/octet-stream"
    assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize("text", ["x", "word ", "*", "[", "<", "`", "| a ", "\u202e", "\n-"], ids=repr)
def test_huge_text_is_truncated(text, visit):
    """Text of 1 MiB is truncated at first, and a button shows all of it."""
    size = 1024**2
    page = visit.prompt("repeats", f"?text={quote(text)}&count={size // len(text)}")
    expect(page.locator("#state")).to_contain_text("1 message")
    assert len(page.locator("#conversation").inner_html()) < 1_000_000

    page.get_by_role("button", name="Show all").click()
    expect(page.locator(".truncated")).to_have_count(0, timeout=30_000)
    assert is_harmless(page)


def test_huge_value_is_rendered(visit):
    """Text of 1 MiB can be entered and rendered without becoming part of the address."""
    page = visit.prompt("repeats")
    page.get_by_role("textbox", name="text").fill("word " * (1024**2 // 5))

    expect(page.locator("#conversation")).to_contain_text("20,000 of 1,048,575 characters", timeout=30_000)
    assert len(page.url) < 200


def test_unauthorized_requests_are_rejected(served_recipes):
    """Requests with a wrong host, a foreign origin or no valid token are rejected with 403."""
    _, address = served_recipes
    url = urlsplit(address)

    def send_request(path="/", **headers):
        with closing(HTTPConnection(url.netloc, timeout=20)) as connection:
            connection.request("GET", path, headers=headers)
            response = connection.getresponse()
            return response.status, response.headers.get("set-cookie", "").partition(";")[0], response.read()

    code, cookie, _ = send_request(f"/?{url.query}")
    assert (code, send_request(Cookie=cookie)[0]) == (303, 200)
    for invalid_headers in (
        {"Host": "evil.example"},
        {"Host": f"evil.example:{url.port}"},
        {"Host": "127.0.0.1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": f"http://localhost:{url.port}"},
        {"Cookie": "x=y"},
        {"Cookie": cookie + "x"},
    ):
        code, _, body = send_request(**{"Cookie": cookie, **invalid_headers})
        assert code == 403, invalid_headers
        assert b"repeats" not in body
    assert send_request("/prompts/repeats")[0] == 403
    assert send_request("/?access-token=wrong")[0] == 403
